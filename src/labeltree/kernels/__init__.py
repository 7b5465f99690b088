"""Compiled code. Free functions over plain arrays that fill ``out`` arrays; nothing else imports numba.

No jitted function is passed as an argument (it would miss the cache), and ``parallel=True`` is never used:
threads are the caller's.
"""
