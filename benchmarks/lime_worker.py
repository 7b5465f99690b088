"""LIME, in its own environment: reads texts from standard input and writes their strongest words.

It asks whoever started it for probabilities: a line with perturbed texts goes out, one with numbers comes
back. So LIME needs no labeltree, and the model is the one that is explained by both.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

PACKAGE = "lime"


def install(pip: Callable[..., None]) -> None:
    pip("lime==0.2.0.1")


def main() -> None:
    import numpy
    from lime.lime_text import LimeTextExplainer

    def probabilities(texts: Any) -> Any:
        tell({"texts": list(texts)})
        found = numpy.array(json.loads(sys.stdin.readline()))
        return numpy.stack([1.0 - found, found], axis=1)

    for line in sys.stdin:
        job = json.loads(line)
        explainer = LimeTextExplainer(random_state=job["seed"])
        began = time.process_time()
        explained = explainer.explain_instance(job["text"], probabilities)  # its defaults: 5,000 texts
        tell({"words": explained.as_list(label=1), "seconds": time.process_time() - began})


def tell(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
