"""xCOLUMNs, in its own environment: decides for the rows of a file by block coordinate ascent.

    python xcolumns_worker.py MARGINALS.npz FOLDER K MEASURE ...

Writes what it decides for each measure to FOLDER, and prints a line with its CPU seconds; its defaults.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

PACKAGE = "xcolumns"


def install(pip: Callable[..., None]) -> None:
    pip("xcolumns==0.0.2")


def main() -> None:
    from scipy.sparse import load_npz, save_npz
    from xcolumns import block_coordinate as peer

    known = {
        "macro-f1": peer.predict_optimizing_macro_f1_score_using_bc,
        "macro-precision": peer.predict_optimizing_macro_precision_using_bc,
        "macro-recall": peer.predict_optimizing_macro_recall_using_bc,
        "coverage": peer.predict_optimizing_coverage_using_bc,
        "p": peer.predict_optimizing_instance_precision_using_bc,
    }
    marginals, folder, k = load_npz(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
    for name in sys.argv[4:]:
        known[name](marginals[:50], k=k)  # compiles what it needs
        began = time.process_time()
        decided = known[name](marginals, k=k)
        seconds = time.process_time() - began
        save_npz(folder / f"{name}.npz", decided)
        print(json.dumps({"measure": name, "seconds": seconds}), flush=True)


if __name__ == "__main__":
    main()
