"""How labeltree grows, on generated data (`benchmarks/generate.py` says how it is drawn).

    python -m benchmarks.scaling [--labels 1e3,1e4,1e5,1e6] [--documents 1e4,1e5,1e6] [--rounds 3]
                                 [--nodes sparse|dense] [--output FOLDER] [--page docs/scaling.md]

with labels and documents, each for itself (`growth.py`);

    python -m benchmarks.scaling --like wiki10,delicious200k,wikilshtc,wiki500k,amazon670k [--tools ...]

to the size of the paper's sets, beside its peers, each process at most 45 minutes (`like.py`);

    python -m benchmarks.scaling --memory

within 2 GB of memory, and with more and more rows there.

What is measured goes into the folder beside the page (docs/scaling/): a second start measures only what is
missing, so that all can be done some at a time. Every start writes the page anew from all that is there; with
--rewrite nothing else is done. --quick tries everything on tiny data.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.compare import Ledger
from benchmarks.environments import cache_folder
from benchmarks.generate import PUBLISHED
from benchmarks.scaling import like
from benchmarks.scaling.growth import keep_growth
from benchmarks.scaling.page import write_page
from benchmarks.scaling.steps import STEPS
from labeltree.config import Config
from labeltree.nodes import KINDS

QUICK: dict[str, Any] = {
    "labels": "1e2,1e3", "documents": "5e2,2e3", "fixed_labels": "1e2", "fixed_documents": "2e3",
    "features": "5e3", "rounds": 2,
}  # fmt: skip


def read_sizes(text: str) -> list[int]:
    return [int(float(size)) for size in text.split(",")]


def read_size(text: str) -> int:
    return int(float(text))


def make_parser(is_quick: bool) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--labels", type=read_sizes, default="1e3,1e4,1e5,1e6")
    parser.add_argument("--documents", type=read_sizes, default="1e4,1e5,1e6")
    parser.add_argument("--fixed-labels", type=read_size, default="1e4", help="while documents vary")
    parser.add_argument("--fixed-documents", type=read_size, default="5e5", help="while labels vary")
    parser.add_argument("--features", type=read_size, default=str(PUBLISHED["Amazon-670K"].n_features))
    parser.add_argument("--nodes", choices=list(KINDS), default=Config().nodes, help="their kind")
    parser.add_argument("--dim", type=int, help="of dense nodes, instead of labeltree's default")
    parser.add_argument("--epochs", type=int, help="of dense nodes, instead of labeltree's default")
    parser.add_argument("--threads", type=int, default=0, help="of training; 0: all CPUs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--rounds", type=int, default=3, help="of prediction, at least 1; the page has medians"
    )
    parser.add_argument("--like", help="instead: the tools on data of the size of these sets of the paper")
    parser.add_argument("--tools", default=like.DEFAULT_TOOLS, help="of --like, separated by commas")
    parser.add_argument("--memory", action="store_true", help="instead: labeltree within little memory")
    parser.add_argument("--output", type=Path, default=Path(tempfile.gettempdir()) / "labeltree-scaling")
    parser.add_argument("--page", type=Path, help="write there, and keep what is measured beside it")
    parser.add_argument("--rewrite", action="store_true", help="only the page, from what is beside it")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does everything work?")
    parser.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    if is_quick:
        parser.set_defaults(**QUICK)
    return parser


def main() -> None:
    is_quick = "--quick" in sys.argv
    parser = make_parser(is_quick)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step["step"]](options.step, options.output)))
        return
    if options.rounds < 1:
        parser.error(f"--rounds must be at least 1, but is {options.rounds}")
    page = options.page or options.output / "scaling.md"
    folder = page.with_suffix("")
    folder.mkdir(parents=True, exist_ok=True)
    if options.like or options.memory:
        plans = []
        if options.like:
            sets, tools = like.choose_sets(options.like), like.choose_tools(options.tools)
            plans += like.plan_sets(sets, tools, is_quick)
        if options.memory:
            plans += like.plan_memory(like.choose_tools("labeltree")[0], is_quick)
        like.measure_plans(plans, Ledger(folder), cache_folder())
    elif not options.rewrite:
        keep_growth(options, parser.parse_args(["--quick"] * is_quick), folder)
    text = write_page(folder)
    page.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
