"""What the package says about itself: the description that an index shows, and the Pythons it is for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_links_of_the_readme_lead_somewhere() -> None:
    links = [link for link in LINK.findall((ROOT / "README.md").read_text()) if "://" not in link]
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link.partition("#")[0]).exists()] == []


def test_the_description_needs_no_other_file() -> None:
    """As the build makes it of the README."""
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    text = "".join(
        (ROOT / part["path"]).read_text() if "path" in part else part["text"] for part in hook["fragments"]
    )
    for change in hook["substitutions"]:
        text = re.sub(change["pattern"], change["replacement"], text)
    assert [link for link in LINK.findall(text) if "://" not in link] == []
    assert "`LabelTreeClassifier` (`docs/estimator.md`) works" in text
    assert "\n| `docs/cli.md` | the commands" in text


def test_classifiers_begin_with_the_lowest_python() -> None:
    named = [name for name in PROJECT["project"]["classifiers"] if re.search(r"Python :: 3\.\d+$", name)]
    assert named[0].endswith(f":: {PROJECT['project']['requires-python'].removeprefix('>=')}")
