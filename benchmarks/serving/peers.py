"""How many requests a second beside Annif's own server with its omikuji backend, and MLflow's scoring server?

    python -m benchmarks.serving.peers TRAIN TEXTS --work FOLDER [--seconds 5] [--connections 32] [--first]

TRAIN is a training file of texts with __label__, TEXTS one text per line. Annif trains omikuji on it with its
defaults, labeltree a model with its own; MLflow serves the same model of labeltree, as a function. A server
has one process and one core, the load comes from another (wrk). Environments of the peers are made once from
the package registry, what was trained is kept in FOLDER. Annif finds sentences by tables of NLTK that it
downloads: empty ones take their place.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import labeltree
from benchmarks.environments import cache_folder, environment
from benchmarks.serving.load import body_of, wrk
from benchmarks.serving.process import Service, go_first, read_texts, serving, wait_until_ready

_FORM = "application/x-www-form-urlencoded"
_PROJECT = "[peer]\nname=peer\nlanguage=en\nbackend=omikuji\nanalyzer=simple\nvocab=peer\nlimit=5\n"
_PYFUNC = """
import sys
import mlflow


class Tagger(mlflow.pyfunc.PythonModel):
    def load_context(self, context):
        import labeltree

        self.model = labeltree.load(context.artifacts["model"])

    def predict(self, context, model_input, params=None):
        texts = model_input["text"] if hasattr(model_input, "columns") else model_input
        return [dict(labels) for labels in self.model.predict(list(texts), 5, threads=1)]


mlflow.pyfunc.save_model(sys.argv[2], python_model=Tagger(), artifacts={"model": sys.argv[1]})
"""


def _install_annif(pip: Any) -> None:
    pip("annif[omikuji]==1.4.3")


def _install_mlflow(pip: Any) -> None:
    pip("mlflow==3.17.2", "numba>=0.60,<0.69", "scipy", "tqdm", "orjson")


class Peer(NamedTuple):
    """A server that runs, and how it is asked."""

    name: str
    service: Service
    path: str
    bodies: list[str]
    media_type: str = "application/json"


def python_of(name: str, install: Any, given: str | None) -> str:
    made = SimpleNamespace(PACKAGE=f"{name}-server", install=install)
    return given or str(environment(made, cache_folder()))  # type: ignore[arg-type]


def run(command: Sequence[str], folder: Path, **variables: str) -> None:
    environment = {**os.environ, **variables}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed: {done.stderr[-1000:]}")


def train_annif(python: str, train: Path, folder: Path) -> None:
    if (folder / "data" / "projects" / "peer" / "omikuji-model").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    numbers: dict[str, int] = {}
    with open(train, encoding="utf-8") as rows, open(folder / "train.tsv", "w", encoding="utf-8") as out:
        for row in rows:
            labels = [numbers.setdefault(w, len(numbers)) for w in row.split() if w.startswith("__label__")]
            text = " ".join(word for word in row.split() if not word.startswith("__label__"))
            if text and labels:
                out.write("\t".join([text, *(f"<http://example.org/{n}>" for n in labels)]) + "\n")
    names = "".join(f"<http://example.org/{n}>\t{label[9:]}\n" for label, n in numbers.items())
    (folder / "vocabulary.tsv").write_text(names, encoding="utf-8")
    (folder / "projects.cfg").write_text(_PROJECT)
    tables = folder / "tokenizers" / "punkt_tab" / "english"
    tables.mkdir(parents=True, exist_ok=True)
    for name in ("collocations.tab", "sent_starters.txt", "abbrev_types.txt", "ortho_context.tab"):
        (tables / name).touch()
    annif = [python, "-c", "from annif.cli import cli; cli()"]
    run([*annif, "load-vocab", "--language", "en", "peer", "vocabulary.tsv"], folder)
    run([*annif, "train", "--jobs", "2", "peer", "train.tsv"], folder, NLTK_DATA=str(folder))


def save_pyfunc(python: str, model: Path, folder: Path) -> None:
    source = str(Path(labeltree.__file__).parents[1])
    if not folder.exists():
        run([python, "-c", _PYFUNC, str(model.resolve()), str(folder)], model.parent, PYTHONPATH=source)


@contextmanager
def started(command: Sequence[str], folder: Path, core: int, **variables: str) -> Iterator[Service]:
    """A server on a free port, which takes the place of PORT in its command."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    whole = [str(port) if word == "PORT" else word for word in command]
    process = subprocess.Popen(
        whole, cwd=folder, env={**os.environ, **variables}, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, {core}), process_group=0,
    )  # fmt: skip
    try:
        yield Service(process.pid, port)
    finally:
        os.killpg(process.pid, 15)
        process.wait(30)


@contextmanager
def annif(given: argparse.Namespace, texts: Sequence[str], core: int) -> Iterator[Peer]:
    python = python_of("annif", _install_annif, given.annif)
    folder = given.work / "annif"
    train_annif(python, given.train, folder)
    command = [python, "-m", "uvicorn", "annif:create_app", "--factory", "--port", "PORT"]
    bodies = [f"text={urllib.parse.quote(text)}&limit=5" for text in texts]
    with started([*command, "--log-level", "warning"], folder, core, NLTK_DATA=str(folder)) as service:
        asyncio.run(wait_until_ready(service.port, "/v1/projects"))
        yield Peer("Annif, omikuji", service, "/v1/projects/peer/suggest", bodies, _FORM)


@contextmanager
def mlflow(given: argparse.Namespace, texts: Sequence[str], core: int, model: Path) -> Iterator[list[Peer]]:
    python = python_of("mlflow", _install_mlflow, given.mlflow)
    folder = given.work / "pyfunc"
    save_pyfunc(python, model, folder)
    command = [python, "-m", "mlflow", "models", "serve", "-m", str(folder), "-p", "PORT", "--workers", "1"]
    source = str(Path(labeltree.__file__).parents[1])
    # mlflow looks for programs such as uvicorn on the path.
    path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
    lists = [json.dumps({"inputs": [text]}) for text in texts]
    frames = [json.dumps({"dataframe_split": {"columns": ["text"], "data": [[text]]}}) for text in texts]
    with started([*command, "--env-manager", "local"], folder, core, PYTHONPATH=source, PATH=path) as service:
        asyncio.run(wait_until_ready(service.port, "/ping"))
        asked = service, "/invocations"
        yield [Peer("MLflow, lists", *asked, lists), Peer("MLflow, data frames", *asked, frames)]


def measure(peer: Peer, given: argparse.Namespace, core: int) -> float:
    asked = (peer.service, peer.path, peer.bodies, given.connections)
    wrk(*asked, 1, core, peer.media_type)  # caches are filled
    load = wrk(*asked, given.seconds, core, peer.media_type)
    print(load.line(peer.name), flush=True)
    return load.rate


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("train", type=Path)
    parser.add_argument("texts", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--annif", metavar="PYTHON", help="one that has Annif")
    parser.add_argument("--mlflow", metavar="PYTHON", help="one that has MLflow and what labeltree needs")
    parser.add_argument("--first", action="store_true", help="before all other processes (root, Linux)")
    given = parser.parse_args(arguments)
    given.work = given.work.resolve()
    given.work.mkdir(parents=True, exist_ok=True)
    texts = read_texts(given.texts, 4_000)
    model = given.work / "model.labeltree"
    if not model.exists():
        labeltree.train(given.train).save(model)
    if given.first:
        go_first()
    own, other = sorted(os.sched_getaffinity(0))[:2]
    rates = []
    with serving([f"model={model}"], "--quiet", core=own) as service:
        asyncio.run(wait_until_ready(service.port))
        bodies = [body_of([text]) for text in texts]
        rates.append(measure(Peer("labeltree", service, "/v1/models/model/predict", bodies), given, other))
        forms = [f"text={urllib.parse.quote(text)}&limit=5" for text in texts]
        peer = Peer("labeltree, Annif's API", service, "/v1/projects/model/suggest", forms, _FORM)
        rates.append(measure(peer, given, other))
    with annif(given, texts, own) as peer:
        rates.append(measure(peer, given, other))
    with mlflow(given, texts, own, model) as ways:
        rates += [measure(peer, given, other) for peer in ways]
    times = [f"{rates[0] / rate:.1f}" for rate in rates[2:]]
    print(f"labeltree answers {times[0]} times as many as Annif, {times[1]} and {times[2]} as MLflow")


if __name__ == "__main__":
    main()
