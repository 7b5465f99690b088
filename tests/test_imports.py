"""Importing is free, and imports point downwards only."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import labeltree

SOURCE = Path(labeltree.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
GOLDEN = Path(__file__).parent / "storage" / "golden"
HEAVY = ("numpy", "numba", "scipy", "sklearn", "safetensors", "tqdm", "llvmlite")

# From the bottom up: a part imports only from lower lines, and from itself.
# A part is a folder or a module; a module named here stands by itself, not with its folder.
LAYERS = (
    "errors wording table storage/files",
    "memory_size parameter nodes/__init__ trees/__init__ storage/space",
    "config parallel kernels storage/__init__ storage/card storage/container storage/tensors storage/upgrade",
    "query storage/work_dir",
    "data",
    "tree features",
    "metrics nodes checking",
    "trees",
    "reference experts",
    "decisions explain",
    "storage/model_file predictor",
    "model",
    "training",
    "estimator torch",
    "distributed serve",
    "cli",
    "__main__",
)
LAYER_OF = {part: number for number, line in enumerate(LAYERS) for part in line.split()}


def part_of(path: Path) -> str:
    """``data``, ``model``, ``storage/files``."""
    names = path.relative_to(SOURCE).with_suffix("").parts
    two = "/".join(names[:2])
    return two if two in LAYER_OF else names[0]


def imports_of(path: Path, *, module_level: bool = False) -> Iterator[str]:
    """Full names of all that a file imports when it runs: of modules, or of what it takes from one."""
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting.extend(node.orelse)
            continue
        if module_level and isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import on line {node.lineno}"
            yield from (f"{node.module}.{name.name}" for name in node.names)
        waiting.extend(ast.iter_child_nodes(node))


def top(name: str) -> str:
    return name.partition(".")[0]


def own_parts(path: Path) -> set[str]:
    """The parts of this package that a file imports."""
    names = [name.split(".")[1:] for name in imports_of(path) if name.startswith("labeltree.")]
    return {_part_of_name(name) for name in names} - {"__version__"}


def _part_of_name(name: list[str]) -> str:
    """Of ``["storage", "files", "write_whole"]``: what a folder itself has is in its ``__init__``."""
    folder, *below = name
    inside = SOURCE / folder / (below[0] if below else "__init__")
    is_module = inside.is_dir() or inside.with_suffix(".py").is_file()
    full = f"{folder}/{below[0] if below and is_module else '__init__'}"
    return full if full in LAYER_OF else folder


def ids(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_every_part_has_its_layer() -> None:
    parts = {part_of(path) for path in MODULES} - {"__init__"}
    assert parts == set(LAYER_OF), "put new parts into LAYERS, as low as they can stand"


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) != "__init__"], ids=ids)
def test_imports_point_downwards(path: Path) -> None:
    part = part_of(path)
    for other in own_parts(path) - {part}:
        assert LAYER_OF[other] < LAYER_OF[part], f"{part} imports {other}"


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "kernels"], ids=ids)
def test_kernels_import_only_kernels(path: Path) -> None:
    assert own_parts(path) <= {"kernels", "storage/files"}  # the second to keep machine code
    assert {top(name) for name in imports_of(path)} & {"scipy", "sklearn"} == set()


@pytest.mark.parametrize("path", [p for p in MODULES if part_of(p) == "reference"], ids=ids)
def test_the_reference_stands_on_its_own(path: Path) -> None:
    """It is what kernels are compared with, so it must not use them."""
    assert "kernels" not in own_parts(path)
    assert {top(name) for name in imports_of(path)} & {"numba", "scipy", "sklearn"} == set()


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_heavy_libraries_have_one_door_each(path: Path) -> None:
    part = part_of(path)
    everywhere = {top(name) for name in imports_of(path)}
    assert part == "kernels" or everywhere & {"numba", "llvmlite"} == set()
    assert part == "estimator" or "sklearn" not in everywhere
    at_import = {top(name) for name in imports_of(path, module_level=True)}
    assert part == "estimator" or "scipy" not in at_import
    assert part == "torch" or "torch" not in everywhere
    assert {"pandas", "matplotlib"} & at_import == set()


@pytest.mark.parametrize("path", MODULES, ids=ids)
def test_the_library_is_silent(path: Path) -> None:
    """Only the command line prints or exits, and the demo prints through what it is given."""
    called = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not called & {"print", "exit", "quit", "eval", "exec", "breakpoint"}


@pytest.mark.parametrize(
    "code",
    [
        "import labeltree; dir(labeltree); labeltree.__version__",
        "import labeltree.config, labeltree.errors, labeltree.parallel, labeltree.data.formats",
        "from labeltree.cli import main; assert main(['--help']) == 0",
        "from labeltree.cli import main; assert main(['train', '--help']) == 0",
        "from labeltree.cli import main; assert main(['train', 'x', '-o', 'y', '--dim', '0']) == 2",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    check = f"import sys\n{code}\nassert not set({HEAVY!r}) & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_predicting_imports_nothing_that_trains(tmp_path: Path) -> None:
    for nodes in ("dense", "sparse"):
        labeltree.train(["a b", "b c"], [["x"], ["y"]], nodes=nodes).save(tmp_path / nodes)
    check = """
import sys
import labeltree
labeltree.load(sys.argv[1]).predict(["some text"], 1)  # of an earlier format
for path in sys.argv[2:]:
    model = labeltree.load(path)
    model.predict(["a"])
    model.predict(["a", "c"], None, threshold=0.1)
    model.probability(["a"], ["x"])
names = [name for name in sys.modules if name.startswith("labeltree.") and ".kernels." not in name]
words = {word for name in names for word in name.split(".")}
assert not words & {"training", "tree_training", "calibration", "fitting", "tasks", "packing"}, names
assert not words & {"buffers", "plan", "solvers"}, names
assert not [name for name in names if name.startswith("labeltree.trees.")], names
"""
    paths = [str(path) for path in (GOLDEN / "both-1.labeltree", tmp_path / "dense", tmp_path / "sparse")]
    done = subprocess.run([sys.executable, "-c", check, *paths], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_what_forests_are_made_with_is_imported_for_them_only() -> None:
    check = """
import sys
import labeltree
labeltree.train(["a b", "b c"], [["x"], ["y"]]).predict(["a"])
assert not {f"labeltree.kernels.forest.{name}" for name in ("voting", "growing")} & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def test_the_public_names() -> None:
    names = {"LabelTree", "LabelTreeClassifier", "Model", "decide", "load", "metrics", "train"}
    assert set(labeltree.__all__) == names
    assert set(labeltree.__all__) < set(dir(labeltree))
    for name in labeltree.__all__:
        assert getattr(labeltree, name) is not None
    assert callable(labeltree.train)
    program = "import labeltree as l; l.config.Config, l.errors.DataError, l.tree, l.model.Model"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    with pytest.raises(AttributeError, match="trian"):
        labeltree.trian  # noqa: B018


@pytest.mark.parametrize("arguments", [["train"], ["inspect", "no such file"]])
def test_the_module_exits_with_the_code_of_the_command(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "labeltree", *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == (2 if arguments == ["train"] else 1)
    assert "Traceback" not in done.stderr
