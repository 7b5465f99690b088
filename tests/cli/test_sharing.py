"""plan, work and merge on the command line, and the options of train that share its work out."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.small_data import make_toy, write_fasttext

from labeltree import cli
from labeltree.cli.sharing import Tasks

TOY = make_toy(150)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.txt").write_text(write_fasttext(TOY))
    return "data.txt"


def run(command: str, code: int = 0) -> None:
    assert cli.main(command.split()) == code


def test_the_same_file(data: str, capfd: pytest.CaptureFixture[str]) -> None:
    options = "--threads 1 --trees 2 --arity 2 --max-leaves 2"
    run(f"train {data} -o expected -q --card licence=CC0 {options}")
    capfd.readouterr()
    run(f"plan {data} -o plan -q {options}")
    n_tasks = int(capfd.readouterr().out)
    assert n_tasks > 10
    run("merge plan -o merged -q", 1)
    told = f"Error: plan: {n_tasks} of {n_tasks} tasks are not done: 0, 1, "
    assert capfd.readouterr().err.startswith(told)
    run(f"work plan --task 3,5-{n_tasks - 1} --threads 2")
    run("work plan --max-memory 300MB")
    run("merge plan -o merged -q --card licence=CC0")
    assert Path("merged").read_bytes() == Path("expected").read_bytes()
    run("merge plan -o merged -q --card licence=CC0")
    assert Path("plan").is_dir()


@pytest.mark.parametrize("options", ["--work-dir work", "--max-memory 256MB"])
def test_train_leaves_nothing_but_the_model(data: str, options: str) -> None:
    run(f"train {data} -o model -q --threads 1")
    expected = Path("model").read_bytes()
    run(f"train {data} -o model -q --threads 2 {options}")
    assert Path("model").read_bytes() == expected
    assert sorted(path.name for path in Path().iterdir()) == ["data.txt", "model"]


@pytest.mark.parametrize(
    ("command", "code", "told"),
    [
        ("train data.txt -o model --work-dir model", 2, "--work-dir model: is --output too"),
        ("train data.txt -o model --work-dir data.txt", 2, "is a file"),
        ("train data.txt -o model --max-memory 10MB", 2, "at least 256MB"),
        ("train data.txt -o model --max-memory much", 2, "like 2GB or 500MB, but is 'much'"),
        ("train data.txt -o model --workers 0", 2, "--workers"),
        ("train data.txt -o model --workers 2 --scheduler tcp://x:1", 2, "exclude each other"),
        ("train data.txt -o model --workers 1 --nodes dense", 2, "dense nodes are trained on one machine"),
        ("train data.txt --dry-run --work-dir work", 2, "--work-dir has no effect with --dry-run"),
        ("train data.txt --dry-run --max-memory 2GB", 2, "--max-memory has no effect with --dry-run"),
        ("train data.txt --dry-run --workers 2", 2, "--workers has no effect with --dry-run"),
        ("plan data.txt", 2, "--output"),
        ("plan data.txt -o plan --nodes dense", 2, "dense nodes are trained on one machine only"),
        ("plan missing.txt -o plan", 1, "missing.txt: cannot be read"),
        ("work nothing", 1, "nothing: there is no plan in it"),
        ("work nothing --task x", 2, "'x' is not a number of a task"),
        ("work nothing --task 5-3", 2, "'5-3' is not a range of tasks: it must rise"),
        ("merge nothing -o model", 1, "nothing: there is no plan in it"),
        ("merge data.txt -o model", 2, "is a file"),
    ],
)
def test_bad_commands(
    data: str, command: str, code: int, told: str, capfd: pytest.CaptureFixture[str]
) -> None:
    if "--workers 1" in command:
        pytest.importorskip("distributed", reason="Dask is not installed: pip install 'labeltree[dask]'")
    run(command, code)
    errors = capfd.readouterr().err
    assert told in errors
    assert "Traceback" not in errors
    assert not Path("model").exists()
    assert not Path("nothing").exists()


@pytest.mark.parametrize(
    ("text", "numbers"), [("7", [7]), ("0-3", [0, 1, 2, 3]), ("2, 0-1,9", [2, 0, 1, 9]), ("4-4", [4])]
)
def test_lists_of_tasks(text: str, numbers: list[int]) -> None:
    assert Tasks().convert(text, None, None) == numbers
