"""Compiled code. Free functions over plain arrays that fill ``out`` arrays; nothing else imports numba.

Numba's disk cache looks at a kernel's own file only: what a kernel takes from another file may go stale when
that file is edited alone. Installing a release rewrites all files, and the tests key their cache to all of
them, so only who edits a checkout must empty the cache. No jitted function is passed as an argument (it
would miss the cache), and ``parallel=True`` is never used: threads are the caller's.
"""
