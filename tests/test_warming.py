"""Kernels compiled ahead are those that are called later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from labeltree import cli, warming
from labeltree.config import make_config
from labeltree.kernels import cache

ALL_AHEAD = """
import importlib, pathlib
import labeltree, labeltree.kernels
from labeltree import warming
from labeltree.kernels.jit import Kernel
names = [path.stem for path in pathlib.Path(labeltree.kernels.__file__).parent.glob("*.py")]
modules = [importlib.import_module(f"labeltree.kernels.{name}") for name in names if name != "__init__"]
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


@pytest.mark.parametrize(("options", "helps"), [([], True), (["--threads", "1"], False), (["-q"], True)])
def test_training_has_another_process_help_only_where_something_must_be_compiled(
    options: list[str], helps: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    announced: list[bool] = []
    monkeypatch.setattr(warming, "start_ahead", started.append)
    monkeypatch.setattr(cache, "announce", lambda: announced.append(True))
    monkeypatch.setattr(cache, "when_compiling", cache.announce)
    data = tmp_path / "data.txt"
    data.write_text("__label__a one\n__label__b two\n")
    assert cli.main(["train", str(data), "-o", str(tmp_path / "model"), *options]) == 0
    assert not started
    cache.when_compiling()  # as when the first kernel is not found
    assert bool(started) == helps
    assert bool(announced) == ("-q" not in options)


def test_the_command_says_what_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warming, "compile_all", lambda processes: ["one", "two"][:processes])
    monkeypatch.delenv(cache.ENVIRONMENT, raising=False)
    monkeypatch.setenv(cache.ENVIRONMENT, "")  # so that it is as it was afterwards
    folder = tmp_path / "new" / "kernels"
    assert cli.main(["warm-up", "--to", str(folder), "--processes", "2"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("2 kernels compiled in ")
    assert f"all are in {folder}" in told
    assert folder.is_dir()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["warm-up", "--to", str(tmp_path / "file" / "kernels")]) == 2
    assert "cannot be made" in capsys.readouterr().err
