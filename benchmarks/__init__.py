"""Measurements: each module prints one table, `python -m benchmarks.NAME`."""
