"""Direct nodes: a node scores w·x + b on the given vectors themselves, every weight a 32-bit float."""
