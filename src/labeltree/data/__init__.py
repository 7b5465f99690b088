"""Readers: files and in-memory objects -> rows."""
