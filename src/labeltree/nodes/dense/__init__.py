"""Dense nodes: a node scores w·h + b, h being the sum of the vectors of a row's features."""
