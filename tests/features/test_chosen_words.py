"""Words chosen so that their hashes are alike do not make tables slow, and change nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from support.chosen_words import strings_of_hashes, words_of_one_hash

import labeltree
from labeltree.config import make_config
from labeltree.data.memory import texts_to_block
from labeltree.features.strings import StringTable, pack_strings
from labeltree.features.text import TextFeatures
from labeltree.kernels.text.strings import EMPTY, LOW, MEAN_AWAY, MOST_AWAY, NOWHERE, U32, find_slot

N = 20_000
SLOTS = 1 << 18  # more than a table will have
NUMBERS = np.arange(N, dtype=np.uint64)
RANDOM = np.random.default_rng(0).integers(0, 2**64, N, np.uint64)

# By what is alike; multiples of SLOTS have the same slot in any table.
CHOSEN: dict[str, NDArray[np.uint64]] = {
    "all of the hash": np.full(N, 77, np.uint64),
    "the slot": NUMBERS * np.uint64(SLOTS),
    "half of the hash": NUMBERS + np.uint64(2**60),
    "some of the hash": np.repeat(RANDOM[: N // 40], 40),
    "groups just as large as is allowed": np.repeat(RANDOM[: N // MOST_AWAY + 1], MOST_AWAY)[:N],
}


def slots_behind(table: StringTable) -> NDArray[np.int64]:
    """For each string how many slots there are from that of its hash to its own."""
    slots, records, hashes = table.arrays.slots, table.arrays.records, table.arrays.hashes
    places = np.flatnonzero(slots != EMPTY)
    ids = (records[(slots[places] & LOW).astype(np.int64)] >> U32).astype(np.int64)
    return (places.astype(np.uint64) - hashes[ids]).astype(np.int64) & (len(slots) - 1)


def filled_with(strings: list[bytes]) -> StringTable:
    table = StringTable()
    for start in range(0, len(strings), 700):
        part = strings[start : start + 700]
        ids = table.insert(pack_strings(part), len(part))
        assert np.array_equal(ids, np.arange(start, start + len(part)))
    return table


def test_hashes_are_as_chosen() -> None:
    strings = strings_of_hashes(RANDOM)
    assert len(set(strings)) == N
    assert np.array_equal(pack_strings(strings).hashes, RANDOM)


def test_words_as_they_come_keep_the_hashes_of_the_text() -> None:
    for strings in (strings_of_hashes(RANDOM), [f"word{k}".encode() for k in range(N)]):
        table = filled_with(strings)
        assert table.has_public_hashes
        behind = slots_behind(table)
        assert behind.mean() < 1
        assert behind.max() < MOST_AWAY // 2


@pytest.mark.parametrize("alike", CHOSEN)
def test_chosen_strings_are_found_as_soon_as_others(alike: str) -> None:
    strings = strings_of_hashes(CHOSEN[alike])
    table = filled_with(strings)
    behind = slots_behind(table)
    assert len(behind) == len(table) == N
    assert behind.mean() <= MEAN_AWAY
    assert behind.max() <= MOST_AWAY
    assert np.array_equal(table.ids(strings), np.arange(N))
    strangers = strings_of_hashes(CHOSEN[alike] + np.uint64(1), number=1)
    assert np.all(table.ids(strangers[:100]) == -1)
    assert table.tensors()[0].tobytes() == b"".join(strings)


def test_a_run_of_full_slots_is_not_searched_to_its_end() -> None:
    """Each string is in its own slot, but one that is missing would have to pass them all."""
    table = filled_with(strings_of_hashes(NUMBERS))
    assert table.has_public_hashes
    assert slots_behind(table).max() == 0
    missing = pack_strings(strings_of_hashes(np.zeros(N, np.uint64), number=1))
    arrays = (table.arrays.slots, table.arrays.records, missing.packed)
    assert find_slot(*arrays, missing.first[5], missing.length[5], missing.hashes[5]) == NOWHERE
    assert np.all(table.find(missing, N) == -1)
    ids = table.insert(missing, N)
    assert np.array_equal(ids, np.arange(N, 2 * N))
    assert slots_behind(table).max() <= MOST_AWAY


def test_a_text_of_chosen_words_gives_the_same_rows() -> None:
    words = words_of_one_hash(40)
    assert len(set(pack_strings(words).hashes)) == 1
    texts = [" ".join(words[k:] + words[:1]) for k in range(len(words))]
    config = make_config(dict(tokens="spaces", idf=True, word_ngrams=2, ngram_buckets=16))
    fits = [TextFeatures.fit([texts_to_block(texts)], config) for _ in range(2)]
    features = [fit[0] for fit in fits]
    assert not any(feature.words.has_public_hashes for feature in features)
    assert [feature.short_text(texts[0]) for feature in features] == [None, None]
    one, other = (feature.tensors() for feature in features)
    assert all(np.array_equal(one[name], other[name]) for name in one)
    counts = features[0].transform_texts([f"{words[3]} {words[3]} {words[39]}"])
    assert len(counts.indices) >= 2
    assert set(features[0].words.strings()) == set(words)


def test_a_model_of_chosen_words_answers_as_any_other() -> None:
    words = words_of_one_hash(40)
    texts = [f"{word} {words[0]}" for word in words]
    labels = [[f"label{k % 3}"] for k in range(len(words))]
    model = labeltree.train(texts, labels)
    single = [model.predict([text], k=2)[0] for text in texts]
    assert single == model.predict(texts, k=2)
