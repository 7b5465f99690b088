"""The demonstration: what it harvests without running it, and the whole of it on a small folder."""

from __future__ import annotations

import sysconfig
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from labeltree.cli.demo import MAX_WORDS, Harvest, harvest, library_folders, run_demo, split
from labeltree.errors import DataError
from labeltree.experts.job import Progress

SOURCE = '''"""Tools that bend metal bars into shapes."""
raise SystemExit("imported!")

def bend(bar, angle, *, force=1.0, **options):
    """Bend the bar by the given ANGLE, using some force_limit."""

def melt(oven):
    """Melt whatever lies in the oven right now."""

class Press:
    """A press that keeps many bars flat."""

    def push(self, bar, /, *bars):
        """Push the bar down and down and down again."""

    async def pull(self):
        """Too short."""

    def stop(self):
        """Stop the press at once and for ever."""
'''


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A folder of sources: one good package, and every kind of file that must be passed over."""
    package = tmp_path / "lib" / "metal"
    package.mkdir(parents=True)
    (package / "bars.py").write_text(SOURCE)
    (package / "__init__.py").write_text('"""The package of all things made of metal."""\n')
    (package / "copied.py").write_text('"""Tools that bend metal bars into shapes."""\n')
    (package / "broken.py").write_text("def f(:\n")
    (package / "binary.py").write_bytes(b'"""\xff\xfe words that nobody can decode at all"""\n')
    (package / "zero.py").write_bytes(b"\x00\x01")
    (package / "deep.py").write_text("x = " + "(" * 5000 + "1" + ")" * 5000)
    (package / "escape.py").write_text('"""Text with an invalid \\d escape in some pattern."""\n')
    (package / "large.py").write_text('"""One two three four five six seven."""\n' + "#" * 1_100_000)
    (package / "test").mkdir()
    (package / "test" / "test_bars.py").write_text('"""Nobody needs to read the tests of it."""\n')
    (package / "not-a-module.py").write_text('"""A script whose name is no module name."""\n')
    return tmp_path / "lib"


def by_name(found: Harvest) -> dict[str, tuple[str, list[str]]]:
    return {document.name: (document.text, document.labels) for document in found.documents}


def test_documents_and_labels(library: Path) -> None:
    found = by_name(harvest(100, folders=[library]))
    assert set(found) - {"metal.bars", "metal.copied"} == {
        "metal",
        "metal.bars.bend",
        "metal.bars.melt",
        "metal.bars.Press",
        "metal.bars.Press.push",
        "metal.bars.Press.stop",
        "metal.escape",
    }
    text, labels = found["metal.bars.bend"]
    assert text == "bend the bar by the given angle using some force_limit"
    # Only `bar` is a parameter of two objects; names that occur once are left out.
    assert labels == ["package:metal", "module:metal.bars", "kind:function", "param:bar"]
    assert found["metal.bars.Press.push"][1][2:] == ["kind:method", "param:bar"]
    assert found["metal.bars.Press"][1] == ["package:metal", "module:metal.bars"]  # the only class


def test_same_text_is_taken_once(library: Path) -> None:
    found = harvest(100, folders=[library])
    assert len({"metal.bars", "metal.copied"} & set(by_name(found))) == 1
    assert len(set(found.texts)) == len(found.texts)


def test_unusable_files_are_counted_and_silent(library: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = harvest(100, folders=[library])
    assert found.n_skipped == 5  # broken, binary, zero, deep, large
    assert found.n_files == 4


def test_missing_folder_is_empty(tmp_path: Path) -> None:
    assert harvest(10, folders=[tmp_path / "nothing"]) == Harvest([], 0, 0)


def test_limit_and_seed(library: Path) -> None:
    assert len(harvest(3, folders=[library]).documents) == 3
    assert harvest(100, 5, [library]) == harvest(100, 5, [library])
    orders = {tuple(document.name for document in harvest(100, s, [library]).documents) for s in range(5)}
    assert len(orders) > 1


def test_long_texts_are_cut(tmp_path: Path) -> None:
    (tmp_path / "long.py").write_text(f'"""{"word " * 1000}"""\n')
    (text,) = harvest(10, folders=[tmp_path]).texts
    assert len(text.split()) == MAX_WORDS


def test_split_is_by_name_and_about_a_tenth() -> None:
    found = harvest(1000, folders=[Path(sysconfig.get_paths()["stdlib"])])
    train_part, test_part = split(found.documents)
    assert len(train_part) + len(test_part) == len(found.documents) == 1000
    assert 50 < len(test_part) < 160
    names = {document.name for document in test_part}
    assert {d.name for d in split(reversed(found.documents[:500]))[1]} == names & {
        document.name for document in found.documents[:500]
    }


def test_standard_library_is_among_the_folders() -> None:
    assert Path(sysconfig.get_paths()["stdlib"]) in library_folders()


def test_too_few_documents_is_an_error(library: Path) -> None:
    with pytest.raises(DataError, match="too few"):
        run_demo(lambda line: None, folders=[library / "nothing"])


def test_whole_demo_on_a_small_part(tmp_path: Path) -> None:
    lines: list[str] = []
    path = tmp_path / "demo.labeltree"
    folder = Path(sysconfig.get_paths()["stdlib"], "email")
    model = run_demo(lines.append, output=path, folders=[folder], max_documents=150)
    assert path.stat().st_size > 0
    assert "kind:method" in model.label_names
    printed = "\n".join(lines)
    assert all(title in printed for title in ("P@1", "P@3", "P@5", "documents", "seconds"))
    assert "labeltree train train.txt -o my.labeltree" in printed
    assert str(path) in printed
    assert any(line.strip().startswith("+ ") for line in lines), "nothing right among the examples"


def test_the_model_is_kept_only_if_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = Path(sysconfig.get_paths()["stdlib"], "email")
    run_demo(lines.append, folders=[folder], max_documents=100)
    assert list(tmp_path.iterdir()) == []
    assert "  labeltree demo -o demo.labeltree" in lines


def test_the_bar_is_gone_before_the_next_line(tmp_path: Path) -> None:
    told: list[str] = []

    @contextmanager
    def bar() -> Iterator[Callable[[Progress], None]]:
        told.append("bar")
        yield lambda progress: None
        told.append("gone")

    folder = Path(sysconfig.get_paths()["stdlib"], "email")
    run_demo(lambda line: told.append(line[:2]), bar=bar(), folders=[folder], max_documents=100)
    assert told[told.index("2.") :][:4] == ["2.", "bar", "gone", "  "]
