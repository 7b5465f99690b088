"""The ways of training that `python -m benchmarks.bars` measures, each with its own bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from benchmarks.preset_bars import CALIBRATION, PRECISION_BARS, TOOLS

ONE_TREE = "fast"  # on words, of either kind of nodes
FOREST = "fastxml"
Bars = Mapping[str, tuple[float, float, float]]
# Of each preset that has some: P@1/3/5, and CPU seconds of training.
ACCURACY_BARS: Mapping[str, Bars] = {
    ONE_TREE: {"debian-debtags": (81.5, 59.8, 45.3), "wordnet-hypernyms": (89.0, 80.3, 74.3)},
    FOREST: {
        "debian-debtags": (84.0, 61.5, 46.5),
        "bibtex": (63.0, 39.0, 28.6),
        "delicious": (69.0, 63.5, 58.5),
    },
    "ppdsparse": {"bibtex": (61.3, 36.0, 26.0)},  # PD-Sparse as published, rounded up
}
PRESETS = tuple(dict.fromkeys([*TOOLS, *ACCURACY_BARS]))
CPU_BARS: Mapping[str, Mapping[str, float]] = {
    ONE_TREE: {"debian-debtags": 15.0, "wordnet-hypernyms": 40.0},
    FOREST: {"debian-debtags": 60.0},
}


class Way(NamedTuple):
    """How a model is trained: a preset, "default" for none, and a kind of nodes if not that of the preset."""

    preset: str
    nodes: str | None = None

    def __str__(self) -> str:
        return " ".join(filter(None, self))

    @property
    def options(self) -> tuple[str, ...]:
        """Of `labeltree train`."""
        preset = () if self.preset == "default" else ("--preset", self.preset)
        return (*preset, *(("--nodes", self.nodes) if self.nodes else ()))

    def accuracy_bar(self, data: str) -> tuple[float, ...] | None:
        """P@1/3/5, in percent."""
        if self.preset in ACCURACY_BARS:
            return ACCURACY_BARS[self.preset].get(data)
        return PRECISION_BARS[self.preset].get(data) if self.nodes is None else None

    @property
    def calibration_bar(self) -> float | None:
        """Of ECE@5."""
        return CALIBRATION if self.preset in PRECISION_BARS and self.nodes is None else None

    def cpu_bar(self, data: str) -> float | None:
        """Seconds; of the defaults `benchmarks.compare` asks whether they are below Omikuji's."""
        return CPU_BARS.get(self.preset, {}).get(data)


USUAL = (Way("default"), Way(ONE_TREE), Way(ONE_TREE, "dense"))


def ways(presets: Sequence[str] | None, nodes: Sequence[str] | None) -> tuple[Way, ...]:
    """Each preset with each kind of nodes; of what is not given the usual ones."""
    if not presets and not nodes:
        return USUAL
    return tuple(Way(preset, kind) for preset in presets or (ONE_TREE,) for kind in nodes or (None,))
