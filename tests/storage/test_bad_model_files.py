"""Files that are no model, damaged models, and forged ones whose digest fits: all are refused by name."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import save as safetensors_bytes
from support.small_data import make_toy, with_effect

import labeltree
from labeltree import cli
from labeltree.errors import (
    CorruptedModelError,
    LabelTreeError,
    ModelFileError,
    NewerModelError,
    NotAModelError,
    TruncatedModelError,
)
from labeltree.kernels.sparse.arrays import SparseParameters
from labeltree.model import Model
from labeltree.nodes.dense.quantized import QuantizedParameters
from labeltree.storage.container import FORMAT_VERSION, read_model, write_model

TOY = make_toy(80)
FORMAT = rb"\"format\":" + str(FORMAT_VERSION).encode()
Tensors = dict[str, np.ndarray]


@pytest.fixture(scope="module")
def model() -> Model:
    return labeltree.train(TOY.texts, TOY.Y, nodes="dense", dim=200, epochs=2, arity=2, max_leaves=3, trees=2)


@pytest.fixture(scope="module")
def content(model: Model, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good model file."""
    path = tmp_path_factory.mktemp("models") / "good.labeltree"
    model.save(path)
    assert path.stat().st_size > 20_000
    return path.read_bytes()


@pytest.fixture(scope="module")
def sparse_content(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A good file of sparse nodes: several chunks, some of them without weights."""
    path = tmp_path_factory.mktemp("models") / "sparse.labeltree"
    Y = np.pad(TOY.indicator, ((0, 0), (0, 70)))  # a second chunk below the root, of labels without rows
    labeltree.train(TOY.texts, Y, nodes="sparse", tree="flat", prune=0.0).save(path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def softmax_contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Good files with a softmax over siblings, of dense and of sparse nodes."""
    folder, found = tmp_path_factory.mktemp("models"), {}
    for nodes in ("dense", "sparse"):
        how: dict[str, Any] = dict(
            nodes=nodes, link="hsm", dim=20, epochs=2, arity=2, max_leaves=3, prune=0.0
        )
        labeltree.train(TOY.texts, TOY.Y, **with_effect(**how)).save(folder / nodes)
        found[nodes] = (folder / nodes).read_bytes()
    return found


def refuse(path: Path, error: type[LabelTreeError] = ModelFileError, **options: Any) -> str:
    with pytest.raises(error) as caught:
        labeltree.load(path, **options)
    message = str(caught.value)
    assert path.name in message
    assert len(message) < 1000
    return message


@pytest.mark.slow
def test_truncated_at_every_kilobyte(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "cut.labeltree"
    lengths = [*range(0, len(content), 1024), *range(1, 8), len(content) - 1, len(content) - 32]
    for length in lengths:
        path.write_bytes(content[:length])
        refuse(path, TruncatedModelError)
        refuse(path, TruncatedModelError, verify=False)
    assert len(lengths) > 25


@pytest.mark.slow
def test_flipped_bytes(content: bytes, tmp_path: Path) -> None:
    """Damage anywhere is found by the digest; without it, what loads still answers with probabilities."""
    path = tmp_path / "flipped.labeltree"
    header = int.from_bytes(content[:8], "little")
    random = np.random.default_rng(0)
    places = [*range(8), *random.integers(8, 8 + header, 80), *random.integers(8 + header, len(content), 120)]
    n_loaded = 0
    for place in map(int, places):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(random.integers(8))
        path.write_bytes(damaged)
        refuse(path)
        try:
            loaded = labeltree.load(path, verify=False)
        except ModelFileError:
            continue
        n_loaded += 1
        ids, probabilities = loaded.predict_arrays(TOY.texts[:5], k=3)
        assert np.all((ids >= -1) & (ids < loaded.n_labels))
        assert not np.any(probabilities < 0)
    assert n_loaded > 20


def test_bytes_changed_in_bulk(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "damaged.labeltree"
    half = len(content) // 2
    for damaged in (
        content + b"\0",
        content + content,
        content[:half] + content[half + 64 :],
        content[:half] + bytes(64) + content[half:],
        content[:half] + bytes(len(content) - half),
        bytes(len(content)),
        content[64:],
        content[::-1],
        content.replace(FORMAT, FORMAT[:-1] + b"0"),
    ):
        assert damaged != content
        path.write_bytes(damaged)
        refuse(path)


def test_a_newer_format_is_named(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "newer.labeltree"
    path.write_bytes(content.replace(FORMAT, FORMAT[:-1] + b"9"))
    message = refuse(path, NewerModelError)
    assert "9" in message
    assert "newer labeltree" in message


def npz_bytes() -> bytes:
    file = io.BytesIO()
    np.savez(file, weights=np.ones(3))
    return file.getvalue()


def zip_bytes() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model", "nothing")
    return file.getvalue()


OTHER_FILES: dict[str, bytes] = {
    "text.txt": b"__label__a one two\n" * 20,
    "json.json": b'{"__metadata__": {}}\n',
    "numbers.bin": np.arange(1000.0).tobytes(),
    "weights.npz": npz_bytes(),
    "archive.zip": zip_bytes(),
    "pickle.pkl": pickle.dumps({"weights": [1.0] * 50}),
    "packed.gz": gzip.compress(b"x" * 1000),
    "other.safetensors": safetensors_bytes({"weights": np.ones(3, np.float32)}),
    "other2.safetensors": safetensors_bytes({"a": np.ones(3, np.float32)}, {"format": "pt"}),
    "image.png": b"\x89PNG\r\n\x1a\n" + bytes(64),
    "program": b"\x7fELF\x02\x01\x01" + bytes(100),
    "ones.bin": b"\xff" * 200,
}


@pytest.mark.parametrize("name", OTHER_FILES)
def test_other_files_are_not_models(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(OTHER_FILES[name])
    refuse(path, NotAModelError)
    refuse(path, NotAModelError, verify=False)


def test_names_that_are_no_files(tmp_path: Path, model: Model) -> None:
    refuse(tmp_path)
    refuse(tmp_path / "missing")
    for name in ("", "a\0b", None):
        with pytest.raises(ModelFileError):
            labeltree.load(name)  # type: ignore[arg-type]
    for name in ("", "a\0b", None, tmp_path, tmp_path / "missing" / "file"):
        with pytest.raises(ModelFileError):
            model.save(name)  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def replace(name: str, change: Callable[[np.ndarray], Any]) -> Callable[[Tensors, dict[str, Any]], None]:
    def forge(tensors: Tensors, metadata: dict[str, Any]) -> None:
        tensors[name] = np.ascontiguousarray(change(tensors[name]))

    return forge


def remove(name: str) -> Callable[[Tensors, dict[str, Any]], None]:
    return lambda tensors, metadata: tensors.__delitem__(name)


def tell(**changes: Any) -> Callable[[Tensors, dict[str, Any]], None]:
    return lambda tensors, metadata: metadata.update(changes)


def configure(**changes: Any) -> Callable[[Tensors, dict[str, Any]], None]:
    return lambda tensors, metadata: metadata["config"].update(changes)


def expert(place: int, **changes: Any) -> Callable[[Tensors, dict[str, Any]], None]:
    return lambda tensors, metadata: metadata["experts"][place].update(changes)


def without(key: str) -> Callable[[Tensors, dict[str, Any]], None]:
    return lambda tensors, metadata: metadata["experts"][0].__delitem__(key)


def choose(values: Any) -> Callable[[Tensors, dict[str, Any]], None]:
    """For the first expert, by a config that leaves all to the data."""

    def change(_: Tensors, metadata: dict[str, Any]) -> None:
        metadata["config"] |= {"arity": 0, "C": 0.0}
        metadata["experts"][0]["config"] = values

    return change


def set_to(place: Any, value: Any) -> Callable[[np.ndarray], np.ndarray]:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[place] = value
        return array

    return change


# what is changed in a good model, which is then written again with a digest that fits; what the message names
FORGED: dict[str, tuple[Callable[[Tensors, dict[str, Any]], None], str]] = {
    "no embedding": (remove("nodes.0.embedding"), "nodes.0.embedding"),
    "no second bias": (remove("nodes.1.bias"), "nodes.1.bias"),
    "no tree": (remove("tree.0.parent"), "tree.0.parent"),
    "no label names": (remove("labels.names"), "labels.names"),
    "no label counts": (remove("labels.counts"), "labels.counts"),
    "no words": (remove("features.words"), "features.words"),
    "no idf": (remove("features.idf"), "features.idf"),
    "embedding too short": (replace("nodes.0.embedding", lambda a: a[:-1]), "nodes.0.embedding"),
    "vectors of length 0": (
        lambda tensors, metadata: [
            replace(f"nodes.0.{name}", lambda a: a[:, :0])(tensors, metadata)
            for name in ("embedding", "weights")
        ],
        "nodes.0.weights has vectors of length 0",
    ),
    "embedding too wide": (replace("nodes.0.embedding", lambda a: np.c_[a, a]), "nodes.0.embedding"),
    "embedding of another type": (replace("nodes.0.embedding", lambda a: a.astype("f8")), "float64"),
    "scale of NaN": (replace("nodes.0.embedding_scale", set_to(3, np.nan)), "nodes.0.embedding_scale"),
    "infinite scale": (replace("nodes.1.weight_scale", set_to(0, np.inf)), "nodes.1.weight_scale"),
    "bias of NaN": (replace("nodes.0.bias", set_to(1, np.nan)), "nodes.0.bias"),
    "bias in two axes": (replace("nodes.0.bias", lambda a: a[:, None]), "nodes.0.bias"),
    "tree with a cycle": (replace("tree.0.parent", set_to(1, 1)), "tree.0"),
    "tree beyond its end": (replace("tree.0.parent", set_to(-1, 10**6)), "tree.0"),
    "tree with a label twice": (replace("tree.0.label", lambda a: np.minimum(a, 10)), "tree.0"),
    "tree of floats": (replace("tree.0.parent", lambda a: a.astype("f4")), "tree.0"),
    "tree of one node": (replace("tree.0.parent", lambda a: a[:1]), "tree.0"),
    "label counts too few": (replace("labels.counts", lambda a: a[:-1]), "labels.counts"),
    "label counts negative": (replace("labels.counts", set_to(0, -1)), "labels.counts"),
    "label offsets falling": (replace("labels.offsets", lambda a: a[::-1]), "labels"),
    "label offsets wrapping": (replace("labels.offsets", lambda a: np.r_[0, 2**63 - 1, -2, a[3:]]), "labels"),
    "label offsets too far": (replace("labels.offsets", set_to(-1, 10**9)), "labels"),
    "label names equal": (replace("labels.names", lambda a: a * 0 + ord("a")), "labels"),
    "words equal": (replace("features.words", lambda a: a * 0 + ord("a")), "features.words"),
    "word offsets negative": (replace("features.word_offsets", set_to(0, -5)), "features"),
    "idf of 0": (replace("features.idf", set_to(0, 0)), "features.idf"),
    "idf too long": (replace("features.idf", lambda a: np.r_[a, a]), "features.idf"),
    "buckets from nowhere": (replace("features.bucket_row", lambda a: np.zeros(5, "i4")), "bucket_row"),
    "no experts": (tell(experts=[]), "experts is []"),
    "experts are missing": (lambda tensors, metadata: metadata.pop("experts"), "experts"),
    "experts as an object": (tell(experts={"tree": 2}), "experts is {'tree': 2}"),
    "experts as numbers": (tell(experts=[0, 1]), "model"),
    "an expert of another kind of value": (expert(0, kind=["tree"]), "kind of expert is ['tree']"),
    "an expert without a kind": (without("kind"), "kind"),
    "an expert without nodes": (without("nodes"), "nodes"),
    "an expert without a link": (without("link"), "link"),
    "an expert without a number": (without("number"), "number"),
    "an expert that is not there": (expert(1, number=9), "tree.9.parent"),
    "an expert twice": (expert(1, number=0), "number of an expert is 0"),
    "an expert of a negative number": (expert(1, number=-1), "number of an expert is -1"),
    "an expert of a number as text": (expert(1, number="1"), "number of an expert is '1'"),
    "an expert of a true number": (expert(1, number=True), "number of an expert is True"),
    "an expert of other nodes": (expert(1, nodes="sparse"), "nodes.1.chunk_bucket"),
    "nodes as a number": (expert(1, nodes=3), "kind of nodes is 3"),
    "a link as a number": (expert(1, link=3), "kind of link is 3"),
    "negative examples": (tell(n_examples=-1), "n_examples"),
    "fewer examples than of a label": (tell(n_examples=3), "n_examples"),
    "examples as text": (tell(n_examples="many"), "n_examples"),
    "features of the other kind": (tell(features="vectors"), "features.n_columns"),
    "features as list": (tell(features=["text"]), "features"),
    "config is a list": (tell(config=[]), "model"),
    "lr beyond a float": (configure(lr=10**400), "lr must be finite"),
    "n_examples beyond 64 bits": (tell(n_examples=2**63), "n_examples"),
    "half a surrogate pair": (configure(tree="\ud800"), "surrogate"),
    "half a surrogate pair in a key": (tell(**{"\udfff": 1}), "surrogate"),
    "config is missing": (lambda tensors, metadata: metadata.pop("config"), "config"),
    "config with a parameter missing": (
        lambda tensors, metadata: metadata["config"].pop("lr"),
        "config has no lr",
    ),
    "config out of range": (configure(dim=0), "dim must be at least 1"),
    "config with n-grams": (configure(word_ngrams=2), "bucket_row"),
    "config of another type": (configure(lowercase="yes"), "lowercase"),
    "an expert without what was chosen": (without("config"), "config"),
    "chosen is null": (choose(None), "expert 0 has config None"),
    "chosen is a list": (choose(["arity"]), "expert 0 has config ['arity']"),
    "chosen that is never left to the data": (choose({"dim": 3}), "expert 0 has config {'dim': 3}"),
    "chosen though it was given": (expert(1, config={"arity": 3}), "does not leave to the data"),
    "chosen out of range": (choose({"arity": -1}), "arity must be at least 0"),
    "chosen of another type": (choose({"arity": True}), "arity"),
    "chosen is 0": (choose({"arity": 0}), "what is chosen is above 0"),
    "one of two chosen is 0": (choose({"arity": 4, "C": 0.0}), "what is chosen is above 0"),
}


@pytest.mark.parametrize("case", FORGED)
def test_forged_models_are_refused(case: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "forged.labeltree"
    path.write_bytes(content)
    tensors, metadata = read_model(path)
    forge, words = FORGED[case]
    forge(tensors, metadata)
    write_model(path, tensors, metadata)
    assert words in refuse(path, CorruptedModelError)


# what a later version may have, by the word that its message names
NEWER: dict[str, tuple[Callable[[Tensors, dict[str, Any]], None], str]] = {
    "features": (
        tell(features="images"),
        "features 'images' is unknown: this version of labeltree has joined, embedded, text,",
    ),
    "an expert": (
        expert(1, kind="oracle"),
        "expert 'oracle' is unknown: this version of labeltree has tree, neighbours, forest;",
    ),
    "nodes": (expert(1, nodes="round"), "nodes 'round' is unknown: this version of labeltree has sparse,"),
    "a link": (expert(1, link="probit"), "link 'probit' is unknown: this version of labeltree has plt, hsm;"),
    "a parameter": (configure(colour="red"), "unknown parameter 'colour'"),
}


@pytest.mark.parametrize("case", NEWER)
def test_what_only_a_newer_version_knows_is_named(case: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "newer.labeltree"
    path.write_bytes(content)
    tensors, metadata = read_model(path)
    forge, words = NEWER[case]
    forge(tensors, metadata)
    write_model(path, tensors, metadata)
    message = refuse(path, NewerModelError)
    assert words in message
    assert message.endswith("install a newer labeltree")


def test_experts_are_what_they_say_not_what_the_config_says(content: bytes, tmp_path: Path) -> None:
    """Their order, too, is free: tensors are found by number."""
    path, other = tmp_path / "m", tmp_path / "n"
    path.write_bytes(content)
    tensors, metadata = read_model(path)
    metadata["config"] |= {"trees": 7, "nodes": "sparse", "dim": 5}
    metadata["experts"].reverse()
    write_model(other, tensors, metadata)
    expected, found = (labeltree.load(each).probability(TOY.texts, ["topic-1"]) for each in (path, other))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    metadata["experts"].pop()
    write_model(other, tensors, metadata)
    assert len(labeltree.load(other).label_trees) == 1


def shift(name: str, amount: int) -> Callable[[Tensors, dict[str, Any]], None]:
    """All numbers but the first and the last, moved."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[1:-1] += array.dtype.type(amount)
        return array

    return replace(name, change)


WRAPPING = np.array([0, 2**63 - 1, -2], np.int64)  # whose differences are positive in 64 bits

# the same for sparse nodes: whatever is wrong would be read beyond the end of an array
FORGED_SPARSE: dict[str, tuple[Callable[[Tensors, dict[str, Any]], None], str]] = {
    **{
        f"no {name}": (remove(f"nodes.0.{name}"), f"nodes.0.{name} is missing")
        for name in SparseParameters._fields
    },
    **{
        f"{name} of another type": (replace(f"nodes.0.{name}", lambda a: a.astype("f8")), f"nodes.0.{name}")
        for name in SparseParameters._fields
    },
    **{
        f"{name} too short": (replace(f"nodes.0.{name}", lambda a: a[:-1]), "nodes.0")
        for name in SparseParameters._fields
    },
    **{
        f"{name} too long": (replace(f"nodes.0.{name}", lambda a: np.concatenate([a, a[-1:]])), "nodes.0")
        for name in SparseParameters._fields
    },
    **{
        f"{name} in another shape": (replace(f"nodes.0.{name}", lambda a: a[:, None]), f"nodes.0.{name}")
        for name in SparseParameters._fields
    },
    **{
        f"{name} without axes": (replace(f"nodes.0.{name}", lambda a: a.ravel()[0]), "")
        for name in SparseParameters._fields
    },
    **{
        f"{name} {how}": (replace(f"nodes.0.{name}", change), f"nodes.0.{name}")
        for name in ("chunk_bucket", "chunk_row", "chunk_entry")
        for how, change in {
            "falling": lambda a: a[::-1],
            "negative": set_to(1, -1),
            "beyond the end": set_to(1, 10**12),
            "not from 0": set_to(0, 1),
            "not to the end": set_to(-1, 3),
            "wrapping": lambda a: np.r_[WRAPPING, a[len(WRAPPING) :]],
        }.items()
    },
    "rows of another chunk": (shift("nodes.0.chunk_row", -1), "nodes.0.bucket"),
    "entries of another chunk": (shift("nodes.0.chunk_entry", -1), "nodes.0.bucket"),
    "buckets of another chunk": (shift("nodes.0.chunk_bucket", 1), "nodes.0"),
    "bucket before its chunk": (replace("nodes.0.bucket", set_to((1, 0), -5)), "nodes.0.bucket"),
    "bucket behind its chunk": (replace("nodes.0.bucket", set_to((1, 0), 10**9)), "nodes.0.bucket"),
    "last bucket too long": (replace("nodes.0.bucket", lambda a: a + (a == a.max())), "nodes.0.bucket"),
    "entries before their chunk": (replace("nodes.0.bucket", set_to((1, 1), -5)), "nodes.0.bucket"),
    "entries behind their chunk": (replace("nodes.0.bucket", set_to((1, 1), 2**31 - 1)), "nodes.0.bucket"),
    "buckets in the wrong order": (replace("nodes.0.bucket", lambda a: a[::-1]), "nodes.0.bucket"),
    "a longer row": (replace("nodes.0.length", set_to(0, 255)), "nodes.0.bucket"),
    "rows of other lengths": (replace("nodes.0.length", lambda a: a * 0 + 1), "nodes.0.bucket"),
    "scale of NaN": (replace("nodes.0.scale", set_to(3, np.nan)), "nodes.0.scale"),
    "bias of NaN": (replace("nodes.0.bias", set_to(3, np.nan)), "nodes.0.bias"),
    "calibration of NaN": (replace("nodes.0.calibration", set_to(2, np.nan)), "nodes.0.calibration"),
    "calibration that falls": (replace("nodes.0.calibration", set_to(1, -1.0)), "nodes.0.calibration"),
    "calibration that is flat": (replace("nodes.0.calibration", set_to(0, 0.0)), "nodes.0.calibration"),
    "a tree of other chunks": (lambda tensors, metadata: half_tree(tensors), "nodes.0"),
    "an expert of dense nodes": (expert(0, nodes="dense"), "nodes.0.weights is missing"),
    "config of unknown nodes": (configure(nodes="round"), "nodes must be one of"),
}


def half_tree(tensors: Tensors) -> None:
    """The same labels below two nodes: other chunks, and one more of them."""
    n_labels = len(tensors["tree.0.label"]) - 1
    parent = np.r_[-1, 0, 0, np.repeat([1, 2], [10, n_labels - 10])]
    tree = labeltree.LabelTree(parent, np.r_[-1, -1, -1, np.arange(n_labels)])
    tensors |= {name: np.asarray(array) for name, array in tree.tensors("tree.0").items()}


@pytest.mark.parametrize("case", FORGED_SPARSE)
def test_forged_sparse_models_are_refused(case: str, sparse_content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "forged.labeltree"
    path.write_bytes(sparse_content)
    tensors, metadata = read_model(path)
    forge, words = FORGED_SPARSE[case]
    forge(tensors, metadata)
    write_model(path, tensors, metadata)
    assert words in refuse(path, CorruptedModelError)


def scrambled(tensor: NDArray[Any], random: np.random.Generator, is_one_byte: bool) -> NDArray[Any]:
    """A copy with other bytes: one of them, or as many as there are."""
    copy = tensor.copy()
    data = copy.view(np.uint8).reshape(-1)
    places = random.integers(0, len(data), 1 if is_one_byte else len(data))
    data[places] = random.integers(0, 256, len(places))
    return copy


@pytest.mark.parametrize("name", SparseParameters._fields)
def test_random_sparse_tensors(name: str, sparse_content: bytes, tmp_path: Path) -> None:
    """Any bytes of a tensor, with a digest that fits: refused, or answered from what is there."""
    path = tmp_path / "random.labeltree"
    path.write_bytes(sparse_content)
    good, metadata = read_model(path)
    random = np.random.default_rng(sum(name.encode()))
    for number in range(30):
        tensor = scrambled(good[f"nodes.0.{name}"], random, number < 20)
        write_model(path, good | {f"nodes.0.{name}": tensor}, metadata)
        try:
            loaded = labeltree.load(path)
        except ModelFileError:
            assert name not in ("feature", "entry")
            continue
        for search in ("exact", "beam"):
            ids, probabilities = loaded.predict_arrays(TOY.texts[:5], k=3, search=search)
            assert np.all((ids >= -1) & (ids < loaded.n_labels))
            assert np.all((probabilities >= 0) & (probabilities <= 1))
        assert loaded.probability(TOY.texts[:2], loaded.label_names).shape == (2, loaded.n_labels)


# a softmax over siblings of which one is certain would be inf / inf
FORGED_SOFTMAX: dict[str, tuple[Callable[[Tensors, dict[str, Any]], None], str]] = {
    "a certain leaf": (
        replace("nodes.0.bias", set_to(-1, np.inf)),
        "nodes.0.bias is not +infinity at the root",
    ),
    "a certain child of the root": (replace("nodes.0.bias", set_to(1, np.inf)), "nodes.0.bias"),
    "all nodes certain": (replace("nodes.0.bias", lambda a: a * 0 + np.inf), "nodes.0.bias"),
    "a root of another bias": (replace("nodes.0.bias", set_to(0, 3.0)), "nodes.0.bias"),
    "an impossible root": (replace("nodes.0.bias", set_to(0, -np.inf)), "nodes.0.bias"),
    "a bias of NaN": (replace("nodes.0.bias", set_to(2, np.nan)), "nodes.0.bias"),
    "a root of NaN": (replace("nodes.0.bias", set_to(0, np.nan)), "nodes.0.bias"),
    "an unknown link in the config": (configure(link="probit"), "link must be one of plt, hsm"),
}


@pytest.mark.parametrize("nodes", ["dense", "sparse"])
@pytest.mark.parametrize("case", FORGED_SOFTMAX)
def test_forged_softmax_models_are_refused(
    case: str, nodes: str, softmax_contents: dict[str, bytes], tmp_path: Path
) -> None:
    path = tmp_path / "forged.labeltree"
    path.write_bytes(softmax_contents[nodes])
    tensors, metadata = read_model(path)
    forge, words = FORGED_SOFTMAX[case]
    with np.errstate(invalid="ignore"):
        forge(tensors, metadata)
    write_model(path, tensors, metadata)
    assert words in refuse(path, CorruptedModelError)
    assert words in refuse(path, CorruptedModelError, verify=False)


def test_certain_nodes_of_a_model_that_is_told_to_be_a_softmax(model: Model, tmp_path: Path) -> None:
    """A label of every row is certain in a tree of logistics, which no softmax has."""
    path = tmp_path / "told.labeltree"
    labels = [["always", *some] for some in TOY.Y]
    labeltree.train(TOY.texts, labels, nodes="dense", tree="flat", dim=2, epochs=1).save(path)
    tensors, metadata = read_model(path)
    expert(0, link="hsm")(tensors, metadata)
    write_model(path, tensors, metadata)
    assert "link hsm" in refuse(path, CorruptedModelError)


@pytest.mark.parametrize(
    ("nodes", "name"),
    [("dense", name) for name in QuantizedParameters._fields]
    + [("sparse", name) for name in SparseParameters._fields],
)
def test_random_softmax_tensors(
    nodes: str, name: str, softmax_contents: dict[str, bytes], tmp_path: Path
) -> None:
    """As above: no label comes from nowhere, and no probability is NaN."""
    path = tmp_path / "random.labeltree"
    path.write_bytes(softmax_contents[nodes])
    good, metadata = read_model(path)
    random = np.random.default_rng(sum(name.encode()))
    n_loaded = 0
    for number in range(15):
        tensor = scrambled(good[f"nodes.0.{name}"], random, number < 10)
        write_model(path, good | {f"nodes.0.{name}": tensor}, metadata)
        try:
            loaded = labeltree.load(path)
        except ModelFileError:
            continue
        n_loaded += 1
        for search in ("exact", "beam"):
            ids, probabilities = loaded.predict_arrays(TOY.texts[:5], k=3, search=search)
            assert np.all((ids >= -1) & (ids < loaded.n_labels))
            assert np.all((probabilities >= 0) & (probabilities <= 1))
        loaded.predict_rows(TOY.texts[:2], 0.3)
        assert loaded.probability(TOY.texts[:2], loaded.label_names).shape == (2, loaded.n_labels)
    assert n_loaded > 0 or name in ("chunk_bucket", "chunk_row", "chunk_entry", "bucket", "length")


@pytest.mark.parametrize("command", ["test", "predict", "prob", "inspect"])
def test_the_command_line_has_no_traceback(
    command: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data.txt"
    data.write_text("__label__topic-1 word3\n")
    broken = bytearray(content)
    broken[-100] ^= 1
    files = {"cut": content[:3000], "broken": bytes(broken), "empty": b""} | OTHER_FILES
    for name, some in files.items():
        path = tmp_path / name
        path.write_bytes(some)
        arguments = [command, str(path)] + ([str(data)] if command != "inspect" else [])
        assert cli.main(arguments) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith("Error: ")
        assert captured.err.count("\n") == 1
        assert name in captured.err
    assert sorted(os.listdir(tmp_path)) == sorted([*files, "data.txt"])
