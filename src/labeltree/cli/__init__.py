"""The command line; ``commands`` has what ``labeltree --help`` lists."""

from labeltree.cli.commands import main

__all__ = ["main"]
