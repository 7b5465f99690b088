"""Readers: files and in-memory objects -> rows.

Text comes as :class:`~labeltree.data.rows.Block`, features and labels as
:mod:`~labeltree.data.rows`. Start reading at :mod:`~labeltree.data.reading` (text files),
:mod:`~labeltree.data.xmlc` (numbered features) or :mod:`~labeltree.data.memory` (Python objects).
"""
