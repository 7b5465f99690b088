"""Sparse nodes: a node scores w·x, a pruned linear model of its own.

Training is a plan of tasks that share nothing: start reading at :mod:`labeltree.nodes.sparse.fitting`.
"""
