"""Compiled code. Free functions over plain arrays that fill ``out`` arrays; nothing else imports numba.

Rules that keep Numba's disk cache honest: a cached kernel calls only helpers in its own file, and no
jitted function is passed as an argument. ``parallel=True`` is never used: threads are the caller's.
"""
