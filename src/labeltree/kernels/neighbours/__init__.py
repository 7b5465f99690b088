"""Lists of ids in few bits, and the most similar training rows of a row by them."""
