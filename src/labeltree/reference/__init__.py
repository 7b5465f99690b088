"""The whole method in plain Python and NumPy: slow and obvious. It is the specification and the test oracle.

Read it in this order: :mod:`.text` (tokens, TF-IDF), :mod:`.tree` (builders, cost), :mod:`.training`
(Algorithm 1, dense nodes), :mod:`.sparse` (sparse nodes), :mod:`.search` (Algorithm 2). Every kernel has its
slow twin here.
"""
