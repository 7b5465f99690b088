"""Sparse nodes: a node scores w·x, a pruned linear model of its own."""
