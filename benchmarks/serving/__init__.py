"""What `labeltree serve` stands and how fast it is: modules are commands."""
