"""How good explanations are, and how long they take: `python -m benchmarks.explanations`.

    time        microseconds of CPU per label, of one tree, with and without the names of words
    deletion    how far the probability of a text's best label falls when its three strongest words are
                deleted: those that `explain` names, beside those that LIME (in its own environment) names.
                Labels that most training rows have, and would get without a word, are passed over
    labels      how long a search among the names of very many labels takes

Test rows are only looked at; nothing is chosen by them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import lime_worker
from benchmarks.datasets import both_files
from benchmarks.environments import cache_folder, environment
from labeltree.explain.labels import LabelSearch
from labeltree.explain.row import WHOLE_TEXT
from labeltree.features.strings import StringTable
from labeltree.model import Model
from labeltree.training.driver import train

STRONGEST = 3  # words that are deleted
FEWEST_WORDS = 2 * STRONGEST  # of a text whose words are deleted
REPEATS = 5
MOST_FREQUENT = 20  # labels among which is one that is not in most rows


def main(arguments: Sequence[str] | None = None) -> None:
    chosen = _parser().parse_args(arguments)
    parts: dict[str, Callable[[argparse.Namespace], Iterator[str]]]
    parts = {"time": _time_lines, "deletion": _deletion_lines, "labels": _label_lines}
    for part in chosen.parts or parts:
        for line in parts[part](chosen):
            print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help="time, deletion, labels; all by default")
    parser.add_argument("--data", default="wordnet-hypernyms", help="of time and deletion")
    parser.add_argument("--preset", help="of the model whose words are deleted; the defaults if none")
    parser.add_argument("--cases", type=int, default=500, help="texts whose words are deleted")
    parser.add_argument("--n-labels", type=int, default=1_000_000, help="of the search for labels")
    return parser


def _texts(name: str, n: int) -> list[str]:
    """The first test rows without their labels."""
    with both_files(name)[1].open(encoding="utf-8") as lines:
        rows = [line.split() for line, _ in zip(lines, range(n), strict=False)]
    return [" ".join(word for word in row if not word.startswith("__label__")) for row in rows]


# Time


def _time_lines(chosen: argparse.Namespace) -> Iterator[str]:
    model = train(both_files(chosen.data)[0], neighbours=0, threads=1)
    texts = _texts(chosen.data, 400)
    n_labels = sum(len(model.explain(text).labels) for text in texts)

    def per_label(what: Callable[[str], Any]) -> float:
        return 1e6 * _best_seconds(lambda: [what(text) for text in texts]) / n_labels

    yield f"{chosen.data}, one tree: microseconds of CPU per label, for the three best of {len(texts)} texts"
    yield f"  explain(text)            {per_label(lambda text: model.explain(text)):7.1f}"
    words = per_label(lambda text: [label.terms for label in model.explain(text).labels])
    yield f"  with the words' names    {words:7.1f}"
    everything = per_label(lambda text: model.explain(text).to_dict())
    yield f"  with all that JSON has   {everything:7.1f}"


def _best_seconds(run: Callable[[], Any]) -> float:
    spent = []
    for _ in range(REPEATS):
        began = time.process_time()
        run()
        spent.append(time.process_time() - began)
    return min(spent)


# Deletion


class _Case(NamedTuple):
    before: float
    without_ours: float
    without_lime: float
    without_strongest: float  # the words that it hangs on, as estimated ...
    without_deletions: float  # ... and as the model tells
    our_seconds: float  # of CPU
    strongest_seconds: float
    deletion_seconds: float
    lime_seconds: float
    model_seconds: float  # for the probabilities that LIME asks for


def _deletion_lines(chosen: argparse.Namespace) -> Iterator[str]:
    asked = {} if chosen.preset is None else {"preset": chosen.preset}
    model = train(both_files(chosen.data)[0], threads=1, **asked)
    python = environment(lime_worker, cache_folder())
    cases = list(_cases(model, chosen, python))
    yield f"{chosen.data}, preset {chosen.preset or 'none'}, {len(cases)} texts and their best labels"
    yield from _deletion_table(cases)


def _cases(model: Model, chosen: argparse.Namespace, python: Path) -> Iterator[_Case]:
    command = [str(python), str(Path(lime_worker.__file__))]
    in_most = np.flatnonzero(model.label_counts > model.n_examples / 2)
    frequent = {model.labels[int(label)] for label in in_most}
    pipes: dict[str, Any] = dict(stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with subprocess.Popen(command, **pipes, env={**os.environ, "OMP_NUM_THREADS": "1"}) as worker:
        n_done = 0
        for text in _texts(chosen.data, 20 * chosen.cases):
            if len({word.lower() for word in text.split()}) < FEWEST_WORDS or not model.knows([text])[0]:
                continue
            yield _case(model, text, frequent, worker, seed=n_done)
            n_done += 1
            if n_done == chosen.cases:
                break
        worker.stdin.close()  # type: ignore[union-attr]


def _case(model: Model, text: str, frequent: set[str], worker: subprocess.Popen[str], seed: int) -> _Case:
    label = next(name for name, _ in model.predict([text], MOST_FREQUENT)[0] if name not in frequent)
    terms = model.explain(text, label).labels[0].terms
    ours = _best_seconds(lambda: model.explain(text, label).labels[0].terms)
    words, seconds, of_model = _ask_lime(model, label, text, worker, seed)
    strong = [(term.name, term.share) for term in terms if term.name != WHOLE_TEXT]
    estimated = model.explain(text, label).labels[0].strongest(STRONGEST)
    estimating = _best_seconds(lambda: model.explain(text, label).labels[0].strongest(STRONGEST))
    told = model.explain(text, label, deletions=STRONGEST).labels[0].deletions or []
    deleting = _best_seconds(lambda: model.explain(text, label, deletions=STRONGEST))
    texts = [text, *(without(text, strongest(each)) for each in (strong, words))]
    texts += [without(text, {found.word for found in each}) for each in (estimated, told)]
    probabilities = model.probability(texts, [label])[:, 0].tolist()
    return _Case(*probabilities, ours, estimating, deleting, seconds, of_model)


def _ask_lime(
    model: Model, label: str, text: str, worker: subprocess.Popen[str], seed: int
) -> tuple[list[tuple[str, float]], float, float]:
    """Words with their weights; seconds of LIME, and of the model for it."""
    assert worker.stdout is not None
    _tell(worker, {"text": text, "seed": seed})
    of_model = 0.0
    while True:
        told = json.loads(worker.stdout.readline())
        if "words" in told:
            return told["words"], told["seconds"], of_model
        began = time.process_time()
        probabilities = model.probability(told["texts"], [label], threads=1)[:, 0].tolist()
        of_model += time.process_time() - began
        _tell(worker, probabilities)


def _tell(worker: subprocess.Popen[str], what: Any) -> None:
    assert worker.stdin is not None
    worker.stdin.write(json.dumps(what) + "\n")
    worker.stdin.flush()


def strongest(words: Sequence[tuple[str, float]]) -> set[str]:
    """The words that speak most for a label."""
    ranked = sorted(words, key=lambda word: -word[1])[:STRONGEST]
    return {word.lower() for word, share in ranked if share > 0.0}


def without(text: str, words: set[str]) -> str:
    """A text without some words, wherever they stand."""
    return re.sub(r"\w+", lambda found: "" if found[0].lower() in words else found[0], text)


def _deletion_table(cases: Sequence[_Case]) -> Iterator[str]:
    columns = _Case(*(np.array(column) for column in zip(*cases, strict=True)))
    before, lime = columns.before, columns.without_lime
    lime_seconds = float(np.median(columns.lime_seconds + columns.model_seconds))
    yield f"  mean probability {np.mean(before):.3f}; without LIME's words {np.mean(lime):.4f}"
    yield f"  LIME takes {1e3 * lime_seconds:.0f} ms of CPU, with what it asks the model (median)"
    for name, ours, seconds in (
        ("largest shares", columns.without_ours, columns.our_seconds),
        (
            "words that it hangs on, estimated (strongest(3))",
            columns.without_strongest,
            columns.strongest_seconds,
        ),
        ("words that it hangs on (deletions=3)", columns.without_deletions, columns.deletion_seconds),
    ):
        is_equal = np.abs(ours - lime) <= 1e-6 * before
        n_better, n_worse = int(np.sum((ours < lime) & ~is_equal)), int(np.sum((ours > lime) & ~is_equal))
        spent = float(np.median(seconds))
        yield f"  {name}: without them {np.mean(ours):.4f}"
        yield (
            f"    lower it more {n_better} times, LIME's {n_worse} times, as much "
            f"{len(cases) - n_better - n_worse} times; of all {n_better / len(cases):.1%}, of those that "
            f"differ {n_better / max(1, n_better + n_worse):.1%}"
        )
        yield f"    {1e6 * spent:.0f} us of CPU: LIME takes {lime_seconds / spent:,.0f} times as long"


# Labels


def _label_lines(chosen: argparse.Namespace) -> Iterator[str]:
    names = list(_generated_names(chosen.n_labels))
    table = StringTable.from_strings(names)
    counts = np.random.default_rng(1).integers(1, 1000, len(names))
    search = LabelSearch(table, counts)
    yield f"{len(names):,} labels: milliseconds of a search"
    parts = {"the first": "ra", "many found": "ra", "one found": names[-1], "none": "xyzzy"}
    for name, part in parts.items():
        began = time.perf_counter()
        found = search.find(part)
        yield f"  {name:<24} {1e3 * (time.perf_counter() - began):7.1f}   {len(found):,} found"
    began = time.perf_counter()
    near = search.near(names[7][:-1] + "x")
    yield f"  names near a wrong one   {1e3 * (time.perf_counter() - began):7.1f}   {len(near)} found"


def _generated_names(n: int) -> Iterator[str]:
    """Made of syllables, two or three words each, distinct."""
    rng = random.Random(1)
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    for number in range(n):
        words = ("".join(rng.choices(syllables, k=rng.randint(2, 4))) for _ in range(rng.randint(1, 2)))
        yield f"{' '.join(words).capitalize()} {number}"


if __name__ == "__main__":
    main()
