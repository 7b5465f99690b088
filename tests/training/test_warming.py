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
from labeltree.training import warming

ALL_AHEAD = """
import importlib, pathlib
import labeltree, labeltree.kernels
from labeltree.training import warming
from labeltree.kernels.jit import Kernel
source = pathlib.Path(labeltree.__file__).parents[1]
files = (source / "labeltree" / "kernels").rglob("*.py")
names = [".".join(path.relative_to(source).with_suffix("").parts) for path in files]
modules = [importlib.import_module(name.removesuffix(".__init__")) for name in names]
kernels = {value for module in modules for value in vars(module).values() if isinstance(value, Kernel)}
signatures = lambda: {(kernel.__name__, *kernel.signatures) for kernel in kernels}
warming.run_jobs(warming.JOBS)
before = signatures()
print("never called:", *sorted(name for name, *known in before if not known))
"""
THEN = """
texts, labels = [f"w{i % 9} w{i % 4}" for i in range(700)], [[f"a{i % 9}", "b"] for i in range(700)]
for options in ({}, {"nodes": "both"}, {"trees": 2}, {"balanced": False}, {"link": "hsm"}, {"l1": 0.1}):
    model = labeltree.train(texts, labels, **options)
    for X in (texts, texts[:1]):
        model.predict(X, 2)
        model.predict(X, None, threshold=0.2)
        model.predict(X, 2, search="beam")
        model.probability(X, ["b"])
        model.predict(X, 2, normalize=True)
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
        ({}, ["clusters", "sparse-search"]),
        ({"nodes": "both"}, ["clusters", "dense-search", "sparse-search"]),
        ({"nodes": "dense", "tree": "huffman"}, ["dense-search"]),
    ],
)
def test_what_training_comes_to_last_is_compiled_meanwhile(
    parameters: dict[str, str], expected: list[str]
) -> None:
    assert warming.jobs_ahead(make_config(parameters)) == expected
    assert set(expected) <= set(warming.JOBS)


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
    monkeypatch.setattr(warming, "JOBS", {"clusters": warming.JOBS["clusters"]})
    warming.run_jobs(["clusters"])
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
