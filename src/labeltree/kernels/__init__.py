"""Compiled code. Free functions over plain arrays that fill ``out`` arrays; nothing else imports numba.

No jitted function is passed as an argument (it would miss the cache), and ``parallel=True`` is never used:
threads are the caller's.

What several folders use stands here; each folder serves one of the package: ``scan`` serves data, ``text``
features, ``search`` experts, ``dense`` and ``sparse`` nodes, ``trees`` trees.
"""
