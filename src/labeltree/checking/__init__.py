"""What is remarkable about data before a model is trained on it: ``labeltree check``."""
