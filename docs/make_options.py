"""Write the tables of options and presets, made from `labeltree.config`, into `cli.md` beside this file.

Run after a parameter changes: `python docs/make_options.py`. A test fails if it was forgotten.
"""

from __future__ import annotations

from pathlib import Path

from labeltree.cli.options import options_table, presets_table

PAGE = Path(__file__).with_name("cli.md")
START, END = "<!-- options: made by make_options.py -->\n", "<!-- end of options -->\n"


def updated(page: str) -> str:
    """The page with its tables made new."""
    before, rest = page.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}{options_table()}\n\n{presets_table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
