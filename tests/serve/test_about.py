"""What is told of a model: its facts, its labels, its trees node by node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.serving import LABELS, TEXTS, client_of, text_model, vector_model

pytest.importorskip("starlette", reason="no starlette: pip install 'labeltree[serve]'")
pytest.importorskip("httpx", reason="no httpx: pip install 'labeltree[dev]'")

import labeltree
from labeltree.cli.reports import write_scorecard
from labeltree.cli.serve import named_scorecards
from labeltree.errors import ParameterError
from labeltree.explain.names import labels_below
from labeltree.model import Model
from labeltree.serve.about import labels_by_rows, read_scorecard
from labeltree.serve.app import create_app


def deep_model() -> Model:
    labels = [[f"label{row % 20}"] + (["often"] if row % 3 else []) for row in range(200)]
    texts = [f"word{row % 20} other{row % 7}" for row in range(200)]
    return labeltree.train(texts, labels, arity=2, max_leaves=2, trees=2, neighbours=0, threads=1)


@pytest.fixture(scope="module")
def model() -> Model:
    return deep_model()


@pytest.fixture(scope="module")
def client(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    score = tmp_path_factory.mktemp("about") / "score.json"
    write_scorecard(score, text_model(), text_model().test(TEXTS, LABELS, threads=1))
    forest = labeltree.train(TEXTS, LABELS, trees=0, neighbours=0, forest=2, threads=1)
    models = {"deep": model, "text": text_model(), "vector": vector_model(), "forest": forest}
    with client_of(models, scorecards={"text": score}) as client:
        yield client


def test_a_walk_meets_every_node_with_what_is_below_it(client: Any, model: Model) -> None:
    for number, tree in enumerate(model.label_trees):
        waiting, met = [0], set[int]()
        while waiting:
            node = waiting.pop()
            told = client.get(f"/v1/models/deep/tree?tree={number}&node={node}").json()
            here = told["path"][-1]
            met.add(node)
            below = labels_below(tree, node)
            assert (here["node"], here["n_labels"]) == (node, len(below))
            assert here["rows"] == model.label_counts[below].sum()
            assert set(here["labels"]) <= {model.labels[int(label)] for label in below}
            assert [each["node"] for each in told["path"]][:-1] == _above(tree, node)
            rows = [child["rows"] for child in told["children"]]
            assert rows == sorted(rows, reverse=True)
            for child in told["children"]:
                assert sum(child["parts"]) == (child["rows"] if child["n_children"] else 0)
            assert told["n_children"] == len(rows) == tree.n_children[node]
            waiting += [child["node"] for child in told["children"]]
        assert met == set(range(tree.n_nodes))


def _above(tree: Any, node: int) -> list[int]:
    found: list[int] = []
    while (node := int(tree.parent[node])) >= 0:
        found.insert(0, node)
    return found


def test_a_label_is_found_in_the_tree(client: Any, model: Model) -> None:
    told = client.get("/v1/models/deep/tree", params={"label": "label7"}).json()
    assert ["label7"] in [child["labels"] for child in told["children"]]
    some = client.get(f"/v1/models/deep/tree?node={told['path'][-1]['node']}&offset=1&limit=1").json()
    assert some["children"] == told["children"][1:2]


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("deep/tree?tree=2", "the model has 2"),
        ("forest/tree", "the model has 0"),
        ("deep/tree?node=999999", "there is no node 999999"),
        ("deep/tree?node=-1", "int"),
        ("deep/tree?limit=5000", "ask for fewer"),
        ("deep/tree?label=nothing", "not among"),
        ("deep/label", "label"),
    ],
)
def test_what_is_wrong_is_told(client: Any, question: str, told: str) -> None:
    answer = client.get(f"/v1/models/{question}")
    assert answer.status_code == 422
    assert told in answer.json()["detail"]


def test_a_label_that_is_not_there_is_not_found(client: Any) -> None:
    answer = client.get("/v1/models/deep/label?label=labl7")
    assert (answer.status_code, "did you mean" in answer.json()["detail"]) == (404, True)


def test_facts(client: Any, model: Model) -> None:
    told = client.get("/v1/models/deep/about").json()
    assert told["facts"]["n_labels"] == model.n_labels == sum(n["n_labels"] for n in told["labels_by_rows"])
    assert (told["n_trees"], told["scorecard"]) == (2, None)
    assert told["frequent"][0]["label"] == "often"
    told = client.get("/v1/models/text/about").json()
    assert told["facts"]["neighbours"]
    assert told["scorecard"]["measures"]["p@1"] == 1.0
    assert client.get("/v1/models/vector/about").json()["facts"]["n_features"] == 4
    card = client.get("/v1/models/text/label?label=bread").json()["label"]
    assert card == json.loads(json.dumps(text_model().label("bread").to_dict()))


def test_labels_by_rows() -> None:
    found = labels_by_rows(np.array([0, 1, 1, 2, 3, 4, 7, 8]))
    assert [(each.least, each.most, each.n_labels) for each in found] == [
        (0, 0, 1), (1, 1, 2), (2, 3, 2), (4, 7, 2), (8, 15, 1)
    ]  # fmt: skip


def test_scorecards_belong_to_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text('{"rows": "many"}')
    with pytest.raises(ParameterError, match="is no scorecard"):
        read_scorecard(bad)
    with pytest.raises(ParameterError, match="there is no model other"):
        create_app({"text": text_model()}, scorecards={"other": bad})
    models = {"a": Path("a.labeltree"), "b": Path("b.labeltree")}
    assert named_scorecards(("b=x.json",), models) == {"b": Path("x.json")}
    with pytest.raises(ParameterError, match="of which model"):
        named_scorecards(("x.json",), models)
    with pytest.raises(ParameterError, match=r"there is no model x, and no such file; there are a$"):
        named_scorecards(("x=y.json",), {"a": Path("a")})
    (tmp_path / "x=y.json").touch()
    monkeypatch.chdir(tmp_path)
    assert named_scorecards(("x=y.json",), {"a": Path("a")}) == {"a": Path("x=y.json")}
