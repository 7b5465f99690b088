"""The container: named arrays and a JSON object in one memory-mapped safetensors file.

``docs/model-file.md`` is the specification. Three modules, as reading and writing are a screen or more each
and share only the rules: ``layout`` (what both sides must agree on), ``reading``, ``writing``.
"""

from labeltree.storage.container.layout import FORMAT_VERSION
from labeltree.storage.container.reading import read_model
from labeltree.storage.container.writing import write_model

__all__ = ["FORMAT_VERSION", "read_model", "write_model"]
