"""Experts: what says how probable labels are for rows, and how several are combined."""
