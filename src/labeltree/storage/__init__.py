"""Files: written whole or not at all, the container of arrays, and what a model file holds."""
