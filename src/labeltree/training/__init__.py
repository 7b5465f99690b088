"""Training: data in, model out. Start reading at ``driver``."""
