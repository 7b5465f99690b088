"""Text to rows of numbers."""
