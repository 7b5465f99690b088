"""Every parameter of a model, once: its default, bounds and help.

Command-line options, estimator arguments, the documentation's table and the model file's header are all
made from the fields of :class:`Config`. Importing this module is free (no numpy, no numba).
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from labeltree.errors import ParameterError


class Parameter(NamedTuple):
    """One field of :class:`Config`, as the command line and the docs need it."""

    name: str
    type: type
    default: Any
    help: str
    low: float | None
    high: float | None
    choices: tuple[str, ...]
    open_choice: bool  # other strings are allowed too (a file name)
    group: str

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")


def _parameter(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
    open_choice: bool = False,
    group: str,
) -> Any:
    metadata = {"help": help, "low": low, "high": high, "choices": choices}
    metadata |= {"open_choice": open_choice, "group": group}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """What determines a model, besides its data. The same config, data and machine give the same bytes."""

    label_prefix: str = _parameter("__label__", "What a label starts with in fastText lines.", group="data")
    weighted_words: bool = _parameter(
        False,
        "Words carry weights, as in extremeText's `word:0.37`; --tf and --idf are not used.",
        group="data",
    )

    lowercase: bool = _parameter(True, "Lower-case the text.", group="features")
    min_count: int = _parameter(1, "Ignore words seen less often.", low=1, group="features")
    word_ngrams: int = _parameter(
        1, "Longest run of words used as a feature.", low=1, high=8, group="features"
    )
    ngram_buckets: int = _parameter(
        1 << 20, "Number of hash buckets for word n-grams.", low=1, high=1 << 28, group="features"
    )
    tf: str = _parameter(
        "log",
        "Weight of a word that occurs n times: 1 + ln n, n, or 1.",
        choices=("log", "count", "binary"),
        group="features",
    )
    idf: bool = _parameter(True, "Multiply by the inverse document frequency.", group="features")
    row_norm: str = _parameter(
        "l2",
        "Scale each row to length 1 (l2), to sum 1 (mean: the paper's average), or not at all.",
        choices=("l2", "mean", "none"),
        group="features",
    )

    tree: str = _parameter(
        "kmeans",
        "How labels are put into a tree (learned: while its dense nodes are trained), or a tree file.",
        choices=("kmeans", "huffman", "complete", "flat", "learned"),
        open_choice=True,
        group="tree",
    )
    arity: int = _parameter(
        0,
        "Children of an inner node; 0: 16, or more for sparse nodes of many labels, to need few levels.",
        low=0,
        high=1 << 20,
        group="tree",
    )
    max_leaves: int = _parameter(
        64,
        "Stop splitting a group of labels of at most this size (kmeans).",
        low=1,
        high=1 << 20,
        group="tree",
    )
    kmeans_eps: float = _parameter(
        0.001, "Stop k-means when the mean similarity gains less.", low=0.0, group="tree"
    )
    balanced: bool = _parameter(
        True, "Split into parts of equal size (kmeans); if not, as k-means finds them (Bonsai).", group="tree"
    )
    collapse: int = _parameter(
        0, "Of each so many + 1 levels of inner nodes keep one (kmeans).", low=0, high=64, group="tree"
    )
    profiles: str = _parameter(
        "features",
        "What makes labels similar (kmeans): their rows' features, the labels they occur with, or both.",
        choices=("features", "labels", "both"),
        group="tree",
    )

    nodes: str = _parameter(
        "sparse",
        "What scores a node: learned vectors, a pruned linear model, or an ensemble of both.",
        choices=("dense", "sparse", "both"),
        group="nodes",
    )
    link: str = _parameter(
        "plt",
        "How scores of siblings become probabilities: a logistic each, or a softmax (one label is picked).",
        choices=("plt", "hsm"),
        group="nodes",
    )
    dim: int = _parameter(
        256, "Length of the word and node vectors (dense).", low=1, high=1 << 14, group="nodes"
    )

    solver: str = _parameter(
        "dual",
        "How sparse nodes are trained: dual coordinate descent, or online as in Vowpal Wabbit.",
        choices=("dual", "sgd"),
        group="sparse nodes",
    )
    loss: str = _parameter(
        "squared-hinge",
        "What the dual solver minimises (plt; with hsm it is always the log loss).",
        choices=("squared-hinge", "log"),
        group="sparse nodes",
    )
    C: float = _parameter(
        0.0,
        "Weight of the loss against |w|²/2 (dual); 0: 0.5, log loss and hsm 5, twice that for rare labels.",
        low=0.0,
        high=1e6,
        group="sparse nodes",
    )
    positive_weight: float = _parameter(
        1.0, "Weight of a node's positive examples.", low=1e-3, high=1e3, group="sparse nodes"
    )
    rare_weight: float = _parameter(
        30.0,
        "The n positive examples of a node count 1 + this / n times: rare labels need more.",
        low=0.0,
        high=1e6,
        group="sparse nodes",
    )
    l1: float = _parameter(
        0.0,
        "Weight of |w| beside |w|²/2 (dual): weights that are exactly 0.",
        low=0.0,
        high=1e6,
        group="sparse nodes",
    )
    bias: float = _parameter(
        0.2, "Value of a feature that every row has; 0 for none.", low=0.0, high=1e3, group="sparse nodes"
    )
    tolerance: float = _parameter(
        0.05,
        "Stop when a pass changes the dual variables by less than this part of them (dual).",
        low=0.0,
        high=1e3,
        group="sparse nodes",
    )
    max_iterations: int = _parameter(
        20, "Most passes over a node's examples (dual).", low=1, high=100_000, group="sparse nodes"
    )
    prune: float = _parameter(
        0.1,
        "Drop weights closer to 0 than this (for rows of length 1).",
        low=0.0,
        high=1e6,
        group="sparse nodes",
    )
    eta: float = _parameter(2.0, "First step size (sgd).", low=0.0, high=1e3, group="sparse nodes")
    eta_power: float = _parameter(
        0.5,
        "A node's t-th step is eta * (1/t)^this (sgd).",
        low=0.0,
        high=1.0,
        group="sparse nodes",
    )

    epochs: int = _parameter(
        6, "Passes over the training data (dense, sgd).", low=1, high=100_000, group="training"
    )
    optimizer: str = _parameter(
        "adagrad",
        "How steps are scaled; sgd with batch size 1 is the paper's (dense).",
        choices=("adagrad", "sgd"),
        group="training",
    )
    lr: float = _parameter(0.1, "First step size; it falls linearly to 0 (dense).", low=0.0, group="training")
    l2: float = _parameter(
        1e-4, "L2 regularisation of all parameters but biases (dense, sgd).", low=0.0, group="training"
    )
    batch_size: int = _parameter(64, "Examples per step (dense).", low=1, high=1 << 20, group="training")
    trees: int = _parameter(
        1, "Trees of the ensemble; their probabilities are averaged.", low=1, high=1000, group="training"
    )
    seed: int = _parameter(1, "Seed of everything random.", low=0, high=2**63 - 1, group="training")

    def validate(self) -> Config:
        """Return self, or raise :class:`ParameterError` naming the parameter, the bound and the value."""
        for parameter in parameters():
            _check(parameter, getattr(self, parameter.name))
        if self.arity == 1:
            raise ParameterError("arity must be at least 2, or 0 to let it be chosen, but is 1")
        if self.tree == "learned" and self.nodes != "dense":
            raise ParameterError(f"tree 'learned' needs nodes='dense', but nodes is {self.nodes!r}")
        if not self.label_prefix or any(c.isspace() for c in self.label_prefix):
            raise ParameterError(
                f"label_prefix must be non-empty and without white space, but is {self.label_prefix!r}"
            )
        return self

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


def node_kinds(config: Config) -> tuple[str, ...]:
    """What is trained on each tree."""
    return ("dense", "sparse") if config.nodes == "both" else (config.nodes,)


def takes_steps(config: Config) -> bool:
    """Whether dense nodes are trained with a step per example, as in the paper."""
    return config.optimizer == "sgd" and config.batch_size == 1


def parameters() -> Iterator[Parameter]:
    """The fields of :class:`Config` in order."""
    kinds = {"bool": bool, "int": int, "float": float, "str": str}
    for field in dataclasses.fields(Config):
        yield Parameter(field.name, kinds[str(field.type)], field.default, **field.metadata)


def _check(parameter: Parameter, value: Any) -> None:
    name, kind = parameter.name, parameter.type
    accepted = (int, float) if kind is float else (kind,)
    if type(value) not in accepted:
        raise ParameterError(f"{name} must be of type {kind.__name__}, but is {value!r}")
    if kind is float and not math.isfinite(value):
        raise ParameterError(f"{name} must be finite, but is {value!r}")
    if parameter.low is not None and value < parameter.low:
        raise ParameterError(f"{name} must be at least {parameter.low}, but is {value!r}")
    if parameter.high is not None and value > parameter.high:
        raise ParameterError(f"{name} must be at most {parameter.high}, but is {value!r}")
    if parameter.choices and value not in parameter.choices and not parameter.open_choice:
        known = ", ".join(parameter.choices)
        raise ParameterError(f"{name} must be one of {known}, but is {value!r}")


# The paper's Appendix E.4: online SGD, arity 2, at most 100 leaves per parent, dim 500, eps 0.001; and what
# fastText's supervised mode does by default with the loss hs.
PRESETS: dict[str, dict[str, Any]] = {
    "paper": dict(
        nodes="dense",
        tree="kmeans",
        arity=2,
        max_leaves=100,
        kmeans_eps=0.001,
        dim=500,
        optimizer="sgd",
        batch_size=1,
        lr=0.1,
        l2=0.002,
        epochs=30,
        tf="count",
        idf=True,
        row_norm="mean",
    ),
    "fasttext-hs": dict(
        nodes="dense",
        tree="huffman",
        arity=2,
        link="hsm",
        dim=100,
        optimizer="sgd",
        batch_size=1,
        lr=0.1,
        l2=0.0,
        epochs=5,
        lowercase=False,
        tf="count",
        idf=False,
        row_norm="mean",
    ),
}


def plain(value: Any) -> Any:
    """A number or string of NumPy as Python's: a grid search takes its values from arrays."""
    is_numpys = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if is_numpys else value


def make_config(
    values: Mapping[str, Any] | None = None, *, preset: str | None = None, file: str | Path | None = None
) -> Config:
    """A validated config: defaults, overridden by the preset, the TOML file, then ``values``."""
    merged: dict[str, Any] = {}
    if preset is not None:
        if preset not in PRESETS:
            raise ParameterError(f"preset must be one of {', '.join(sorted(PRESETS))}, but is {preset!r}")
        merged |= PRESETS[preset]
    if file is not None:
        merged |= _read_toml(Path(file))
    merged |= values or {}
    _check_names(merged)
    return Config(**{name: plain(value) for name, value in merged.items()}).validate()


def _check_names(names: Iterable[str]) -> None:
    known = sorted(field.name for field in dataclasses.fields(Config))
    for name in names:
        if name not in known:
            import difflib

            nearest = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {nearest[0]!r}?" if nearest else f"; known are {', '.join(known)}"
            raise ParameterError(f"unknown parameter {name!r}{hint}")


def _read_toml(path: Path) -> dict[str, Any]:
    """The parameters in a file; whatever is wrong with them is told with the file's name."""
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        raise ParameterError(f"config file {path}: cannot be read ({error.strerror})") from error
    except ValueError as error:  # also not UTF-8, or a NUL in the file's name
        raise ParameterError(f"config file {path}: not valid TOML ({error})") from error
    given: dict[str, Any] = {}
    for written, value in values.items():
        name = written.replace("-", "_")
        if name in given:
            raise ParameterError(f"config file {path}: {name} is given twice, with - and with _; remove one")
        given[name] = value
    try:
        _check_names(given)
        Config(**given).validate()
    except ParameterError as error:
        raise ParameterError(f"config file {path}: {error}") from error
    return given
