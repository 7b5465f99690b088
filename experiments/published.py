"""Figures of the paper's tables (Wydmuch et al., NeurIPS 2018), as printed there."""

from __future__ import annotations

from typing import NamedTuple


class Comparison(NamedTuple):
    """P@1, P@3, P@5 of both links."""

    hsm: tuple[float, float, float]
    plt: tuple[float, float, float]


# Appendix E.2, table "Precision@k of a simple HSM and a simple PLT implementation": P@1, P@3, P@5 of HSM and
# of PLT in Vowpal Wabbit (sparse, online), then in fastText (dense, online). Huffman trees, tuned.
_HSM_VS_PLT = """
EUR-Lex         56.98 46.99 39.09  74.55 60.60 50.05  66.39 54.05 44.73  73.19 57.79 46.98
AmazonCat-13K   86.69 72.00 57.97  91.46 76.00 61.40  90.18 72.53 56.20  92.98 75.75 59.53
Wiki-30K        70.20 60.11 53.17  84.34 72.34 62.72  83.02 69.66 59.50  85.11 73.12 62.67
Delicious-200K  41.58 33.24 28.04  45.27 38.95 35.59  42.17 37.94 35.77  46.98 40.99 38.04
WikiLSHTC-325K  36.90 22.30 16.60  41.63 26.78 20.39  41.28 24.68 18.08  41.78 24.96 18.53
Amazon-670K     33.64 28.58 25.01  36.85 32.48 29.15  25.04 21.06 18.28  26.18 22.76 20.29
"""


def hsm_vs_plt() -> dict[str, dict[str, Comparison]]:
    """By data set, then "sparse" (Vowpal Wabbit) and "dense" (fastText)."""
    found = {}
    for line in _HSM_VS_PLT.split("\n")[1:-1]:
        name, *numbers = line.split()
        values = [float(number) for number in numbers]
        triples = [(values[i], values[i + 1], values[i + 2]) for i in range(0, 12, 3)]
        found[name] = {
            "sparse": Comparison(triples[0], triples[1]),
            "dense": Comparison(triples[2], triples[3]),
        }
    return found


class Published(NamedTuple):
    """A column of Table 1 on one data set, as printed."""

    p_1: str
    p_3: str
    p_5: str
    train_time: str
    test_time: str  # per example
    size: str


TABLE1_SYSTEMS = ("FastXML", "PPDSparse", "DiSMEC", "FT", "LT", "XT", "Parabel", "XML-CNN")
TABLE1_NOTES = (
    "FT is fastText, LT the Learned Tree, Parabel has one tree. T is CPU time; * result of offline "
    "prediction, ** calculated on a GPU, † not reported by its authors, ‡ cannot be calculated for lack of a "
    "text version of the data."
)
# Table 1, the systems in the order of TABLE1_SYSTEMS; per data set a line for each of P@1, P@3, P@5, training
# time, test time per example, model size. (The paper prints the stars of a GPU as a five-pointed one; FT's
# training time on WikiLSHTC, 207, has no unit there.)
_TABLE1 = """
Wiki-30K
82.03  73.80  85.20  80.78   80.85    85.23   83.77   82.78
67.47  60.90  74.60  50.46   50.59    73.18   71.96   66.34
57.76  50.40  65.90  36.79   37.68    63.39   62.44   56.23
16m    †      †      10m     12m      18m     5m      88m**
3.00ms †      †      1.88ms  10.09ms  0.83ms  1.63ms* 1.39ms**
354M   †      †      513M    513M     259M    109M*   **
Delicious-200K
42.81  45.05  44.71  42.22   42.71    47.85   43.32   ‡
38.76  38.34  38.08  37.90   36.27    42.08   38.49   ‡
36.34  34.90  34.7   35.05   33.43    39.13   35.83   ‡
458m   4781m  1080h  271m    563m     502m    105m    ‡
4.86ms 275ms  5m     1.97ms  1.98ms   1.41ms  1.31ms* ‡
15.4G  9.4G   18.0G  9.0G    9.0G     1.9G    1.8G*   ‡
WikiLSHTC
49.35  64.08  64.94  41.13   50.15    58.73   61.53   ‡
32.69  41.26  42.71  24.09   31.95    39.24   40.07   ‡
24.03  30.12  31.5   17.44   23.59    29.26   29.25   ‡
724m   236m   750h   207     212m     550m    34m     ‡
2.17ms 37.76ms 43m   1.25ms  4.76ms   0.81ms  0.92ms* ‡
9.3G   5.2G   3.8G   6.5G    6.5G     3.3G    1.1G*   ‡
Wiki-500K
54.10  70.16  70.20  32.73   37.18    64.48   66.12   59.85
29.45  50.57  50.60  19.02   21.62    45.84   47.02   39.28
21.21  39.66  39.70  14.46   16.01    35.46   36.45   29.81
3214m  1771m  7495h  496m    531m     1253m   168m    7032m**
8.03ms 113.70ms 155m 2.05ms  6.43ms   1.07ms  4.68ms* 21.06ms**
63G    3.4G   14.7G  11G     11G      5.5G    2.0G*   3.7G**
Amazon-670K
34.24  45.32  45.37  25.47   27.67    39.90   41.59   35.39
29.30  40.37  40.40  21.47   20.96    35.36   37.18   33.74
26.12  36.92  36.96  18.61   17.72    32.04   33.85   32.64
422m   102m   373h   162m    182m     241m    8m      3134m**
3.39ms 66.09ms 23m   7.84ms  5.13ms   1.72ms  0.68ms* 16.18ms**
10G    6.0G   3.8G   3.2G    3.2G     1.5G    0.7G*   1.5G**
"""


def table1() -> dict[str, dict[str, Published]]:
    """By data set and system."""
    found = {}
    lines = _TABLE1.split("\n")[1:-1]
    for first in range(0, len(lines), 7):
        cells = [line.split() for line in lines[first + 1 : first + 7]]
        found[lines[first]] = {
            system: Published(*column)
            for system, column in zip(TABLE1_SYSTEMS, zip(*cells, strict=True), strict=True)
        }
    return found
