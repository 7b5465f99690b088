"""Node parameters and how they are fitted."""
