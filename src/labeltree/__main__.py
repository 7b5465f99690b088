"""``python -m labeltree`` is the command line."""

import sys

from labeltree.cli import main

if __name__ == "__main__":
    sys.exit(main())
