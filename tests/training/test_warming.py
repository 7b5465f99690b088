"""Kernels compiled ahead are those that are called later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labeltree import cli
from labeltree.config import make_config
from labeltree.errors import DataError
from labeltree.kernels import cache
from labeltree.nodes import LINKS
from labeltree.training import warming
from labeltree.trees import BUILDERS

ALL_AHEAD = """
import importlib, itertools, pathlib
import scipy.sparse
import labeltree, labeltree.kernels
from labeltree.training import warming
from labeltree.kernels.jit import made
from labeltree.nodes import KINDS, LINKS
from labeltree.trees import BUILDERS
source = pathlib.Path(labeltree.__file__).parents[1]
for path in (source / "labeltree" / "kernels").rglob("*.py"):
    importlib.import_module(".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"))
signatures = lambda: {(kernel.__name__, *kernel.signatures) for kernel in made}
warming.run_jobs(warming.jobs())
before = signatures()
print("never called:", *sorted(name for name, *known in before if not known))
"""
THEN = """
texts, labels = [f"w{i % 9} w{i % 4}" for i in range(700)], [[f"a{i % 9}", "b"] for i in range(700)]
grid = [{"nodes": nodes, "link": link} for nodes, link in itertools.product(KINDS, LINKS)]
grid += [{"tree": tree, "link": link} for tree, link in itertools.product(BUILDERS, LINKS)]
alone = [{**options, "neighbours": 0} for options in grid]
for options in (*grid, *alone, {"trees": 2}, {"balanced": False}, {"l1": 0.1}, {"preset": "fast"}):
    model = labeltree.train(texts, labels, **options)
    rows = scipy.sparse.eye(3, model.n_features, dtype="f4", format="csr")
    for X, normalize in itertools.product((texts, texts[:1], rows, rows[:1]), (False, True)):
        model.predict(X, 2, normalize=normalize)
        model.predict(X, None, threshold=0.2, normalize=normalize)
        model.predict(X, 2, search="beam", normalize=normalize)
        model.probability(X, ["b"], normalize=normalize)
    model.explain(texts[0], deletions=1).to_dict()
    model.explain(rows[:1])
print("new:", *sorted(name for name, *_ in signatures() - before))
"""


def test_every_kernel_is_compiled_ahead_as_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ALL_AHEAD + THEN], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n")[:2] == ["never called:", "new:"]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, ["kmeans-plt-tree", "sparse-plt-search", "neighbours"]),
        ({"trees": 0, "neighbours": 0, "forest": 2}, ["forest"]),
        ({"neighbours": 0}, ["kmeans-plt-tree", "sparse-plt-search"]),
        ({"nodes": "both"}, ["kmeans-plt-tree", "dense-plt-search", "sparse-plt-search", "neighbours"]),
        (
            {"nodes": "dense", "tree": "huffman", "link": "hsm", "neighbours": 0},
            ["huffman-hsm-tree", "dense-hsm-search"],
        ),
    ],
)
def test_what_training_comes_to_last_is_compiled_meanwhile(
    parameters: dict[str, str], expected: list[str]
) -> None:
    assert warming.jobs_ahead(make_config(parameters)) == expected
    assert set(expected) <= set(warming.jobs())


def test_choices_that_a_program_adds_have_jobs() -> None:
    LINKS.add("toy", LINKS["plt"]._replace(name="toy", sparse_loss=None))
    BUILDERS.add("halves", BUILDERS["flat"])
    try:
        found = set(warming.jobs())
    finally:
        LINKS.remove("toy")
        BUILDERS.remove("halves")
    assert {"halves-plt-tree", "dense-toy-search", "sparse-toy-other-searches", "dense-toy-training"} <= found
    assert "sparse-toy-training" not in found  # which it does not take


def test_a_tree_from_a_file_needs_no_kernels(tmp_path: Path) -> None:
    (tmp_path / "tree.tsv").write_text("")
    config = make_config({"tree": str(tmp_path / "tree.tsv")})
    assert warming.jobs_ahead(config) == ["sparse-plt-search", "neighbours"]


@pytest.mark.parametrize(
    ("options", "n_cpus", "helps"),
    [([], 2, True), (["--threads", "1"], 2, False), ([], 1, False), (["-q"], 2, True)],
)
def test_training_has_another_process_help_only_where_something_must_be_compiled(
    options: list[str], n_cpus: int, helps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    announced: list[bool] = []
    monkeypatch.setattr(warming, "start_ahead", started.append)
    monkeypatch.setattr("labeltree.parallel.available_threads", lambda: n_cpus)
    monkeypatch.setattr(cache, "announce", lambda *, everywhere: announced.append(everywhere))
    before = cache.when_compiling
    data = tmp_path / "data.txt"
    data.write_text("__label__a one\n__label__b two\n")

    def train(*arguments: object, **parameters: object) -> None:
        assert not started
        cache.when_compiling()  # as when the first kernel is not found
        raise DataError("enough")

    monkeypatch.setattr("labeltree.training.driver.train", train)
    assert cli.main(["train", str(data), "-o", str(tmp_path / "model"), *options]) == 1
    assert bool(started) == helps
    assert bool(announced) == ("-q" not in options)
    assert cache.when_compiling is before


def test_who_helps_takes_nothing_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the command itself: a folder of data may hold a file that is called like a module."""
    (tmp_path / "labeltree").mkdir()
    (tmp_path / "labeltree" / "__init__.py").write_text("open('executed', 'w')")
    monkeypatch.chdir(tmp_path)
    started: list[subprocess.Popen] = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **k: started.append(start(*a, **k)))
    warming.start_ahead([])
    assert started[0].wait(60) == 0
    assert not (tmp_path / "executed").exists()


def test_a_folder_gets_what_another_one_has_already(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first job has kernels enough; all of them are in the folders of these tests."""
    warming.run_jobs(["kmeans-plt-tree"])
    monkeypatch.setattr(warming, "jobs", lambda: {"kmeans-plt-tree": None})  # for those that run them, all
    compiled, folders = warming.compile_all(tmp_path, 1)
    assert "split_groups" in compiled
    assert folders == {tmp_path / cache.version()}
    assert any(path.name.startswith("split_groups") for path in (tmp_path / cache.version()).iterdir())
    assert warming.compile_all(tmp_path, 1).compiled == []


def test_the_command_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def compile_all(folder: Path | None, processes: int) -> warming.Warmed:
        return warming.Warmed(["one", "two"][:processes], set() if folder is None else {folder / "version"})

    monkeypatch.setattr(warming, "compile_all", compile_all)
    folder = tmp_path / "new" / "kernels"
    assert cli.main(["warm-up", "--to", str(folder), "--processes", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("2 kernels compiled in ")
    assert told.endswith(f"all are in {folder / 'version'}\n")
    assert folder.is_dir()
    assert cli.main(["warm-up"]) == 0
    assert "no folder can be written" in capsys.readouterr().out


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["warm-up", "--to", str(tmp_path / "file" / "kernels")]) == 2
    assert "cannot be made" in capsys.readouterr().err
