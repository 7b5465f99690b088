"""Every parameter of a model, once: its default, bounds, help, and when it has an effect.

Command-line options, estimator arguments, the documentation's table and the model file's header are all
made from the fields of :class:`Config`: one table, as long as it is, in which each is found. Importing it is
free (no numpy, no numba).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from labeltree.config.checks import check_together, check_values
from labeltree.nodes import KINDS, LINKS
from labeltree.parameter import AboveZero, Need, Parameter
from labeltree.trees import BUILDERS

# What parameters need to have an effect.
_TEXT = Need({"input": ("text",)})
_COUNTED_WORDS = Need({"weighted_words": (False,)})
_COUNTS = Need({"weighted_words": (False,), "input": ("vectors",)})
_EMBEDDERS = ("wordllama", "minilm")
_DENSE = Need({"embed": _EMBEDDERS, "beside": ("vectors",)})
_NGRAMS = Need({"word_ngrams": range(2, 9)})
_CHAR_BLOCK = Need({"char_weight": AboveZero()})
_BLOCKS = Need({"char_weight": AboveZero(), "pair_weight": AboveZero()})
_LINK_OF_LOSS = Need({"link": LINKS.users_of("loss")})
_DUAL = Need({"solver": ("dual", "active")})
_SGD = Need({"solver": ("sgd",)})
_MOST_TREES = 1000
_TREES = Need({"trees": range(1, _MOST_TREES + 1)})
_FOREST = Need({"forest": range(1, _MOST_TREES + 1)})
_L2_SPLIT = Need({"forest_split": ("l2",)})


def _used(name: str, **others: Sequence[Any]) -> Need:
    """A tree builder or a kind of nodes that uses the parameter; or one of these values of others."""
    users = {"nodes": KINDS.users_of(name), "tree": BUILDERS.users_of(name)}
    return Need({axis: names for axis, names in users.items() if names} | others)


def _parameter(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Collection[str] = (),
    open_choice: bool = False,
    by_data: bool = False,
    group: str,
    needs: tuple[Need, ...] = (),
) -> Any:
    metadata: dict[str, Any] = {"help": help, "low": low, "high": high, "choices": choices}
    metadata |= {"open_choice": open_choice, "by_data": by_data, "group": group, "needs": needs}
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """What determines a model, besides its data. The same config, data and machine give the same bytes."""

    label_prefix: str = _parameter(
        "__label__", "What a label starts with in fastText lines.", group="data", needs=(_TEXT,)
    )
    weighted_words: bool = _parameter(
        False,
        "Words carry weights, as in extremeText's `word:0.37`, instead of those of tf and idf.",
        group="data",
        needs=(_TEXT,),
    )

    tokens: str = _parameter(
        "words",
        "What words are: runs of letters and digits (punctuation separates), or all between white space.",
        choices=("words", "spaces"),
        group="features",
        needs=(_TEXT, _COUNTED_WORDS),
    )
    lowercase: bool = _parameter(True, "Lower-case the text.", group="features", needs=(_TEXT,))
    min_count: int = _parameter(1, "Ignore words seen less often.", low=1, group="features", needs=(_TEXT,))
    word_ngrams: int = _parameter(
        1, "Longest run of words used as a feature.", low=1, high=8, group="features", needs=(_TEXT,)
    )
    ngram_buckets: int = _parameter(
        1 << 20,
        "Number of hash buckets for word n-grams.",
        low=1,
        high=1 << 28,
        group="features",
        needs=(_NGRAMS,),
    )
    char_weight: float = _parameter(
        0.7,
        "Weight of character n-grams of words, a block of features beside the words; 0: none.",
        low=0.0,
        high=1e3,
        group="features",
        needs=(_TEXT, _COUNTED_WORDS, _TREES),
    )
    char_ngrams: int = _parameter(
        4,
        "Length of these n-grams; a space before and after a word counts.",
        low=2,
        high=8,
        group="features",
        needs=(_CHAR_BLOCK,),
    )
    pair_weight: float = _parameter(
        0.4,
        "Weight of pairs of neighbouring words, another block; 0: none.",
        low=0.0,
        high=1e3,
        group="features",
        needs=(_TEXT, _COUNTED_WORDS, _TREES),
    )
    min_rows: int = _parameter(
        2,
        "Ignore character n-grams and pairs of words that fewer rows have.",
        low=1,
        group="features",
        needs=(_BLOCKS,),
    )
    strongest: int = _parameter(
        50,
        "Of a row's character n-grams, and of its pairs, keep this many with the highest weights; 0: all.",
        low=0,
        group="features",
        needs=(_BLOCKS,),
    )
    embed: str = _parameter(
        "none",
        "Vectors that a package makes of texts, a block of dense features beside the words.",
        choices=("none", *_EMBEDDERS),
        group="features",
        needs=(_TEXT, _COUNTED_WORDS, _TREES),
    )
    dense_weight: float = _parameter(
        0.15,
        "Weight of dense vectors, embedded or given beside the rows ([X, vectors] in Python).",
        low=0.0,
        high=1e3,
        group="features",
        needs=(_DENSE,),
    )
    tf: str = _parameter(
        "log",
        "Weight of a word that occurs n times: 1 + ln n, n, or 1.",
        choices=("log", "count", "binary"),
        group="features",
        needs=(_COUNTED_WORDS,),
    )
    idf: bool = _parameter(
        True,
        "Multiply by the inverse document frequency; vectors that are counts by its root.",
        group="features",
        needs=(_COUNTS,),
    )
    row_norm: str = _parameter(
        "l2",
        "Scale each row to length 1 (l2), to sum 1 (mean: the paper's average), or not at all.",
        choices=("l2", "mean", "none"),
        group="features",
    )

    tree: str = _parameter(
        "kmeans",
        "How labels are put into a tree (learned: by training dense nodes), or a tree file.",
        choices=BUILDERS,
        open_choice=True,
        group="tree",
        needs=(_TREES,),
    )
    arity: int = _parameter(
        0,
        "Children of an inner node; 0: 16, or more for sparse nodes of many labels, to need few levels.",
        low=0,
        high=1 << 20,
        by_data=True,
        group="tree",
        needs=(_used("arity"),),
    )
    max_leaves: int = _parameter(
        0,
        "Stop splitting a group of labels of at most this size; 0: 64, or all labels where they are few.",
        low=0,
        high=1 << 20,
        by_data=True,
        group="tree",
        needs=(_used("max_leaves"),),
    )
    kmeans_eps: float = _parameter(
        0.001,
        "Stop k-means when the mean similarity gains less.",
        low=0.0,
        group="tree",
        needs=(_used("kmeans_eps"),),
    )
    balanced: bool = _parameter(
        True,
        "Split into parts of equal size; if not, as k-means finds them (Bonsai).",
        group="tree",
        needs=(_used("balanced"),),
    )
    collapse: int = _parameter(
        0,
        "Of each so many + 1 levels of inner nodes keep one.",
        low=0,
        high=64,
        group="tree",
        needs=(_used("collapse"),),
    )
    profiles: str = _parameter(
        "features",
        "What makes labels similar: their rows' features, the labels they occur with, or both.",
        choices=("features", "labels", "both"),
        group="tree",
        needs=(_used("profiles"),),
    )

    nodes: str = _parameter(
        "sparse",
        "What scores a node: a pruned linear model, learned vectors, both, or all weights of a linear model.",
        choices=KINDS,
        group="nodes",
        needs=(_TREES,),
    )
    link: str = _parameter(
        "plt",
        "How scores of siblings become probabilities: a logistic each, or a softmax (one label is picked).",
        choices=LINKS,
        group="nodes",
        needs=(_TREES,),
    )
    dim: int = _parameter(
        256, "Length of the word and node vectors.", low=1, high=1 << 14, group="nodes", needs=(_used("dim"),)
    )
    initial_range: float = _parameter(
        0.1,
        "Word vectors start uniform between minus this and this, node vectors at 0.",
        low=0.0,
        high=1e3,
        group="nodes",
        needs=(_used("initial_range"),),
    )

    solver: str = _parameter(
        "dual",
        "How sparse nodes are trained: dual coordinate descent, the same on few of the examples (PPDSparse), "
        "or online as in Vowpal Wabbit.",
        choices=("dual", "active", "sgd"),
        group="sparse nodes",
        needs=(_used("solver"),),
    )
    loss: str = _parameter(
        "squared-hinge",
        "What the dual solvers minimise (dual: not hinge, active: not log); with link hsm the log loss.",
        choices=("squared-hinge", "hinge", "log"),
        group="sparse nodes",
        needs=(_DUAL, _LINK_OF_LOSS),
    )
    C: float = _parameter(
        0.0,
        "Weight of the loss against |w|²/2; 0: 0.3 to 1 by the data, log loss and hsm ten times that.",
        low=0.0,
        high=1e6,
        by_data=True,
        group="sparse nodes",
        needs=(_DUAL,),
    )
    positive_weight: float = _parameter(
        1.0,
        "Weight of a node's positive examples.",
        low=1e-3,
        high=1e3,
        group="sparse nodes",
        needs=(_used("positive_weight"),),
    )
    rare_weight: float = _parameter(
        30.0,
        "The n positive examples of a node count 1 + this / n times: rare labels need more.",
        low=0.0,
        high=1e6,
        group="sparse nodes",
        needs=(_used("rare_weight"),),
    )
    l1: float = _parameter(
        0.0,
        "Weight of |w| beside |w|²/2: weights that are exactly 0.",
        low=0.0,
        high=1e6,
        group="sparse nodes",
        needs=(_DUAL,),
    )
    bias: float = _parameter(
        0.2,
        "Value of a feature that every row has; 0 for none.",
        low=0.0,
        high=1e3,
        group="sparse nodes",
        needs=(_used("bias"),),
    )
    tolerance: float = _parameter(
        0.05,
        "Stop when a pass changes the dual variables by less than this part of them; solver active: when no "
        "example is further from where it should be, the margin being 1.",
        low=0.0,
        high=1e3,
        group="sparse nodes",
        needs=(_DUAL,),
    )
    max_iterations: int = _parameter(
        20, "Most passes over a node's examples.", low=1, high=100_000, group="sparse nodes", needs=(_DUAL,)
    )
    prune: float = _parameter(
        0.1,
        "Drop weights closer to 0 than this (for rows of length 1).",
        low=0.0,
        high=1e6,
        group="sparse nodes",
        needs=(_used("prune"),),
    )
    eta: float = _parameter(2.0, "First step size.", low=0.0, high=1e3, group="sparse nodes", needs=(_SGD,))
    eta_power: float = _parameter(
        0.5,
        "A node's t-th step is eta * (1/t)^this.",
        low=0.0,
        high=1.0,
        group="sparse nodes",
        needs=(_SGD,),
    )

    epochs: int = _parameter(
        6,
        "Passes over the training data.",
        low=1,
        high=100_000,
        group="training",
        needs=(_used("epochs", solver=("sgd",)),),
    )
    optimizer: str = _parameter(
        "adagrad",
        "How steps are scaled; sgd with batch size 1 is the paper's.",
        choices=("adagrad", "sgd"),
        group="training",
        needs=(_used("optimizer"),),
    )
    lr: float = _parameter(
        0.1, "First step size; it falls linearly to 0.", low=0.0, group="training", needs=(_used("lr"),)
    )
    l2: float = _parameter(
        1e-4,
        "L2 regularisation of all parameters but biases.",
        low=0.0,
        group="training",
        needs=(_used("l2", solver=("sgd",)),),
    )
    batch_size: int = _parameter(
        64, "Examples per step.", low=1, high=1 << 20, group="training", needs=(_used("batch_size"),)
    )
    calibrate: bool = _parameter(
        True,
        "Hold rows out at first, to weigh the experts and to correct their probabilities.",
        group="training",
    )
    trees: int = _parameter(
        1,
        "Trees of the ensemble; their probabilities are averaged. 0: none, other experts alone.",
        low=0,
        high=_MOST_TREES,
        group="training",
    )
    neighbours: int = _parameter(
        50,
        "Similar training rows whose labels count beside the trees; 0: none, and none are kept.",
        low=0,
        high=1000,
        group="training",
    )
    forest: int = _parameter(
        0,
        "Trees over rows (FastXML) whose leaves count beside the trees of labels; 0: none.",
        low=0,
        high=_MOST_TREES,
        group="forest",
    )
    forest_leaf: int = _parameter(
        5, "Rows of a node that is not split.", low=1, group="forest", needs=(_FOREST,)
    )
    forest_labels: int = _parameter(
        100, "Most labels that a leaf keeps.", low=1, group="forest", needs=(_FOREST,)
    )
    forest_split: str = _parameter(
        "l2",
        "How a node is split: squared hinge loss with |w|²/2, pruned, or logistic with |w| as in FastXML.",
        choices=("l2", "l1"),
        group="forest",
        needs=(_FOREST,),
    )
    forest_cost: float = _parameter(
        0.0,
        "Weight of a split's loss against the size of its weights; 0: 0.1, or with l1 1.",
        low=0.0,
        high=1e6,
        group="forest",
        needs=(_FOREST,),
    )
    forest_propensity: bool = _parameter(
        False,
        "Labels count by their inverse propensity, in splits and votes: the rarer the more (PfastXML).",
        group="forest",
        needs=(_FOREST,),
    )
    forest_tail: float = _parameter(
        0.0,
        "Share of the similarity to a label's mean row in the logarithm of its votes (PfastreXML has 0.2).",
        low=0.0,
        high=0.99,
        group="forest",
        needs=(_FOREST,),
    )
    forest_prune: float = _parameter(
        0.1,
        "Drop weights of a split below this part of its largest.",
        low=0.0,
        high=1.0,
        group="forest",
        needs=(_L2_SPLIT,),
    )
    seed: int = _parameter(1, "Seed of everything random.", low=0, high=2**63 - 1, group="training")

    def validate(self) -> Config:
        """Return self, or raise an error naming the parameter, the bound and the value."""
        check_values(self.to_dict(), parameters())
        check_together(self)
        return self

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)


PARAMETER_NAMES = tuple(field.name for field in dataclasses.fields(Config))


def parameters() -> Iterator[Parameter]:
    """The fields of :class:`Config` in order."""
    kinds = {"bool": bool, "int": int, "float": float, "str": str}
    for field in dataclasses.fields(Config):
        yield Parameter(field.name, kinds[str(field.type)], field.default, **field.metadata)


BY_DATA = tuple(parameter.name for parameter in parameters() if parameter.by_data)
