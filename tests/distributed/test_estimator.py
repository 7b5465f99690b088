"""The classifier for Dask's collections: partitions become files, and the model is that of one machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import labeltree
from labeltree.errors import DataError, ParameterError, UnknownParameterError

distributed = pytest.importorskip("distributed", reason="no Dask: pip install 'labeltree[dask]'")
bag = pytest.importorskip("dask.bag", reason="no Dask: pip install 'labeltree[dask]'")

from labeltree.distributed import DaskLabelTreeClassifier  # noqa: E402

WORDS = ("bread", "sauce", "knife", "oven")
TEXTS = [f"{WORDS[n % 4]} and {WORDS[n // 4 % 4]} number {n % 7}" for n in range(60)]
LABELS = [sorted({WORDS[n % 4], WORDS[n // 4 % 4]}) for n in range(60)]


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Threads of this process: partitions are written and read as by others."""
    cluster = distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None)
    with cluster, distributed.Client(cluster) as found:
        yield found


@pytest.mark.parametrize("kind", ["pairs", "dicts", "two", "files"])
def test_the_model_is_that_of_one_machine(kind: str, client: Any, tmp_path: Path) -> None:
    expected = labeltree.train(TEXTS, LABELS, trees=2)
    given: list[Any] = []
    if kind == "pairs":
        given = [bag.from_sequence(zip(TEXTS, LABELS, strict=True), npartitions=3)]
    elif kind == "dicts":
        rows = [{"t": text, "l": labels} for text, labels in zip(TEXTS, LABELS, strict=True)]
        given = [bag.from_sequence(rows, npartitions=3)]
    elif kind == "two":
        given = [bag.from_sequence(TEXTS, npartitions=3), bag.from_sequence(LABELS, npartitions=3)]
    else:
        lines = [" ".join(f"__label__{x}" for x in own) for own in LABELS]
        for number in range(2):
            part = slice(30 * number, 30 * number + 30)
            content = zip(lines[part], TEXTS[part], strict=True)
            (tmp_path / f"{number}.txt").write_text("".join(f"{a} {b}\n" for a, b in content))
        given = [str(tmp_path / "*.txt")]
    names = {"text_column": "t", "labels_column": "l"} if kind == "dicts" else {}
    found = DaskLabelTreeClassifier(client=client, work_dir=tmp_path / "work", trees=2).fit(*given, **names)
    expected.save(tmp_path / "expected")
    found.model_.save(tmp_path / "found")
    assert (tmp_path / "found").read_bytes() == (tmp_path / "expected").read_bytes()


@pytest.mark.parametrize("times", [1, 10])
def test_the_threshold_is_left_to_the_data(times: int, client: Any, tmp_path: Path) -> None:
    """As by the local estimator, but where rows are few; and `predict_topk` goes by probabilities."""
    texts, labels = times * TEXTS, times * LABELS
    rows = bag.from_sequence(zip(texts, labels, strict=True), npartitions=2)
    found = DaskLabelTreeClassifier(client=client, work_dir=tmp_path, threshold="auto", k=3).fit(rows)
    expected = labeltree.train(texts, labels, tune_for="micro-f1" if times > 1 else None)
    expected.save(tmp_path / "expected")
    found.model_.save(tmp_path / "found")
    assert (tmp_path / "found").read_bytes() == (tmp_path / "expected").read_bytes()
    assert (found.model_.rule is None) == (times == 1)
    asked, local = bag.from_sequence(TEXTS[:9], npartitions=2), found.to_local()
    assert found.predict_topk(asked).compute() == local.predict_topk(TEXTS[:9])
    predicted = [sorted(local.classes_[row.indices]) for row in local.predict(TEXTS[:9])]
    if times > 1:
        assert predicted == [sorted(name for name, _ in row) for row in expected.predict(TEXTS[:9])]


def test_what_prediction_would_refuse_is_told_before_training(client: Any) -> None:
    with pytest.raises(ParameterError, match="threshold must be"):
        DaskLabelTreeClassifier(client=client, threshold="atuo").fit("nowhere.txt")


def test_predictions_are_those_of_the_local_estimator(client: Any) -> None:
    rows = bag.from_sequence(zip(TEXTS, LABELS, strict=True), npartitions=3)
    found = DaskLabelTreeClassifier(client=client).fit(rows)
    assert found.client_ is client
    local = found.to_local()
    lazy = found.predict_topk(bag.from_sequence(TEXTS, npartitions=2), 2)
    assert lazy.compute() == local.predict_topk(TEXTS, 2) == [row[:2] for row in local.predict_topk(TEXTS)]
    empty = bag.from_sequence([TEXTS[0]], npartitions=1).filter(lambda text: False)
    assert found.predict_topk(empty, 2).compute() == []


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (("a text", "label"), "partition 0, row 1: labels must be a list, but are 'label'"),
        ((None, ["label"]), "partition 0, row 1: the text must be a string, but is None"),
        ("a text", "partition 0, row 1: must be a pair"),
    ],
)
def test_bad_rows_are_named(row: Any, told: str, client: Any) -> None:
    rows = bag.from_sequence([("good", ["x"]), row], npartitions=1)
    with pytest.raises(DataError, match=told):
        DaskLabelTreeClassifier(client=client).fit(rows)


def test_what_is_no_collection_is_refused(client: Any) -> None:
    classifier = DaskLabelTreeClassifier(client=client)
    with pytest.raises(DataError, match=r"labeltree\.train takes what is in memory"):
        classifier.fit(TEXTS, LABELS)
    with pytest.raises(ParameterError, match="not fitted"):
        classifier.to_local()
    with pytest.raises(ParameterError, match="one machine only"):
        DaskLabelTreeClassifier(client=client, nodes="dense").fit(
            bag.from_sequence(zip(TEXTS, LABELS, strict=True), npartitions=1)
        )
    with pytest.raises(ParameterError, match=r"client must be a dask\.distributed\.Client"):
        DaskLabelTreeClassifier(client=3).fit(TEXTS)
    with pytest.raises(UnknownParameterError):
        DaskLabelTreeClassifier(threes=2)
