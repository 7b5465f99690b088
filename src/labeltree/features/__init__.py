"""Features: text or vectors -> sparse rows."""
