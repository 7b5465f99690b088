"""The demonstration: tag docstrings with what they document, on data that every machine has.

The sources of the installed Python libraries are parsed with ``ast``, never imported. A document is the text
of one docstring; its labels are the package and module it stands in, the kind of its object, and the names of
the object's parameters.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from labeltree.errors import DataError

if TYPE_CHECKING:
    from labeltree.experts.job import Callback
    from labeltree.model import Model

MAX_FILE_BYTES = 1_000_000  # larger ones are tables and generated code
MIN_WORDS, MAX_WORDS = 5, 150
MIN_LABEL_COUNT = 2  # a name that only one object has is nothing to learn
TEST_SHARE = 0.1
_SKIPPED_FOLDERS = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "_vendor"}
_WORD = re.compile(r"[a-z_][a-z_0-9]+")
_SHOWN_PREDICTIONS = 4


class Document(NamedTuple):
    """One docstring."""

    name: str  # dotted module and name of the object
    text: str
    labels: list[str]


class Harvest(NamedTuple):
    """The documents, and where they come from."""

    documents: list[Document]
    n_files: int
    n_skipped: int  # files that cannot be read or parsed, or are too large

    @property
    def texts(self) -> list[str]:
        return [document.text for document in self.documents]

    @property
    def labels(self) -> list[list[str]]:
        return [document.labels for document in self.documents]


def library_folders() -> list[Path]:
    """Where the standard library and the installed packages are."""
    paths = sysconfig.get_paths()
    return sorted({Path(paths[name]) for name in ("stdlib", "purelib", "platlib")})


def harvest(max_documents: int, seed: int = 1, folders: Sequence[Path] | None = None) -> Harvest:
    """Docstrings of the Python sources below ``folders`` (default: everything installed).

    The same folders and seed give the same documents. Files are taken in an order that depends only on their
    names and the seed, until there are enough, so a large installation takes no longer.
    """
    files = sorted(_source_files(library_folders() if folders is None else folders), key=lambda f: f[1])
    files.sort(key=lambda file: _hash(f"{seed} {file[1]}"))
    documents: list[Document] = []
    seen: set[str] = set()
    n_files = n_skipped = 0
    for path, module in files:
        if len(documents) >= max_documents:
            break
        found = _documents_of(path, module)
        n_files += found is not None
        n_skipped += found is None
        for document in found or ():
            if document.text not in seen:
                seen.add(document.text)
                documents.append(document)
    return Harvest(_without_rare_labels(documents[:max_documents]), n_files, n_skipped)


def split(documents: Iterable[Document]) -> tuple[list[Document], list[Document]]:
    """Documents to train on and to test on: by their names, so that it never depends on the others."""
    parts: tuple[list[Document], list[Document]] = [], []
    for document in documents:
        parts[_hash(document.name) < TEST_SHARE].append(document)
    return parts


def _source_files(folders: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Each source file and its module's dotted name."""
    for folder in folders:
        for place, inner, names in os.walk(folder):
            inner[:] = sorted(name for name in inner if name.isidentifier() and name not in _SKIPPED_FOLDERS)
            parents = Path(place).relative_to(folder).parts
            for name in names:
                stem, extension = os.path.splitext(name)
                if extension == ".py" and stem.isidentifier():
                    module = parents if stem == "__init__" else (*parents, stem)
                    if module:
                        yield Path(place, name), ".".join(module)


def _documents_of(path: Path, module: str) -> list[Document] | None:
    """The documents of one file, or None if it cannot be parsed."""
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # others' invalid escapes are not our user's business
            tree = ast.parse(path.read_bytes())
        return list(_walk(tree, module, module, in_class=False))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _walk(node: ast.AST, module: str, name: str, *, in_class: bool) -> Iterator[Document]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        words = _WORD.findall((ast.get_docstring(node, clean=False) or "").lower())
        if len(words) >= MIN_WORDS:
            yield Document(name, " ".join(words[:MAX_WORDS]), _labels(node, module, in_class))
    for child in getattr(node, "body", ()):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            inside = isinstance(node, ast.ClassDef)
            yield from _walk(child, module, f"{name}.{child.name}", in_class=inside)


def _labels(node: ast.AST, module: str, in_class: bool) -> list[str]:
    kind = "method" if in_class else "function"
    names: list[str] = []
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        arguments = node.args
        given = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        given += [argument for argument in (arguments.vararg, arguments.kwarg) if argument is not None]
        names = [argument.arg for argument in given if argument.arg not in ("self", "cls")]
    else:
        kind = "module" if isinstance(node, ast.Module) else "class"
    found = [f"package:{module.partition('.')[0]}", f"module:{module}", f"kind:{kind}"]
    return found + [f"param:{name}" for name in dict.fromkeys(names)]


def _without_rare_labels(documents: list[Document]) -> list[Document]:
    counts = Counter(label for document in documents for label in document.labels)
    return [
        document._replace(labels=[label for label in document.labels if counts[label] >= MIN_LABEL_COUNT])
        for document in documents
    ]


def _hash(text: str) -> float:
    """A number in 0..1 that is the same on every machine."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def run_demo(
    echo: Callable[[str], None],
    *,
    bar: AbstractContextManager[Callback] | None = None,
    output: Path | None = None,
    max_documents: int = 12_000,
    seed: int = 1,
    threads: int = 0,
    folders: Sequence[Path] | None = None,
) -> Model:
    """Harvest, train with the defaults, test, show; ``echo`` gets every line that a user should see.

    ``bar`` is entered for the training alone, and gives its callback. The model is kept only where ``output``
    says so.
    """
    started = time.perf_counter()
    echo("1. Reading the docstrings of the installed Python libraries (parsed, not imported) ...")
    harvested = harvest(max_documents, seed, folders)
    train_part, test_part = split(harvested.documents)
    if not train_part or not test_part:
        raise DataError(
            f"the demo found {len(harvested.documents)} docstrings in {harvested.n_files} files, too few to "
            "train and test on; use a Python whose standard library comes as source files"
        )
    n_labels = len({label for document in harvested.documents for label in document.labels})
    echo(
        f"   {len(harvested.documents):,} documents with {n_labels:,} labels from {harvested.n_files:,} "
        f"files ({harvested.n_skipped:,} skipped); {len(test_part):,} are kept for the test."
    )
    echo("2. Training with the defaults ...")
    model, seconds = _train(train_part, bar, threads)
    echo(f"   {model.n_features:,} words, {model.n_labels:,} labels, {seconds:.1f} s.")
    echo("3. Testing on documents it has not seen:")
    for line in _test_lines(model, test_part, seconds, threads):
        echo(f"   {line}")
    echo("4. Some of them, with the labels found (+ marks the right ones):")
    for line in _example_lines(model, test_part, threads):
        echo(f"   {line}".rstrip())
    kept = "The model was not kept: -o FILE does."
    if output is not None:
        model.save(output)
        kept = f"The model is {output}."
    echo(f"Done in {time.perf_counter() - started:.1f} s. {kept}")
    for line in _next_steps(output):
        echo(line)
    return model


def _train(
    documents: list[Document], bar: AbstractContextManager[Callback] | None, threads: int
) -> tuple[Model, float]:
    from labeltree.training.driver import train

    started = time.perf_counter()
    texts, labels = [document.text for document in documents], [document.labels for document in documents]
    with bar or nullcontext() as callback:
        model = train(texts, labels, callback=callback, threads=threads)
    return model, time.perf_counter() - started


def _test_lines(model: Model, documents: list[Document], training_seconds: float, threads: int) -> list[str]:
    from labeltree.metrics import evaluate
    from labeltree.wording import align

    started = time.perf_counter()
    ids, _ = model.predict_arrays([document.text for document in documents], k=5, threads=threads)
    seconds = time.perf_counter() - started
    id_of = {name: number for number, name in enumerate(model.label_names)}
    truth = [[id_of.get(label, -1) for label in document.labels] for document in documents]
    scores = evaluate(ids, truth)
    titles = ["P@1", "P@3", "P@5", "labels", "documents", "training seconds", "test seconds"]
    values = [f"{100 * scores[f'p@{k}']:.1f}" for k in (1, 3, 5)]
    values += [f"{model.n_labels:,}", f"{len(documents):,}", f"{training_seconds:.1f}", f"{seconds:.1f}"]
    return align([titles, values])


def _example_lines(model: Model, documents: list[Document], threads: int) -> Iterator[str]:
    shown = sorted(documents, key=lambda document: _hash(f"shown {document.name}"))[:_SHOWN_PREDICTIONS]
    answers = model.predict([document.text for document in shown], k=5, threads=threads)
    for document, answer in zip(shown, answers, strict=True):
        yield ""
        yield f'{document.name}: "{" ".join(document.text.split()[:12])} ..."'
        for label, probability in answer:
            yield f"  {'+' if label in document.labels else ' '} {probability:.3f}  {label}"
        missed = sorted(set(document.labels) - {label for label, _ in answer})
        if missed:
            yield f"  not among the first five: {', '.join(missed)}"
    yield ""


def _next_steps(path: Path | None) -> list[str]:
    keep = [] if path else ["  labeltree demo -o demo.labeltree"]
    return [
        "",
        "Try it:",
        *keep,
        f'  echo "return the mean of an array along an axis" | labeltree predict {path or "demo.labeltree"}',
        "",
        "Then with your own file, a line per document: `__label__bread __label__baking how to bake bread`",
        "  labeltree train train.txt -o my.labeltree",
        "  labeltree test my.labeltree test.txt",
        "  labeltree predict my.labeltree new.txt",
    ]
