"""How experts share out what they say of a label among the entries of a row."""
