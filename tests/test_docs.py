"""Every command and every Python snippet of the README and the docs runs, on small generated data; and every
file, module and name that pages and docstrings speak of exists.

The blocks of a page run in one folder, one after another, as a reader would run them. A block without a
language is commands if a line of it starts like one, else a drawing or data. Not run are commands that
install something (pip), ``labeltree warm-up``, which compiles for minutes, ``labeltree serve``, which does
not end, and ``python -m benchmarks…`` or ``experiments…``, which need data sets or peers: of these
arguments must be right, or the module must exist.
"""

from __future__ import annotations

import ast
import builtins
import gzip
import importlib.util
import inspect
import io
import json
import logging
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from scipy.sparse import csr_matrix

import labeltree
from labeltree import cli
from labeltree.cli import commands, demo
from labeltree.cli.options import given_parameters
from labeltree.config import make_config, parameters

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
COMMAND = re.compile(r'(?:echo "(?P<input>[^"]*)" \| )?labeltree (?P<arguments>.*)')
MODULE = re.compile(r"python -m (?P<module>(?:benchmarks|experiments)[.\w]*)")
INSTALLS = re.compile(r"\bpip install\b")
BLOCK = re.compile(r"^```(?P<language>\w*)\n(?P<text>.*?)^```$", re.M | re.S)
OPTIONS = {parameter.option for parameter in parameters()}

SENTENCES = {
    "bread": "why does my sourdough bread not rise",
    "sauce": "how to thicken a sauce without flour",
    "baking": "how long to bake a cake in the oven",
    "knives": "how to sharpen a chef knife at home",
}
TEXTS = [f"{sentence} number {number}" for number in range(20) for sentence in SENTENCES.values()]
LABELS = [[label, "food"] if label != "knives" else [label] for _ in range(20) for label in SENTENCES]


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its lines, if it is one of commands."""
        lines = self.text.splitlines()
        known = (COMMAND.match, MODULE.match, INSTALLS.search)
        is_shell = not self.language and any(find(line) for line in lines for find in known)
        return lines if is_shell else []


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield Block(str(page.relative_to(ROOT)), line, found["language"], found["text"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a page runs: the files that its commands name, and few libraries for the demo."""
    lines = [
        " ".join([*(f"__label__{label}" for label in labels), text])
        for text, labels in zip(TEXTS, LABELS, strict=True)
    ]
    for name in ("train.txt", "test.txt"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "new.txt").write_text("\n".join(TEXTS) + "\n")
    rows = (json.dumps({"text": t, "labels": names}) for t, names in zip(TEXTS, LABELS, strict=True))
    (tmp_path / "train.jsonl.gz").write_bytes(gzip.compress("\n".join(rows).encode()))
    subjects = ("".join(f"\t<http://example.org/{label}>" for label in labels) for labels in LABELS)
    documents = "".join(f"{text}{uris}\n" for text, uris in zip(TEXTS, subjects, strict=True))
    (tmp_path / "documents.tsv").write_text(documents)  # as Annif has it
    monkeypatch.setattr(demo, "library_folders", lambda: [Path(labeltree.__file__).parents[1]])
    monkeypatch.chdir(tmp_path)
    log = logging.getLogger("labeltree")
    level = log.level  # which a snippet sets
    yield tmp_path
    log.setLevel(level)


def taken_for_granted(page: str) -> dict[str, Any]:
    """The variables that a page's snippets use without making them."""
    names = sorted({label for labels in LABELS for label in labels})
    ids = [[names.index(label) for label in labels] for labels in LABELS]
    if page == "docs/metrics.md":  # true labels are ids there
        model = labeltree.train(TEXTS, LABELS, label_names=names)
        counts = {"label_counts": model.label_counts, "n": model.n_examples, "n_labels": model.n_labels}
        return {"model": model, "X": TEXTS, "labels": ids, **counts}
    X = csr_matrix([[float(word in text) for word in ("bread", "sauce", "cake", "knife")] for text in TEXTS])
    return {"texts": TEXTS, "labels": LABELS, "label_lists": LABELS, "X": X, "Y": LABELS}


def run_command(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    called, module = COMMAND.match(line), MODULE.match(line)
    words = [] if called is None else shlex.split(called["arguments"])
    if words[:1] in (["warm-up"], ["serve"]):
        commands.cli.commands[words[0]].make_context(words[0], words[1:])
    elif called is not None:
        typed = io.BytesIO(f"{called['input'] or ''}\n".encode())
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(typed))
        assert cli.main(words) == 0, line
    elif module is not None:
        assert importlib.util.find_spec(module["module"]) is not None, line
    else:
        assert INSTALLS.search(line), f"not known how to check: {line}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_and_snippets_run(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values: dict[str, Any] = {}
    for block in blocks_of(page):
        for line in block.commands:
            if "--embed" in line and importlib.util.find_spec("wordllama") is None:
                pytest.skip("wordllama is not installed: pip install 'labeltree[embed]'")
            run_command(line, monkeypatch)
        if block.language == "python":
            if "pyarrow" in block.text:
                pytest.importorskip("pyarrow", reason="no pyarrow: pip install 'labeltree[parquet]'")
            if "labeltree.torch" in block.text:
                pytest.importorskip("torch", reason="torch is not installed: pip install 'labeltree[torch]'")
            values = values or taken_for_granted(block.page)
            code = compile("\n" * block.line + block.text, str(page), "exec")  # errors name the page's lines
            exec(code, values)
        else:
            assert not block.language, f"{block.page}:{block.line}: not known how to run {block.language}"


def test_there_is_much_to_run() -> None:
    blocks = [block for page in PAGES for block in blocks_of(page)]
    called = [line for block in blocks for line in block.commands if COMMAND.match(line)]
    assert len(called) > 20
    assert sum(block.language == "python" for block in blocks) > 5
    shown = {line.partition("labeltree ")[2].split()[0] for line in called}
    assert {"train", "test", "predict", "prob", "compare-search", "inspect", "demo"} <= shown


@pytest.mark.parametrize("command", commands.cli.commands.values(), ids=lambda command: str(command.name))
def test_the_page_of_the_command_line_has_every_option(command: click.Command) -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"\n## labeltree {command.name}" in page or f" {command.name} " in page
    options = (each.opts[-1] for each in command.params if isinstance(each, click.Option))
    assert [name for name in options if not re.search(rf"{name}\b", page)] == []


def test_the_page_of_python_has_every_argument_of_train() -> None:
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    arguments = inspect.signature(labeltree.train).parameters.values()
    named = [each.name for each in arguments if each.kind is not inspect.Parameter.VAR_KEYWORD]
    assert [name for name in named if f"`{name}`" not in page] == []


def option_lists() -> list[tuple[str, str]]:
    """Code between backquotes that is several options of training: page, options."""
    found = []
    for page, name in zip(PAGES, NAMES, strict=True):
        for span in re.findall(r"`(--[^`\n]+)`", page.read_text(encoding="utf-8")):
            options = [word for word in span.split() if word.startswith("--")]
            is_concrete = not any(word.isupper() for word in span.split())  # N and FILE stand for something
            if len(options) > 1 and is_concrete and options[0].replace("--no-", "--") in OPTIONS:
                found.append((name, span))
    return sorted(set(found))


@pytest.mark.parametrize(("page", "options"), option_lists())
def test_options_that_stand_together_have_an_effect(page: str, options: str) -> None:
    with click.Context(commands.train) as context:
        commands.train.parse_args(context, ["data", *options.split()])
        make_config(given_parameters(context), preset=context.params["preset"])


SOURCE = Path(labeltree.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
ROLE = re.compile(r":(?:mod|func|class|meth|data):`~?([.\w]+)`")
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
FILE = re.compile(r"(?<![\w./*-])((?:[a-z_][\w.-]*/)+(?:[\w.-]*\w)?|[a-z_]+\.py)(?![\w/*])")
VARIES = re.compile(r"\b[A-Z]+\b|__pycache__")  # capitals stand for something; what is compiled may be there
DOTTED = re.compile(r"(?<![\w./-])((?:labeltree|benchmarks|experiments|fuzz)(?:\.\w+)+)(?![/\w-])")


def is_file(name: str, page: Path) -> bool:
    """Of the repository, the package or the page's folder; a name without a folder may be anywhere in it."""
    if "/" not in name:
        return any(SOURCE.rglob(name)) or (ROOT / name).exists()
    return any((folder / name).exists() for folder in (ROOT, SOURCE.parent, SOURCE, page.parent))


def is_named(target: str) -> bool:
    """Whether a dotted name is a module, or something that one has."""
    if target.startswith("labeltree.torch") and importlib.util.find_spec("torch") is None:
        return True  # nothing can be said here
    try:
        pkgutil.resolve_name(target)
    except (ImportError, AttributeError):
        return False
    return True


def missing_names(text: str, page: Path) -> Iterator[str]:
    """Files and modules that are named in code, but are not there."""
    for code in CODE.findall(text):
        yield from (name for name in FILE.findall(code) if not (VARIES.search(name) or is_file(name, page)))
        yield from (name for name in DOTTED.findall(code) if not is_named(name))


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_files_and_modules_that_pages_name_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert list(missing_names(text, page)) == []
    assert [link for link in LINK.findall(text) if not (page.parent / link).exists()] == []


def names_in(module: ast.Module) -> set[str]:
    """All that a module defines, at any level, or imports."""
    found = set(dir(builtins))
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_what_docstrings_name_exists(path: Path) -> None:
    module = ast.parse(path.read_text(encoding="utf-8"))
    package = ".".join(("labeltree", *path.relative_to(SOURCE).parts[:-1]))
    documented = ast.Module | ast.ClassDef | ast.FunctionDef
    text = "\n".join(ast.get_docstring(n) or "" for n in ast.walk(module) if isinstance(n, documented))
    own = names_in(module)
    for target in ROLE.findall(text):
        full = f"{package}{target}" if target.startswith(".") else target
        known = is_named(full) if full.startswith("labeltree") else full.partition(".")[0] in own
        assert known, target
    assert list(missing_names(text, path)) == []
