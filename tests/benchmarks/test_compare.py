"""The comparison harness, on generated data: labeltree itself, and tools whose answers are known."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import compare, report, worker
from benchmarks.environments import last_line
from benchmarks.passes import passes_per_epoch
from benchmarks.preparing import Prepared
from benchmarks.running import Runner, discover, make_toy, score

FAKE = '''
import time

PACKAGE = "numpy"
READS = ("text", "npz", "xmlc", "vw")
PREDICTS = ("text",)
THREADS = (1,)
OWN_ENVIRONMENT = False
VARIANTS = {"oracle": {"sleep": 0}, "broken": {"raise": True}, "slow": {"sleep": 60}}
NOTE = "answers by looking at the words"


def install(pip):
    raise AssertionError("has no environment of its own")


def train(job):
    if job.settings.get("raise"):
        raise ValueError("no such luck")
    job.section("parse")
    lines = open(job.train["text"]).read().splitlines()
    job.section("train")
    time.sleep(job.settings["sleep"])
    with open(job.model, "w") as out:
        for line in lines:
            out.write(line + chr(10))


def load(job):
    """The labels that go with each first word."""
    job.section("load")
    found = {}
    for line in open(job.model):
        words = line.split()
        labels = [word.removeprefix("__label__") for word in words if word.startswith("__label__")]
        found[" ".join(words[len(labels):])] = labels
    return found


def predict_batch(job, kind):
    known, texts = load(job), job.texts()
    assert job.matrix("test").shape == (len(texts), job.n_features)
    return lambda: (known.get(text, []) for text in texts)


def predict_online(job, kind):
    known, texts = load(job), job.texts()
    return len(texts), lambda i: known.get(texts[i])
'''


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return make_toy(tmp_path_factory.mktemp("toy"))


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "fake.py").write_text(FAKE)
    return folder


def read_ledger(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]


def test_every_form_holds_the_same_rows(toy: Prepared) -> None:
    files = toy.files("train", ("source", "text", "npz", "xmlc", "vw"))
    source = Path(files["source"]).read_text().splitlines()
    text = Path(files["text"]).read_text().splitlines()
    xmlc = Path(files["xmlc"]).read_text().splitlines()
    vw = Path(files["vw"]).read_text().splitlines()
    arrays = np.load(files["npz"])
    assert xmlc.pop(0) == f"{len(source)} {toy.train.X.n_columns} {toy.train.Y.n_labels}"
    assert len(source) == len(text) == len(xmlc) == len(vw) == len(arrays["indptr"]) - 1
    names = {id: name for name, id in toy.label_ids.items()}
    for i in (0, 7, 399):
        words = text[i].split()
        labels = {int(word.removeprefix("__label__")) for word in words if word.startswith("__label__")}
        assert {names[label] for label in labels} == {
            w[9:] for w in source[i].split() if w[:9] == "__label__"
        }
        assert [w for w in words if w[:9] != "__label__"] == [
            w for w in source[i].split() if w[:9] != "__label__"
        ]
        start, stop = arrays["indptr"][i : i + 2]
        pairs = dict(zip(arrays["indices"][start:stop], arrays["values"][start:stop], strict=True))
        for line, separator in ((xmlc[i], " "), (vw[i], " | ")):
            given, _, features = line.partition(separator)
            assert {int(label) for label in given.split(",")} == labels
            found = {int(f.split(":")[0]): float(f.split(":")[1]) for f in features.split()}
            assert found == pytest.approx(pairs, rel=1e-5)


def test_test_texts_carry_no_labels(toy: Prepared) -> None:
    lines = Path(toy.files("test", ("text",))["text"]).read_text().splitlines()
    assert len(lines) == toy.test.X.n_rows
    assert not any("__label__" in line for line in lines)


def test_score_counts_unknown_labels_as_misses(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("__label__a x\n__label__b y\n__label__a __label__b x y\n" * 5)
    (tmp_path / "test.txt").write_text("__label__a x\n__label__new x\n")
    from benchmarks.preparing import prepare

    prepared = prepare("tiny", tmp_path / "train.txt", tmp_path / "test.txt", tmp_path)
    a = prepared.label_ids["a"]
    scores = score([[a], [a]], prepared)
    assert scores["p@1"] == pytest.approx(50.0)
    assert scores["p@5"] == pytest.approx(10.0)
    assert 0 < scores["psp@1"] < 50  # the label that was never seen weighs more than the one that was hit


@pytest.mark.slow
def test_compare_runs_resumes_and_reports_failures(toy: Prepared, fakes: Path, tmp_path: Path) -> None:
    tools = list(discover(fakes).values())
    runner, output = Runner(tmp_path / "cache", timeout=2), tmp_path / "out"
    records = compare.compare(toy, tools, (1, 2), 2, runner, compare.Ledger(output))
    by_tool = {tool.name: [record for record in records if record["tool"] == tool.name] for tool in tools}
    assert [record["threads"] for record in by_tool["oracle"]] == [1, 1]  # THREADS: not with two
    for record in by_tool["oracle"]:
        assert record["p@1"] == 100
        assert record["model_bytes"] > 0
        assert record["p50_text_us"] <= record["p99_text_us"]
        assert 0 < record["parse_cpu_s"] < record["train_cpu_s"]
    assert [record["error"] for record in by_tool["broken"]] == [
        "rehearsal: train: exit code 1: ValueError: no such luck"
    ]
    assert by_tool["slow"][0]["error"] == "rehearsal: train: stopped after 2 s"
    written = read_ledger(output)
    assert len(written) == len(records)
    assert all(record in written for record in records)

    oracle = tools[:1]
    again = compare.compare(toy, oracle, (1,), 2, runner, compare.Ledger(output))
    assert len(again) == 2  # nothing was missing
    compare.compare(toy, oracle, (1,), 3, runner, compare.Ledger(output))
    assert len(read_ledger(output)) == len(records) + 1


def test_a_changed_tool_runs_again(toy: Prepared, fakes: Path, tmp_path: Path) -> None:
    ledger = compare.Ledger(tmp_path / "out")
    oracle = discover(fakes)["oracle"]
    ledger.records = [
        {"data": "toy", "tool": "oracle", "fingerprint": oracle.fingerprint, "digest": toy.digest,
         "machine": compare.machine(), "threads": 1},
    ]  # fmt: skip
    assert len(ledger.valid("toy", [oracle], toy.digest)) == 1
    assert ledger.valid("toy", [oracle], "other features") == []
    (fakes / "fake.py").write_text(FAKE.replace("time.sleep(job", "time.sleep(2 * job"))
    assert ledger.valid("toy", [discover(fakes)["oracle"]], toy.digest) == []


def test_a_tool_that_changes_meanwhile_does_not_count(toy: Prepared, fakes: Path, tmp_path: Path) -> None:
    tools = [discover(fakes)["oracle"]]
    (fakes / "fake.py").write_text(FAKE + "# edited")
    runner = Runner(tmp_path / "cache", timeout=60)
    runner.rehearsed.add("oracle")
    records = compare.compare(toy, tools, (1,), 2, runner, compare.Ledger(tmp_path / "out"))
    assert [record["error"] for record in records] == [
        "its source changed during the comparison; start it again"
    ]


def test_dear_runs_are_not_repeated(toy: Prepared, fakes: Path, tmp_path: Path) -> None:
    tools = [discover(fakes)["oracle"]]
    runner = Runner(tmp_path / "cache", timeout=60)
    runner.rehearsed.add("oracle")
    records = compare.compare(toy, tools, (1,), 3, runner, compare.Ledger(tmp_path), budget=0.0)
    assert len(records) == 1


@pytest.mark.parametrize(("stand_in", "other"), [("broken", "oracle"), ("oracle", "broken")])
def test_a_stand_in_runs_only_where_the_other_failed(
    stand_in: str, other: str, toy: Prepared, fakes: Path, tmp_path: Path
) -> None:
    tools = discover(fakes)
    tools[stand_in].module.STANDS_IN = {stand_in: other}  # type: ignore[attr-defined]
    runner = Runner(tmp_path / "cache", timeout=60)
    runner.rehearsed |= {stand_in, other}
    ledger = compare.Ledger(tmp_path / "out")
    records = compare.compare(toy, [tools[other], tools[stand_in]], (1,), 1, runner, ledger)
    found = {record["tool"]: record.get("error") for record in records}
    if stand_in == "broken":
        assert found == {"oracle": None}
    else:
        assert found == {"broken": "train: exit code 1: ValueError: no such luck", "oracle": None}


def test_command_prints_table_and_page(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = make_toy(tmp_path)
    for part in ("train", "test"):
        packed = tmp_path / "data" / "toy" / f"{part}.txt.xz"
        packed.parent.mkdir(parents=True, exist_ok=True)
        packed.write_bytes(lzma.compress(getattr(toy, part).source.read_bytes()))
    monkeypatch.setenv("LABELTREE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("LABELTREE_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compare.main(
        ["--data", "toy,absent", "--tools", "oracle,broken", "--repeats", "1",
         "--output", str(tmp_path / "out"), "--tools-folder", str(fakes)]
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert "absent: skipped" in printed
    lines = [line for line in printed.splitlines() if line.startswith("| ")]
    assert [line.split("|")[1].strip() for line in lines] == ["tool", "oracle", "broken"]
    assert "no such luck" in lines[2]
    page = (tmp_path / "out" / "toy.md").read_text()
    assert "| oracle | 1 " in page
    assert compare.machine() in page
    assert str(tmp_path / "cache") not in page
    record = read_ledger(tmp_path / "out")[0]
    assert len(record["date"]) == len("2000-01-01")
    overview = (tmp_path / "out" / "README.md").read_text()
    assert "[Every number with its spread](toy.md)" in overview
    assert "broken, 1 thread: failed: rehearsal: train: exit code 1: ValueError: no such luck" in overview


@pytest.mark.slow
def test_labeltree_is_measured_with_both_inputs(toy: Prepared, tmp_path: Path) -> None:
    tool = discover(compare.TOOLS)["labeltree"]
    runner = Runner(tmp_path, timeout=300)
    runner.rehearsed.add("labeltree")
    record = runner.run(tool, toy, threads=1, seed=1)
    assert record["p@1"] > 90
    for field in ("batch_text_us", "batch_vectors_us", "p50_text_us", "p99_vectors_us", "load_s"):
        assert record[field] > 0
    assert record["parse_cpu_s"] > 0
    assert record["train_peak_bytes"] > 10_000_000


@pytest.mark.slow
def test_single_vectors_are_what_the_peers_get(toy: Prepared, tmp_path: Path) -> None:
    """A SciPy matrix of one row with the usual types, as napkinXC and PECOS get it; answers as in a batch."""
    import scipy.sparse

    import labeltree

    model = labeltree.train(str(toy.train.source))
    model.save(tmp_path / "model")
    given: list[Any] = []
    answers: list[list[int]] = []
    plain = type(model).predict_arrays

    def watched(self: Any, X: Any, *arguments: Any, **options: Any) -> Any:
        given.append(X)
        found = plain(self, X, *arguments, **options)
        answers.append(found[0][0].tolist())
        return found

    tool = discover(compare.TOOLS)["labeltree"]
    files = toy.files("test", tool.module.READS)
    job = worker.Job({
        "stage": "online", "kind": "vectors", "settings": {}, "threads": 1, "seed": 1, "k": 5,
        "model": str(tmp_path / "model"), "train": {}, "test": files, "is_text": True,
        "n_features": toy.train.X.n_columns, "n_labels": toy.train.Y.n_labels,
    })  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model), "predict_arrays", watched)
        n_rows, predict = tool.module.predict_online(job, "vectors")
        assert n_rows == toy.test.X.n_rows
        predict(3)
        batch = list(tool.module.predict_batch(job, "vectors")())
    row = given[0]
    assert isinstance(row, scipy.sparse.csr_matrix)
    assert (row.shape[0], row.indices.dtype, row.data.dtype) == (1, np.int32, np.float32)
    assert answers[0] == [label for label, _ in batch[3]]
    assert all(0 <= probability <= 1 for _, probability in batch[3])


def test_every_tool_file_keeps_the_contract() -> None:
    tools = discover(compare.TOOLS)
    assert {"labeltree", "labeltree-xt", "extremetext", "fasttext-hs", "fasttext-ova"} <= set(tools)
    for tool in tools.values():
        for name in ("install", "train", "predict_batch", "predict_online"):
            assert callable(getattr(tool.module, name)), f"{tool.path.name} lacks {name}"
        assert set(tool.module.PREDICTS) <= {"text", "vectors"}
        assert tool.module.NOTE


def test_same_work_is_the_same_work() -> None:
    tools = discover(compare.TOOLS)
    ours, theirs = tools["labeltree-xt"].settings, tools["extremetext"].settings
    assert (ours["arity"], ours["max_leaves"], ours["dim"], ours["epochs"]) == (
        theirs["arity"], theirs["maxLeaves"], theirs["dim"], theirs["epoch"],
    )  # fmt: skip


def test_variants_are_one_tree_on_words_but_for_their_change() -> None:
    """What the defaults become does not change what these stand for beside their peers."""
    tools = discover(compare.TOOLS)
    for name in ("fast", "3", "log", "both", "dense", "xt"):
        assert tools[f"labeltree-{name}"].settings["preset"] == "fast"
    assert tools["labeltree-hs"].settings["preset"] == "fasttext-hs"


def test_cells_show_mean_and_spread() -> None:
    column = report.Column("model MB", ("model_bytes",), 1e-6)
    runs = [{"model_bytes": 1_000_000}, {"model_bytes": 3_000_000}]
    assert report.cell(runs, column, spread=True) == "2.00 [1.00..3.00]"
    assert report.cell(runs, column, spread=False) == "2.00"
    assert report.cell(runs[:1], column, spread=True) == "1.00"
    assert report.cell([{"model_bytes": None}], column, spread=True) == report.EMPTY
    assert report.number(123.4) == "123"
    assert report.number(0.01234) == "0.012"


def test_last_line_prefers_the_error() -> None:
    assert last_line("a\nValueError: b\nhint: c\n") == "ValueError: b"
    assert last_line("killed\n\n") == "killed"
    assert last_line("") == ""


def test_passes_of_an_epoch_that_counts_words_once() -> None:
    """Six words, two labels and two ends of lines, of which five distinct words and the labels count."""
    assert passes_per_epoch(["__label__x a b a\n", "__label__y c d e\n"]) == 10 / 7
