"""XML-CNN and Kim-CNN: data, word vectors, and the page; with torch also all networks in little."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import xml_cnn, xml_cnn_page
from experiments.ledger import Ledger
from experiments.xml_cnn import read_data
from experiments.xml_cnn_page import NEW, OLD, judge_choices, judge_order, of_main_table, result_table

NO_TORCH = "torch is not installed: pip install 'labeltree[torch]'"


def run(encoder: str, output: str, p_1: float, **more: Any) -> dict[str, Any]:
    costs = dict(train_cpu_seconds=10.0, test_us_per_row=50.0, epochs=7, best_epoch=4, rate=0.01)
    return {"encoder": encoder, "output": output, "p@1": p_1, "p@3": 30.0, "p@5": 20.0, **costs, **more}


XT = {"p@1": 60.0, "p@3": 31.0, "p@5": 21.0, "train_cpu_seconds": 2.0, "test_us_per_row": 5.0}


def test_rows_are_cut_numbered_and_held_out_in_tens(tmp_path: Path) -> None:
    train, test = tmp_path / "train", tmp_path / "test"
    train.write_text("".join(f"__label__A{i % 3} Common word{i} common{i % 2}\n" for i in range(230)))
    test.write_text("__label__a1 __label__new common nothing common1 common\n")
    data = read_data(train, test, 3)
    assert len(data.held_out.labels) == 20  # rows 90 to 99 and 190 to 199
    assert data.held_out.labels[0].tolist() == [0]
    assert len(data.train.labels) == len(data.texts) == 210
    assert data.vocabulary == ["common", "common0", "common1"]  # others are there once
    assert data.train.words[1].tolist() == [2, 1, 4]
    assert data.test.words[0].tolist() == [2, 1, 4]
    assert data.test.labels[0].tolist() == [1, -1]
    assert data.n_labels == 3


def test_the_page_says_who_is_above() -> None:
    records = [run(OLD, "flat", 50.0), run(NEW, "flat", 55.0), run(NEW, "plt", 57.0), run(NEW, "plt", 58.0)]
    assert "+2.5/+1.0/+1.0; XT is above, as in the paper" in judge_order("some", records, {"XT": XT})
    low = XT | {"p@1": 57.0}
    assert "-0.5/+1.0/+1.0; XT is not above at each k" in judge_order("some", records, {"XT": low})
    assert "no run of XT" in judge_order("some", records, {})
    told = judge_choices("some", records)
    assert any("along words instead of along vectors' numbers: +5.0/+0.0/+0.0" in line for line in told)
    assert any("label tree instead of a sigmoid per label, XML-CNN, corrected: +2.5" in line for line in told)
    table = result_table(records, {"XT": XT})
    assert "57.50 ± 0.71" in table
    assert "4 of 7, 4 of 7" in table
    assert table.count("\n") == 5


def test_the_main_tables_systems_stand_beside() -> None:
    found = of_main_table("cooking-stackexchange", Ledger(Path("docs/experiments/table1.jsonl")))
    assert set(found) == set(xml_cnn_page.BESIDE)
    assert of_main_table("no such set") == {}


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    for name in [
        name for name in sys.modules if name.startswith(("labeltree.torch", "experiments.xml_cnn_n"))
    ]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(SystemExit, match="torch"):
        xml_cnn.main(["--quick", "--output", str(tmp_path)])


@pytest.fixture
def settings() -> Any:
    pytest.importorskip("torch.nn", reason=NO_TORCH)
    from experiments.xml_cnn_networks import Settings

    return Settings(dim=10, length=18, maps=4, hidden=10, kim_maps=5)


def test_networks_take_words_of_any_length(settings: Any) -> None:
    import torch

    from experiments.xml_cnn_networks import ENCODERS

    vectors = torch.randn(9, 10)
    vectors[0] = 0.0
    for name, kind in ENCODERS.items():
        encoder = kind(vectors, settings).eval()
        for length in (encoder.shortest, 18):
            found = encoder(torch.randint(0, 9, (3, length)))
            assert found.shape == (3, encoder.out_features), name
    assert ENCODERS[OLD](vectors, settings).windows[0].in_channels == 18  # places of words
    assert ENCODERS[NEW](vectors, settings).windows[0].in_channels == 10  # numbers of their vectors


def test_batches_have_every_row_once(settings: Any) -> None:
    random = np.random.default_rng(0)
    rows = xml_cnn.Rows(
        [np.arange(1, 1 + n) for n in random.integers(0, 15, 50)], [np.array([n]) for n in range(50)]
    )
    for order in (None, random):
        found = list(xml_cnn.batches(rows, 8, 4, order))
        assert sorted(np.concatenate([chosen for *_, chosen in found]).tolist()) == list(range(50))
        for words, labels, chosen in found:
            assert words.shape[1] >= 4
            assert [label[0] for label in labels] == chosen.tolist()
            assert (words > 0).sum(dim=1).tolist() == [len(rows.words[row]) for row in chosen]


def test_given_vectors_are_used(settings: Any, tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("2 3\nbread 1 2 3\nother 0 0 0\n")
    found = xml_cnn.word_vectors(["salt", "bread"], 9, path)
    assert found.shape == (4, 3)
    assert found[3].tolist() == [1.0, 2.0, 3.0]
    assert not found[0].any()
    with pytest.raises(SystemExit, match="no vectors"):
        xml_cnn.word_vectors(["salt"], 9, path)


@pytest.mark.slow
def test_quick_runs_every_network_and_resumes(
    settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["--quick", "--output", str(tmp_path)]
    xml_cnn.main(given)
    page = (tmp_path / "xml_cnn.md").read_text()
    assert "XML-CNN, corrected" in page
    lines = (tmp_path / "xml_cnn.jsonl").read_text().splitlines()
    assert len(lines) == 6
    monkeypatch.setattr(xml_cnn, "measure", None)
    xml_cnn.main(given)
    assert (tmp_path / "xml_cnn.md").read_text() == page
    with pytest.raises(SystemExit, match="unknown system"):
        xml_cnn.main([*given, "--systems", "LSTM/plt"])
