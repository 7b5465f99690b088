"""Training and packing of sparse nodes."""
