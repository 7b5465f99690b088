"""Search in a label tree."""
