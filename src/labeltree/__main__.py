"""``python -m labeltree`` is the command line."""

from labeltree.cli import main

if __name__ == "__main__":
    main()
