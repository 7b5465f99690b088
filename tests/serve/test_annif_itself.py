"""Annif itself, with labeltree behind its http backend, and in its own process as the example has it.

Annif is the one of this environment, or of the interpreter that LABELTREE_ANNIF names, which must have what
labeltree needs (`pip install annif numba scipy tqdm orjson`).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.serving import TEXTS, TOPICS, text_model, wait_until
from support.serving_process import Process, ask

pytest.importorskip("uvicorn", reason="no uvicorn: pip install 'labeltree[serve]'")

import labeltree

pytestmark = pytest.mark.slow  # Annif takes seconds to start
EXAMPLE = Path(__file__).parents[2] / "examples" / "annif" / "labeltree_backend.py"
SOURCE = Path(labeltree.__file__).parents[1]
SETTINGS = "language=en\nanalyzer=simple\nvocab=kitchen\n"


@functools.cache
def python_with_annif() -> str:
    named = os.environ.get("LABELTREE_ANNIF")
    if named is None and importlib.util.find_spec("annif") is None:
        pytest.skip("no Annif: pip install annif, or name a Python that has it in LABELTREE_ANNIF")
    return named or sys.executable


class Annif:
    """A folder with its vocabulary and projects."""

    def __init__(self, folder: Path, projects: str) -> None:
        self.folder = folder
        (folder / "projects.cfg").write_text(projects)
        subjects = "".join(f"<http://example.org/{label}>\t{label}\n" for label in TOPICS)
        (folder / "vocabulary.tsv").write_text(subjects)
        self.run("annif", "load-vocab", "--language", "en", "kitchen", "vocabulary.tsv")

    def run(self, program: str | Path, *arguments: str, given: str = "") -> str:
        start = ["-c", "from annif.cli import cli; cli()"] if program == "annif" else [str(program)]
        environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
        done = subprocess.run(
            [python_with_annif(), *start, *arguments], cwd=self.folder, input=given, env=environment,
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def first(told: str) -> tuple[str, str, float]:
    """URI, label and score of the first line that Annif prints."""
    uri, label, score = told.splitlines()[0].split("\t")
    return uri, label, float(score)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Process]:
    """Of a model whose labels are URIs."""
    path = tmp_path / "kitchen.labeltree"
    labels = [[f"http://example.org/{label}"] for _ in range(12) for label in TOPICS]
    labeltree.train(TEXTS, labels, max_leaves=2, threads=1).save(path)
    service = Process(str(path))
    yield service
    service.process.terminate()
    service.process.wait(60)


def test_its_http_backend_works_unchanged(service: Process, tmp_path: Path) -> None:
    python_with_annif()
    wait_until(lambda: ask(service.connect(), "GET", "/health/ready")[0] == 200)
    assert service.address is not None
    endpoint = "http://{}:{}/v1/projects/kitchen/suggest".format(*service.address)
    annif = Annif(tmp_path, f"[served]\nname=Served\nbackend=http\nendpoint={endpoint}\n{SETTINGS}")
    uri, label, score = first(annif.run("annif", "suggest", "served", given="knead the dough with flour"))
    assert (uri, label) == ("<http://example.org/bread>", "bread")
    expected = text_model().predict(["knead the dough with flour"], 1)[0][0][1]
    assert score == pytest.approx(expected, abs=1e-3)
    assert "True" in annif.run("annif", "show-project", "served"), "it is trained"
    documents = "".join(
        f"{text}\t<http://example.org/{label}>\n" for text, label in zip(TEXTS, TOPICS, strict=False)
    )
    (tmp_path / "documents.tsv").write_text(documents)
    assert "Precision" in annif.run("annif", "eval", "served", "documents.tsv")


def test_the_backend_of_the_example(tmp_path: Path) -> None:
    python_with_annif()
    annif = Annif(tmp_path, f"[own]\nname=Own\nbackend=labeltree\nlimit=3\n{SETTINGS}")
    rows = zip(TEXTS, 12 * list(TOPICS), strict=True)
    (tmp_path / "documents.tsv").write_text(
        "".join(f"{text}\t<http://example.org/{label}>\n" for text, label in rows)
    )
    annif.run(EXAMPLE, "train", "--jobs", "1", "own", "documents.tsv")
    uri, label, score = first(annif.run(EXAMPLE, "suggest", "own", given="knead the dough with flour"))
    assert (uri, label) == ("<http://example.org/bread>", "bread")
    model = labeltree.load(tmp_path / "data" / "projects" / "own" / "model.labeltree")
    found = model.predict(["knead the dough with flour"], 1)[0][0]
    assert found[0] == "http://example.org/bread"
    assert score == pytest.approx(found[1], abs=1e-3)
    assert "Precision" in annif.run(EXAMPLE, "eval", "own", "documents.tsv")
