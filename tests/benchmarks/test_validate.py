"""Validation on held-out training rows: the split, the combinations and the table."""

from __future__ import annotations

import itertools
import lzma
from pathlib import Path

import pytest

from benchmarks import validate
from benchmarks.running import make_toy


def test_split_holds_out_contiguous_blocks(tmp_path: Path) -> None:
    source = tmp_path / "rows.txt"
    rows = [f"__label__a word{i}\n" for i in range(1000)]
    source.write_text("".join(rows))
    kept, held_out = (
        path.read_text().splitlines(keepends=True) for path in validate.split(source, tmp_path, 3)
    )
    assert len(held_out) == 100
    assert sorted(kept + held_out) == sorted(rows)
    assert held_out[:10] == rows[30:40]  # the fourth of every ten blocks
    other = validate.split(source, tmp_path, 4).held_out.read_text().splitlines(keepends=True)
    assert not set(other) & set(held_out)


def test_split_holds_out_single_rows(tmp_path: Path) -> None:
    source = tmp_path / "rows.txt"
    rows = [f"__label__a word{i}\n" for i in range(1000)]
    source.write_text("".join(rows))
    kept, held_out = (
        path.read_text().splitlines(keepends=True) for path in validate.split(source, tmp_path, 3, "rows")
    )
    assert len(held_out) == 100
    assert sorted(kept + held_out) == sorted(rows)
    numbers = [rows.index(row) for row in held_out]
    assert sum(after - before == 1 for before, after in itertools.pairwise(numbers)) < 30
    other = validate.split(source, tmp_path, 4, "rows").held_out.read_text().splitlines(keepends=True)
    assert set(other) != set(held_out)


def test_split_corrects_the_header(tmp_path: Path) -> None:
    source = tmp_path / "vectors.txt"
    source.write_text("20 3 2\n" + "".join(f"{i % 2} {i % 3}:1\n" for i in range(20)))
    kept, held_out = (path.read_text().splitlines() for path in validate.split(source, tmp_path, 1))
    assert (kept[0], held_out[0]) == ("18 3 2", "2 3 2")
    assert (len(kept), len(held_out)) == (19, 3)


def test_a_sample_is_of_rows_in_their_order(tmp_path: Path) -> None:
    source = tmp_path / "vectors.txt"
    source.write_text("20 3 2\n" + "".join(f"{i % 2} {i % 3}:{i}\n" for i in range(20)))
    header, *rows = validate.sample(source, tmp_path, 5).read_text().splitlines()
    assert (header, len(rows)) == ("5 3 2", 5)
    numbers = [int(row.partition(":")[2]) for row in rows]
    assert numbers == sorted(set(numbers))
    assert validate.sample(source, tmp_path, 20) == source


def test_combinations_are_typed_and_complete() -> None:
    found, varied = validate.combinations(["arity=4,8", "max-leaves=3", "balanced=true,false"])
    assert varied == ["arity", "balanced"]
    assert found[0] == {"arity": 4, "max_leaves": 3, "balanced": True}
    assert len(found) == 4
    assert validate.combinations(["C=0.5,1"])[0] == [{"C": 0.5}, {"C": 1.0}]
    assert validate.combinations([]) == ([{}], [])
    for wrong in ("depth=3", "arity", "arity=x", "balanced=2"):
        with pytest.raises(SystemExit, match=wrong.partition("=")[0]):
            validate.combinations([wrong])


def test_table_shows_means_and_marks_the_best() -> None:
    low, high = validate.Result(50, 40, 30, 0.01, 1, 2), validate.Result(70, 20, 30, 0.03, 3, 4)
    table = validate.table({("a", 0): low, ("a", 1): high, ("b", 0): high, ("b", 1): high}, ["x", "y"])
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    assert rows[1][:6] == ["a", "y", "**70.00**", "20.00", "**30.00**", "0.0300"]
    assert rows[4] == ["mean", "x", "60.00", "**30.00**", "**30.00**", "0.0200", "2.00", "3.00"]


def test_command_measures_every_combination(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = make_toy(tmp_path)
    packed = tmp_path / "data" / "toy" / "train.txt.xz"
    packed.parent.mkdir(parents=True)
    packed.write_bytes(lzma.compress(toy.train.source.read_bytes()))
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    validate.main(["--data", "toy,absent", "--set", "C=0.001,1", "--set", "arity=8"])
    printed = capsys.readouterr().out
    assert "absent: skipped" in printed
    assert "fixed: {'arity': 8}" in printed
    weak, strong = (
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in printed.splitlines()
        if line.startswith("| toy")
    )
    assert (weak[1], strong[1]) == ("C=0.001", "C=1.0")
    assert float(strong[2].strip("*")) > 90  # every word gives its label away
    assert all(0 <= float(row[5]) <= 1 and float(row[7]) > 0 for row in (weak, strong))
