"""Shares of words, and what a label's probability would be without some of them."""
