"""Text features in plain Python: what words, n-grams, TF-IDF weights and label rows are.

The twin of :mod:`labeltree.features` and of ``kernels/text``.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from labeltree.config import Config

Row = dict[int, float]  # column -> value
Part = bytes | tuple[bytes, bytes]  # of blocks: characters of a word, or two words

_WHITE_SPACE = re.compile(rb"[ \t\n\v\f\r\0]+")
_WEIGHT = re.compile(rb"(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f\U0001aff0-\U0001b16f\U00020000-\U0003ffff]"
)
_BITS = (1 << 64) - 1


class Line(NamedTuple):
    """One row, split."""

    words: list[bytes]
    weights: list[float]  # empty if words carry none
    labels: list[bytes]


class Fitted(NamedTuple):
    words: list[bytes]  # by column
    buckets: dict[int, int]  # n-gram bucket -> column
    blocks: list[dict[Part, int]]  # of each block: n-gram or pair -> column
    block_end: list[int]  # where the columns of the words and of each block end
    idf: list[float]
    labels: list[bytes]
    rows: list[Row]
    label_rows: list[list[int]]


def split_line(text: bytes, config: Config, labels_in_text: bool) -> Line:
    """Raises ValueError for an empty label and for a word without a good weight."""
    line = Line([], [], [])
    prefix = config.label_prefix.encode()
    for token in filter(None, _WHITE_SPACE.split(text)):
        if labels_in_text and token.startswith(prefix):
            if token == prefix:
                raise ValueError("a label is empty")
            line.labels.append(token.removeprefix(prefix))
            continue
        word = token
        if config.weighted_words:
            word, _, number = token.rpartition(b":")
            if not word or not _WEIGHT.fullmatch(number) or float(number) > 1e18:
                raise ValueError(f"a word without a usable weight: {token!r}")
            line.weights.append(float(number))
        whole = config.weighted_words or config.tokens == "spaces"
        for part in [word] if whole else words_of(word):
            line.words.append(lower_case(part) if config.lowercase else part)
    return line


def words_of(token: bytes) -> list[bytes]:
    """Runs of letters, marks and digits; of scripts without spaces every two neighbours, or one by itself."""
    words: list[str] = []
    for is_unspaced, run in itertools.groupby(token.decode("utf-8", "surrogateescape"), key=_kind):
        text = "".join(run)
        if is_unspaced and len(text) > 1:
            words += [text[k : k + 2] for k in range(len(text) - 1)]
        elif is_unspaced is not None:
            words.append(text)
    return [word.encode() for word in words]


def _kind(character: str) -> bool | None:
    """Whether a character of words is of a script without spaces; None if it is of no word."""
    if unicodedata.category(character)[0] not in "LMN":
        return None
    return _UNSPACED.match(character) is not None


def lower_case(word: bytes) -> bytes:
    """Character by character; one stays if its lower case is not one of the first 65536 characters, as do
    bytes that are not UTF-8."""
    text = word.decode("utf-8", "surrogateescape")
    lowered = [
        c.lower() if len(c.lower()) == 1 and max(ord(c), ord(c.lower())) < 1 << 16 else c for c in text
    ]
    return "".join(lowered).encode("utf-8", "surrogateescape")


def hash_word(word: bytes) -> int:
    value = 0
    for start in range(0, len(word), 8):
        value ^= int.from_bytes(word[start : start + 8], "little")
        value = value * 0x9E3779B97F4A7C15 & _BITS
        value ^= value >> 32
    value = (value ^ len(word)) * 0xD6E8FEB86659FD93 & _BITS
    return value ^ value >> 32


def ngram_buckets(words: list[bytes], config: Config) -> list[int]:
    """The buckets of all runs of 2 to ``word_ngrams`` words."""
    hashes = [hash_word(word) for word in words]
    buckets = []
    for start, value in enumerate(hashes):
        for following in hashes[start + 1 : start + config.word_ngrams]:
            value = (value * 0x9E3779B97F4A7C15 + following) * 0xD6E8FEB86659FD93 & _BITS
            value ^= value >> 32
            buckets.append((value >> 32) * config.ngram_buckets >> 32)
    return buckets


def ngrams_of(word: bytes, n: int) -> list[bytes]:
    """Runs of n characters of the word between spaces; all of it if it is shorter."""
    characters = re.findall(rb"[^\x80-\xbf][\x80-\xbf]*", b" " + word + b" ")
    return [b"".join(characters[k : k + n]) for k in range(max(1, len(characters) - n + 1))]


def block_parts(line: Line, words: Collection[bytes], config: Config) -> list[list[Part]]:
    """What a row has of each block that is wanted."""
    if config.weighted_words:
        return []
    ngrams: list[Part] = [part for word in line.words for part in ngrams_of(word, config.char_ngrams)]
    pairs: list[Part] = [
        pair for pair in itertools.pairwise(line.words) if pair[0] in words and pair[1] in words
    ]
    wanted = [(config.char_weight, ngrams), (config.pair_weight, pairs)]
    return [parts for weight, parts in wanted if weight > 0]


def fit_blocks(
    lines: Sequence[Line], words: list[bytes], first: int, config: Config
) -> list[dict[Part, int]]:
    """Columns from ``first`` on: of each block what enough rows have, by falling number of rows."""
    known = set(words)
    of_rows = [block_parts(line, known, config) for line in lines]
    blocks: list[dict[Part, int]] = []
    for b in range(len(block_parts(Line([], [], []), known, config))):
        n_rows = Counter(part for parts in of_rows for part in dict.fromkeys(parts[b]))
        chosen = [part for part, n in n_rows.most_common() if n >= config.min_rows]
        blocks.append({part: first + k for k, part in enumerate(chosen)})
        first += len(chosen)
    return blocks


def fit_lines(lines: Sequence[Line], config: Config) -> Fitted:
    """Words by falling count, then first seen; buckets after them, then the smaller; labels first seen."""
    word_counts = Counter(word for line in lines for word in line.words)
    bucket_counts = Counter(bucket for line in lines for bucket in ngram_buckets(line.words, config))
    words = [word for word, n in word_counts.most_common() if n >= config.min_count]
    frequent = sorted(bucket_counts, key=lambda bucket: (-bucket_counts[bucket], bucket))
    frequent = [bucket for bucket in frequent if bucket_counts[bucket] >= config.min_count]
    buckets = {bucket: len(words) + k for k, bucket in enumerate(frequent)}
    n_columns = len(words) + len(buckets)
    blocks = fit_blocks(lines, words, n_columns, config)
    block_end = list(itertools.accumulate([n_columns, *map(len, blocks)]))
    labels = list(dict.fromkeys(label for line in lines for label in line.labels))
    label_rows = [label_row(line, labels) for line in lines]
    fitted = Fitted(words, buckets, blocks, block_end, [1.0] * block_end[-1], labels, [], label_rows)
    counts = [count_line(line, fitted, config) for line in lines]
    if config.idf and not config.weighted_words:  # given weights are final
        documents = Counter(column for row in counts for column in row)
        idf = [1 + math.log((1 + len(lines)) / (1 + documents[column])) for column in range(block_end[-1])]
        fitted = fitted._replace(idf=idf)
    return fitted._replace(rows=[weigh_row(row, fitted, config) for row in counts])


def count_line(line: Line, fitted: Fitted, config: Config) -> Row:
    """How often each column occurs, or the sum of its weights."""
    columns = {word: column for column, word in enumerate(fitted.words)}
    row: Row = {}
    for k, word in enumerate(line.words):
        if word in columns:
            row[columns[word]] = row.get(columns[word], 0) + (line.weights[k] if line.weights else 1)
    found = [fitted.buckets.get(bucket) for bucket in ngram_buckets(line.words, config)]
    for block, parts in zip(fitted.blocks, block_parts(line, columns, config), strict=True):
        found += [block.get(part) for part in parts]
    for column in found:
        if column is not None:
            row[column] = row.get(column, 0) + 1
    return dict(sorted(row.items()))


def weigh_row(counts: Row, fitted: Fitted, config: Config) -> Row:
    """Each block by itself, then, if there are several, all together."""
    tf = "count" if config.weighted_words else config.tf
    functions = {"count": lambda n: n, "log": lambda n: 1 + math.log(n), "binary": lambda n: 1.0}
    weights = [1.0, *(weight for weight in (config.char_weight, config.pair_weight) if weight > 0)]
    row: Row = {}
    start = 0
    for b, (end, weight) in enumerate(zip(fitted.block_end, weights, strict=False)):
        block = {c: functions[tf](n) * fitted.idf[c] for c, n in counts.items() if start <= c < end}
        if b > 0 and config.strongest:  # words are all kept
            kept = sorted(block, key=lambda column: (-block[column], column))[: config.strongest]
            block = {column: block[column] for column in sorted(kept)}
        row |= {c: weight * value for c, value in normalize_row(block, config.row_norm).items()}
        start = end
    return normalize_row(row, config.row_norm) if len(fitted.block_end) > 1 else row


def normalize_row(row: Row, row_norm: str) -> Row:
    norms = {"l2": math.hypot(*row.values()), "mean": sum(map(abs, row.values())), "none": 1.0}
    norm = norms[row_norm] or 1.0
    return {column: value / norm for column, value in row.items()}


def label_row(line: Line, labels: list[bytes]) -> list[int]:
    """Label ids in order; -1 once for each label that is not known."""
    ids = {label: k for k, label in enumerate(labels)}
    return sorted(ids.get(label, -1) for label in dict.fromkeys(line.labels))
