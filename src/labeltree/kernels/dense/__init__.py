"""Training of dense nodes."""
