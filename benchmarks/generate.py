"""Generated data that looks like the large public sets: sparse rows, power-law labels, words that tell.

Real sets of 10^5 to 10^6 labels are too large to ship, so documents are drawn from a recipe that has the
published statistics of one: numbers of features, labels and documents, and labels per document (points per
label follow: documents x labels per document / labels). How a document is drawn:

* Labels belong to topics of about LABELS_PER_TOPIC; the lower its number, the more frequent a label, as
  rank ** -LABEL_EXPONENT. A document has a topic, that of its first label. Further labels come from the same
  topic with probability SAME_TOPIC, else from all labels; their number is geometric.
* A roll call gives every label at least one training document, as in the public sets (as far as half of all
  places for labels suffice): row i must have its share of them.
* Words: each label and each topic has a few words of its own, scattered over the vocabulary, so that labels
  can be learned; a word of the document is one of its labels' (FROM_LABEL), of its topic's (FROM_TOPIC), or
  noise, with frequencies of rank ** -WORD_EXPONENT. Words are drawn until enough are distinct.
* Values are (1 + ln count) x inverse document frequency in the training rows.

Every document has a random stream of its own, made from seed, part and row: rows can be generated in any
order or pieces, and the same rows are always the same. Nothing but the result needs memory.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labeltree.data.rows import LabelRows, SparseRows
from labeltree.kernels.jit import inlined, kernel

LABEL_EXPONENT = 0.9  # close to 1, as in most collections; 1 itself would need a formula of its own
WORD_EXPONENT = 1.1
LABELS_PER_TOPIC = 32
SAME_TOPIC = 0.75
WORDS_PER_LABEL, FROM_LABEL = 8, 0.45
WORDS_PER_TOPIC, FROM_TOPIC = 16, 0.15
WORD_SPREAD = 0.5  # the number of words varies evenly by this part of its mean, either way

TRAIN, TEST = 0, 1  # parts: which random stream
_TRIES = 8  # per label, and draws per word, before a document stays shorter than planned
_ENTRIES_AT_A_TIME = 1 << 22


class Shape(NamedTuple):
    """The statistics of a data set."""

    n_documents: int
    n_labels: int
    n_features: int
    labels_per_document: float
    features_per_document: float


# Published by the Extreme Classification Repository: training documents, labels, features, labels per point.
# It does not give the last number, features per point: those are assumptions, near what such text has.
PUBLISHED = {
    "Wiki10-31K": Shape(14_146, 30_938, 101_938, 18.64, 673),
    "Delicious-200K": Shape(196_606, 205_443, 782_585, 75.54, 301),
    "WikiLSHTC-325K": Shape(1_778_351, 325_056, 1_617_899, 3.19, 42),
    "Wikipedia-500K": Shape(1_813_391, 501_070, 2_381_304, 4.77, 385),
    "Amazon-670K": Shape(490_449, 670_091, 135_909, 5.45, 75),
}


class Recipe(NamedTuple):
    """What the kernels need to draw any document."""

    n_labels: int
    n_topics: int
    n_features: int
    n_documents: int
    n_called: int  # labels of the roll call, shared out among the documents
    further_labels: float  # mean number beyond those (beyond 1 where there are none)
    n_words: float  # mean
    max_labels: int
    max_words: int
    seed: int


class DataSet(NamedTuple):
    X: SparseRows
    Y: LabelRows
    X_test: SparseRows
    Y_test: LabelRows


def generate(shape: Shape, n_test: int = 0, seed: int = 1) -> DataSet:
    """Training rows of this shape, and ``n_test`` test rows drawn in the same way."""
    rows = np.arange(shape.n_documents, dtype=np.int64)
    X, Y = draw_rows(shape, rows, part=TRAIN, seed=seed)
    X_test, Y_test = draw_rows(shape, choose_test_rows(shape, n_test), part=TEST, seed=seed)
    rarity = find_rarity(np.bincount(X.indices, minlength=shape.n_features), X.n_rows)
    for matrix in (X, X_test):
        for start in range(0, len(matrix.indices), _ENTRIES_AT_A_TIME):
            part = slice(start, start + _ENTRIES_AT_A_TIME)
            matrix.values[part] *= rarity[matrix.indices[part]]
    return DataSet(X, Y, X_test, Y_test)


def choose_test_rows(shape: Shape, n_test: int) -> NDArray[np.int64]:
    """Test rows take over the roll call of training rows, evenly spread: the same mix of labels."""
    return np.arange(n_test, dtype=np.int64) * shape.n_documents // max(1, n_test)


def find_rarity(n_with_word: NDArray[np.int64], n_rows: int) -> NDArray[np.float32]:
    """The inverse document frequency of each word."""
    rarity: NDArray[np.float32] = (np.log((1 + n_rows) / (1 + n_with_word)) + 1).astype(np.float32)
    return rarity


def draw_rows(
    shape: Shape, rows: NDArray[np.int64], *, part: int = TRAIN, seed: int = 1
) -> tuple[SparseRows, LabelRows]:
    """The documents of the given row numbers; values are 1 + ln count, not yet weighted by rarity."""
    recipe = make_recipe(shape, seed)
    x_indptr, y_indptr = np.zeros(len(rows) + 1, np.int64), np.zeros(len(rows) + 1, np.int64)
    # Twice the same draws: first to know the sizes, so that nothing needs to grow or to be copied.
    count_documents(recipe, rows, part, x_indptr, y_indptr)
    np.cumsum(x_indptr, out=x_indptr)
    np.cumsum(y_indptr, out=y_indptr)
    indices, values = np.empty(x_indptr[-1], np.int32), np.empty(x_indptr[-1], np.float32)
    labels = np.empty(y_indptr[-1], np.int32)
    fill_documents(recipe, rows, part, x_indptr, y_indptr, indices, values, labels)
    return (
        SparseRows(x_indptr, indices, values, shape.n_features),
        LabelRows(y_indptr, labels, shape.n_labels),
    )


def make_recipe(shape: Shape, seed: int) -> Recipe:
    n_called = min(shape.n_labels, int(shape.n_documents * shape.labels_per_document / 2))
    return Recipe(
        n_labels=shape.n_labels,
        n_topics=max(1, shape.n_labels // LABELS_PER_TOPIC),
        n_features=shape.n_features,
        n_documents=shape.n_documents,
        n_called=n_called,
        further_labels=max(0.0, shape.labels_per_document - max(1.0, n_called / shape.n_documents)),
        n_words=float(shape.features_per_document),
        max_labels=min(shape.n_labels, int(10 * shape.labels_per_document) + 10),
        max_words=min(shape.n_features, int((1 + WORD_SPREAD) * shape.features_per_document) + 1),
        seed=seed,
    )


@inlined
def _mix(number):
    """A 64-bit hash (the last steps of SplitMix64)."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))


@inlined
def _uniform(state):
    """A number in [0, 1); ``state`` (1,) moves on."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    return np.float64(_mix(state[0]) >> np.uint64(11)) / 9007199254740992.0


@inlined
def _power_law(state, n, exponent):
    """A rank below n, with a frequency of about (rank + 1) ** -exponent; the exponent is not 1."""
    slope = 1.0 - exponent
    rank = np.int64((1.0 + _uniform(state) * ((n + 1.0) ** slope - 1.0)) ** (1.0 / slope)) - 1
    return min(max(rank, 0), n - 1)


@inlined
def _label_of_topic(topic, member, n_topics):
    """Topics share labels out in turn, so that each has frequent and rare ones."""
    return member * n_topics + topic


@inlined
def _called_label(place, recipe):
    """The roll call goes topic by topic, so that labels called together belong together."""
    size, n_larger = recipe.n_labels // recipe.n_topics, recipe.n_labels % recipe.n_topics
    if place < n_larger * (size + 1):
        return _label_of_topic(place // (size + 1), place % (size + 1), recipe.n_topics)
    place -= n_larger * (size + 1)
    return _label_of_topic(n_larger + place // size, place % size, recipe.n_topics)


@inlined
def _own_word(owner, number, recipe):
    """Word ``number`` of a label (owner >= 0) or of topic ``-1 - owner``: scattered over the vocabulary."""
    key = np.uint64(owner) * np.uint64(64) + np.uint64(number)
    mixed = _mix(key + _mix(np.uint64(recipe.seed) + np.uint64(0x9E3779B97F4A7C15)))
    return np.int64(mixed % np.uint64(recipe.n_features))


@inlined
def _insert_new(sorted_ids, n, number):
    """Insert into the sorted ids unless it is there; returns how many there are now."""
    place = n
    while place > 0 and sorted_ids[place - 1] > number:
        place -= 1
    if place > 0 and sorted_ids[place - 1] == number:
        return n
    for later in range(n, place, -1):
        sorted_ids[later] = sorted_ids[later - 1]
    sorted_ids[place] = number
    return n + 1


@kernel
def draw_labels(recipe, row, state, out_labels):
    """Sorted and distinct labels of one document; returns their number and the document's topic."""
    n = 0
    topic = -1
    begin, end = (
        row * recipe.n_called // recipe.n_documents,
        (row + 1) * recipe.n_called // recipe.n_documents,
    )
    for place in range(begin, end):
        label = _called_label(place, recipe)
        n = _insert_new(out_labels, n, label)
        topic = label % recipe.n_topics
    if n == 0:
        out_labels[0] = _power_law(state, recipe.n_labels, LABEL_EXPONENT)
        topic = out_labels[0] % recipe.n_topics
        n = 1
    stop = recipe.further_labels / (1.0 + recipe.further_labels)  # geometric from 0 on
    further = np.int64(np.log(1.0 - _uniform(state)) / np.log(stop)) if stop > 0.0 else 0
    size = (recipe.n_labels - topic + recipe.n_topics - 1) // recipe.n_topics
    wanted = min(n + further, recipe.max_labels)
    tries = _TRIES * further
    while n < wanted and tries > 0:
        if _uniform(state) < SAME_TOPIC:
            label = _label_of_topic(topic, _power_law(state, size, LABEL_EXPONENT), recipe.n_topics)
        else:
            label = _power_law(state, recipe.n_labels, LABEL_EXPONENT)
        n = _insert_new(out_labels, n, label)
        tries -= 1
    return n, topic


@kernel
def draw_words(recipe, labels, topic, state, place_of_word, out_words, out_counts):
    """Distinct words of one document, in order of first use, with counts; returns how many.

    ``place_of_word`` (n_features,) is -1 everywhere, before and after.
    """
    spread = 1.0 - WORD_SPREAD + 2.0 * WORD_SPREAD * _uniform(state)
    wanted = min(max(1, np.int64(np.rint(spread * recipe.n_words))), recipe.max_words)
    n = 0
    tries = _TRIES * wanted
    while n < wanted and tries > 0:
        tries -= 1
        kind, choice = _uniform(state), _uniform(state)
        if kind < FROM_LABEL:
            owner = labels[np.int64(_uniform(state) * len(labels))]
            word = _own_word(owner, np.int64(choice * WORDS_PER_LABEL), recipe)
        elif kind < FROM_LABEL + FROM_TOPIC:
            word = _own_word(-1 - topic, np.int64(choice * WORDS_PER_TOPIC), recipe)
        else:
            word = _power_law(state, recipe.n_features, WORD_EXPONENT)
        place = place_of_word[word]
        if place < 0:
            place_of_word[word] = n
            out_words[n], out_counts[n] = word, 1
            n += 1
        else:
            out_counts[place] += 1
    for place in range(n):
        place_of_word[out_words[place]] = -1
    return n


@inlined
def _start_row(recipe, part, row, state):
    state[0] = _mix(np.uint64(recipe.seed) * np.uint64(0xD1342543DE82EF95) + np.uint64(part))
    state[0] = _mix(state[0] + np.uint64(row) * np.uint64(0x9E3779B97F4A7C15))


@kernel
def count_documents(recipe, rows, part, out_n_words, out_n_labels):
    """The numbers of words and labels of row i, at i + 1."""
    state, labels = np.zeros(1, np.uint64), np.empty(recipe.max_labels, np.int64)
    words, counts = np.empty(recipe.max_words, np.int64), np.empty(recipe.max_words, np.int64)
    place_of_word = np.full(recipe.n_features, -1, np.int32)
    for i in range(len(rows)):
        _start_row(recipe, part, rows[i], state)
        n, topic = draw_labels(recipe, rows[i], state, labels)
        out_n_labels[i + 1] = n
        out_n_words[i + 1] = draw_words(recipe, labels[:n], topic, state, place_of_word, words, counts)


@kernel
def fill_documents(recipe, rows, part, x_indptr, y_indptr, out_indices, out_values, out_labels):
    """The rows that were counted, words sorted."""
    state, labels = np.zeros(1, np.uint64), np.empty(recipe.max_labels, np.int64)
    words, counts = np.empty(recipe.max_words, np.int64), np.empty(recipe.max_words, np.int64)
    place_of_word = np.full(recipe.n_features, -1, np.int32)
    for i in range(len(rows)):
        _start_row(recipe, part, rows[i], state)
        n, topic = draw_labels(recipe, rows[i], state, labels)
        for q in range(n):
            out_labels[y_indptr[i] + q] = labels[q]
        n = draw_words(recipe, labels[:n], topic, state, place_of_word, words, counts)
        start = x_indptr[i]
        for q in range(n):
            place = start + q
            while place > start and out_indices[place - 1] > words[q]:
                out_indices[place] = out_indices[place - 1]
                out_values[place] = out_values[place - 1]
                place -= 1
            out_indices[place] = words[q]
            out_values[place] = 1.0 + np.log(counts[q])
