"""Readers: files and in-memory objects -> rows.

``formats`` has the table of file formats, each in a module of its own: text becomes blocks of rows, numbered
features sparse rows; ``memory``, ``matrices`` and ``labels`` take Python objects.
``rows`` has the shapes that they all end in.
"""
