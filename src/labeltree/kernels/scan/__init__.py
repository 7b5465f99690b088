"""Lines of files."""
