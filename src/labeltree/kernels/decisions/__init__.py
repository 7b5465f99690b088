"""Kernels of decisions for many rows together."""
