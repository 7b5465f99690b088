"""The command line: every command on small data, its exit codes, and that asking for help costs nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from labeltree import cli
from labeltree.cli.options import options_table, presets_table
from labeltree.config import parameters

TOPICS = {
    "bread": "flour yeast oven dough knead",
    "soup": "broth spoon pot simmer ladle",
    "cake": "sugar icing oven sponge layer",
    "a:b": "colon separated label name odd",
}
SMALL = ["--max-leaves", "2", "--quiet"]
DENSE = ["--nodes", "dense"]


def fasttext_lines(n: int = 80) -> str:
    topics = list(TOPICS)
    lines = []
    for i in range(n):
        names = {topics[i % 4], topics[(i // 4) % 4]}
        words = " ".join(TOPICS[name] for name in sorted(names))
        lines.append(" ".join(f"__label__{name}" for name in sorted(names)) + f" {words} word{i % 7}")
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="session")
def text_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "train.txt"
    path.write_text(fasttext_lines())
    return path


@pytest.fixture(scope="session")
def text_model(text_data: Path) -> Path:
    path = text_data.with_name("text.labeltree")
    assert cli.main(["train", str(text_data), "-o", str(path), *SMALL]) == 0
    return path


@pytest.fixture(scope="session")
def vector_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli-vectors") / "train.xmlc"
    rows = [f"{i % 3},{3 + i % 2} {i % 3}:1 {3 + i % 2}:0.5\n" for i in range(60)]
    path.write_text("60 6 5\n" + "".join(rows))
    return path


@pytest.fixture(scope="session")
def vector_model(vector_data: Path) -> Path:
    path = vector_data.with_name("vectors.labeltree")
    assert cli.main(["train", str(vector_data), "-o", str(path), *SMALL]) == 0
    return path


def run(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "labeltree", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def lines_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> list[str]:
    """What the command prints, which must succeed and print no error."""
    capsys.readouterr()
    assert cli.main([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out.splitlines()


def pairs_of(line: str) -> list[tuple[str, float]]:
    cells = line.split("\t") if line else []
    return [(label, float(p)) for label, p in zip(cells[::2], cells[1::2], strict=True)]


# Help and start-up


@pytest.mark.parametrize("command", ["", "train", "test", "predict", "prob", "inspect", "demo"])
def test_help_imports_nothing_heavy(command: str) -> None:
    program = (
        "import sys, labeltree.cli as cli\n"
        f"code = cli.main({[command] if command else []!r} + ['--help'])\n"
        "heavy = {'numpy', 'numba', 'scipy', 'sklearn', 'tqdm'} & set(sys.modules)\n"
        "assert code == 0 and not heavy, (code, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "Usage: labeltree" in done.stdout


@pytest.mark.skipif(not hasattr(os, "wait4"), reason="needs the CPU time of a child process")
def test_help_is_quick() -> None:
    seconds = []
    for _ in range(3):  # the least of three: the first may write .pyc files
        child = subprocess.Popen([sys.executable, "-m", "labeltree", "--help"], stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        seconds.append(usage.ru_utime + usage.ru_stime)
    assert min(seconds) < 0.3


def test_every_parameter_is_an_option(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\n".join(lines_of(capsys, "train", "--help"))
    for parameter in parameters():
        assert f"{parameter.option} " in text
    assert "--no-idf" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = lines_of(capsys, "--version")
    assert line.startswith("labeltree ")


def test_docs_page_is_up_to_date() -> None:
    page = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    assert f"{options_table()}\n\n{presets_table()}\n" in page, "run `python docs/make_options.py`"
    assert "`--optimizer sgd`" in presets_table()


# train


@pytest.mark.parametrize(("nodes", "has_loss"), [([], False), (DENSE, True)])
def test_train_reports_and_replaces_atomically(
    nodes: list[str], has_loss: bool, text_data: Path, tmp_path: Path
) -> None:
    path = tmp_path / "m.labeltree"
    path.write_text("old")
    done = run("train", text_data, "-o", path, *SMALL[:-1], *nodes)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "80 rows, 4 labels" in done.stderr
    assert ("loss" in done.stderr) == has_loss  # only dense nodes have one for all nodes
    assert ("; loss " in done.stderr) == has_loss
    assert "nan" not in done.stderr
    assert "Warning" not in done.stderr
    assert str(path) in done.stderr
    assert os.listdir(tmp_path) == ["m.labeltree"]
    assert path.stat().st_size > 1000


def test_quiet_prints_nothing(text_data: Path, tmp_path: Path) -> None:
    done = run("train", text_data, "-o", tmp_path / "m", *SMALL)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verbose_prints_a_line_per_epoch(text_data: Path, tmp_path: Path) -> None:
    done = run("train", text_data, "-o", tmp_path / "m", *SMALL[:-1], *DENSE, "--epochs", "5", "-v")
    for epoch in range(1, 6):
        assert f"epoch {epoch}/5" in done.stderr


def test_verbose_without_epochs_prints_the_stages(text_data: Path, tmp_path: Path) -> None:
    done = run("train", text_data, "-o", tmp_path / "m", *SMALL[:-1], "-v")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert {"reading: done", "building tree: done"} <= set(lines)
    assert any(line.startswith("training: ") for line in lines)
    assert "epoch 0" not in done.stderr
    assert "/0" not in done.stderr.replace(str(tmp_path), "")
    assert "nan" not in done.stderr


def test_dry_run_writes_nothing(
    text_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = lines_of(capsys, "train", text_data, "--dry-run")
    assert ["rows", "80"] in [line.split() for line in lines]
    assert any("peak memory" in line for line in lines)
    assert os.listdir(tmp_path) == []


def test_train_from_standard_input(text_data: Path, text_model: Path, tmp_path: Path) -> None:
    done = run("train", "-", "-o", tmp_path / "m", *SMALL, input=text_data.read_text())
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "m").read_bytes() == text_model.read_bytes()


@pytest.mark.parametrize("threads", ["1", "2"])
def test_threads_do_not_change_the_model(
    threads: str, text_data: Path, text_model: Path, tmp_path: Path
) -> None:
    assert cli.main(["train", str(text_data), "-o", str(tmp_path / "m"), *SMALL, "--threads", threads]) == 0
    assert (tmp_path / "m").read_bytes() == text_model.read_bytes()


def test_defaults_preset_file_and_options_in_this_order(
    text_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "c.toml"
    toml.write_text("dim = 7\nmax-leaves = 3\nlr = 0.3\n")
    path = tmp_path / "m"
    options = ["--preset", "paper", "--config", str(toml), "--lr", "0.2", "--epochs", "1"]
    assert cli.main(["train", str(text_data), "-o", str(path), "-q", *options]) == 0
    config = json.loads(lines_of(capsys, "inspect", path, "--json")[-1])["config"]
    expected = dict(
        min_count=1,  # default
        optimizer="sgd",  # preset
        dim=7,  # file, over the preset
        max_leaves=3,
        lr=0.2,  # option over the file, though it is also the default
        epochs=1,
    )
    assert {name: config[name] for name in expected} == expected


def test_skipped_lines_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "bad.jsonl"
    good = json.dumps({"text": "flour and yeast", "labels": ["bread"]}) + "\n"
    data.write_text(good * 20 + "{broken\n" + good)
    model = str(tmp_path / "m")
    assert cli.main(["train", str(data), "-o", model, *SMALL]) == 1
    assert "line 21" in capsys.readouterr().err
    assert cli.main(["train", str(data), "-o", model, *SMALL[:-1], "--skip-bad-lines"]) == 0
    errors = capsys.readouterr().err
    assert "Skipped 1 bad row.\n" in errors
    assert f"{data}, line 21: " in errors
    data.write_text("{broken\n" * 9 + good)
    for command in ("test", "prob", "predict"):
        assert cli.main([command, model, str(data), "--format", "jsonl", "--skip-bad-lines"]) == 0
        captured = capsys.readouterr()
        assert "Skipped 9 bad rows. The first of them:\n" in captured.err
        assert [f"line {n}: " in captured.err for n in (1, 5, 6)] == [True, True, False]
        assert "broken" not in captured.out


# test, predict, prob, inspect


def test_json_scores_on_the_last_line(
    text_model: Path, text_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scores = json.loads(lines_of(capsys, "test", text_model, text_data, "--json")[-1])
    assert set(scores) >= {"p@1", "p@3", "p@5", "r@5", "ndcg@3", "psp@1", "ece@5", "examples", "seconds"}
    assert all(0 <= scores[key] <= 1 for key in scores if "@" in key)
    assert scores["examples"] == 80
    assert scores["p@1"] > 0.6
    assert scores["p@5"] <= 2 / 5  # no row has more than two labels


def test_score_table(text_model: Path, text_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(capsys, "test", text_model, text_data, "-k", "2,1")
    assert lines[0].split() == ["@1", "@2", "p>=0.5"]
    names = ["precision", "recall", "nDCG", "propensity-scored", "propensity-scored", "calibration"]
    assert [line.split()[0] for line in lines[1:7]] == names
    assert [len(line.split()) for line in lines if line.startswith("Jaccard")] == [4]
    assert "80 rows" in lines[-1]


def test_per_label_table(
    text_model: Path, text_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines_of(capsys, "test", text_model, text_data, "--per-label", tmp_path / "labels.tsv")
    head, *rows = [line.split("\t") for line in (tmp_path / "labels.tsv").read_text().splitlines()]
    assert head[:4] == ["label", "support", "predicted", "hits"]
    assert head[-4:] == ["best_f1", "best_threshold", "training_rows", "problem"]
    misses = [int(row[1]) - int(row[3]) for row in rows]
    assert misses == sorted(misses, reverse=True)
    assert {row[0] for row in rows} == set(TOPICS)
    assert sum(int(row[1]) for row in rows) == sum(
        line.count("__label__") for line in fasttext_lines().splitlines()
    )
    assert os.listdir(tmp_path) == ["labels.tsv"]


def test_per_label_table_has_unknown_labels(
    text_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, table = tmp_path / "test.txt", tmp_path / "labels.tsv"
    data.write_text("__label__bread __label__new flour\n__label__new yeast\n__label__newer ladle\n")
    assert cli.main(["test", str(text_model), str(data), "--per-label", str(table)]) == 0
    said = capsys.readouterr().err
    assert "3 of 4 labels" in said
    assert "2 labels no-examples: no training row has them" in said
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert rows[1] == ["new", "2", "0", "0", "", "0", "", "0", "", "0", "no-examples"]
    assert rows[2][0] == "newer"
    assert {row[0] for row in rows[1:]} == {*TOPICS, "new", "newer"}
    data.write_text(20 * data.read_text())
    assert cli.main(["tune", str(text_model), str(data), "--for", "p@1", "-o", str(tmp_path / "tuned")]) == 0
    assert "60 of 80 labels of" in capsys.readouterr().err


def test_predict_is_aligned_with_lines(
    text_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "new.txt"
    source.write_text("flour yeast dough\n\n__label__cake broth ladle\nfjord jazz\n")
    rows = [pairs_of(line) for line in lines_of(capsys, "predict", text_model, source, "-k", "3")]
    assert [len(row) for row in rows] == [3, 3, 3, 3]
    assert rows[0][0][0] == "bread"
    assert rows[2][0][0] == "soup"  # its label is ignored
    assert rows[1] == rows[3]  # no known word, nor a part of one: the prior
    for row in rows:
        probabilities = [p for _, p in row]
        assert probabilities == sorted(probabilities, reverse=True)
        assert all(0 <= p <= 1 for p in probabilities)


def test_predict_json_agrees_with_text(
    text_model: Path, text_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = [pairs_of(line) for line in lines_of(capsys, "predict", text_model, text_data)]
    objects = [json.loads(line) for line in lines_of(capsys, "predict", text_model, text_data, "--json")]
    assert plain == [[(item["label"], item["probability"]) for item in row["labels"]] for row in objects]


def test_predict_threshold(text_model: Path, text_data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    every = [pairs_of(line) for line in lines_of(capsys, "predict", text_model, text_data, "-k", "4")]
    arguments = ("predict", text_model, text_data, "--threshold", "0.4")
    assert [pairs_of(line) for line in lines_of(capsys, *arguments, "-k", "0")] == [
        [pair for pair in row if pair[1] >= 0.4] for row in every
    ]
    assert [pairs_of(line) for line in lines_of(capsys, *arguments, "-k", "1")] == [
        [pair for pair in row[:1] if pair[1] >= 0.4] for row in every
    ]


def test_predict_answers_while_the_pipe_is_open(text_model: Path) -> None:
    command = [sys.executable, "-m", "labeltree", "predict", str(text_model), "-k", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        guard = threading.Timer(60, child.kill)  # instead of waiting for ever where the answer does not come
        guard.start()
        for words, label in (("flour yeast dough", "bread"), ("broth ladle pot", "soup")):
            child.stdin.write(words + "\n")
            child.stdin.flush()
            assert child.stdout.readline().startswith(label + "\t")
        child.stdin.close()
        assert child.stdout.read() == ""
        assert child.wait(30) == 0
        guard.cancel()


def test_digits_are_text_for_a_model_of_text(text_model: Path) -> None:
    """One that begins like an XMLC file is refused until its format is given, whoever reads it."""
    text = "2001 9 11\n1 2:3 4:5\n"
    done = run("predict", text_model, "-k", "1", "--format", "fasttext", input=text)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2


def test_empty_input_gives_no_output(text_model: Path) -> None:
    done = run("predict", text_model, input="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_predict_vectors(
    vector_model: Path, vector_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tmp_path / "rows.xmlc"
    bare.write_text("".join(vector_data.read_text().splitlines(keepends=True)[1:]))
    rows = lines_of(capsys, "predict", vector_model, vector_data)
    assert len(rows) == 60
    assert rows == lines_of(capsys, "predict", vector_model, bare)
    assert pairs_of(rows[1])[0][0] in ("1", "4")


def test_prob_gives_the_probabilities_of_predict(
    text_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "given.txt"
    source.write_text(
        "__label__bread __label__soup __label__new flour oven\nno labels here\n__label__a:b odd\n"
    )
    capsys.readouterr()
    assert cli.main(["prob", str(text_model), str(source)]) == 0
    captured = capsys.readouterr()
    rows = [dict(pairs_of(line)) for line in captured.out.split("\n")[:3]]
    assert [set(row) for row in rows] == [{"bread", "soup"}, set(), {"a:b"}]
    assert "Left out 1 label of" in captured.err
    predicted = [dict(pairs_of(line)) for line in lines_of(capsys, "predict", text_model, source)]
    for given, found in zip(rows, predicted, strict=True):
        assert all(found[label] == pytest.approx(p, rel=1e-4) for label, p in given.items())


def test_inspect(text_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(lines_of(capsys, "inspect", text_model, "--json")[-1])
    assert facts["config"]["max_leaves"] == 2
    assert facts["file_bytes"] == text_model.stat().st_size
    text = "\n".join(lines_of(capsys, "inspect", text_model))
    assert "\n  dim:" not in text, "it has no effect with sparse nodes"
    assert "\n  max-leaves: 2\n" in text
    assert "\ntraining rows: 80\n" in text
    assert "_" not in text.replace("__label__", "").replace(str(text_model), "")


def test_inspect_shows_what_the_data_chose(
    text_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m"
    given = ["--nodes", "both", "--epochs", "1", "--dim", "4", "-q"]
    assert cli.main(["train", str(text_data), "-o", str(path), *given]) == 0
    facts = json.loads(lines_of(capsys, "inspect", path, "--json")[-1])
    assert (facts["config"]["arity"], facts["config"]["C"]) == (0, 0.0), "as it was given"
    dense = {"arity": 16, "max_leaves": 64}
    assert facts["chosen"] == {"dense": dense, "sparse": dense | {"C": 0.3}}
    text = lines_of(capsys, "inspect", path)
    assert "  arity: 16 (dense nodes), 16 (sparse nodes), chosen by the data" in text
    assert "  C: 0.3 (sparse nodes), chosen by the data" in text
    assert not any(line.startswith(("chosen", "  eta")) for line in text)


def test_inspect_of_a_file_that_does_not_say_what_the_data_chose(capsys: pytest.CaptureFixture[str]) -> None:
    golden = Path(__file__).parents[1] / "storage" / "golden" / "sparse-1.labeltree"
    assert json.loads(lines_of(capsys, "inspect", golden, "--json")[-1])["chosen"] == {}
    assert "  C: chosen by the data" in lines_of(capsys, "inspect", golden)


def test_exported_tree_can_be_trained_on(
    text_model: Path, text_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tree = tmp_path / "tree.txt"
    assert lines_of(capsys, "inspect", text_model, "--tree", tree) == []  # only a notice, on standard error
    path = tmp_path / "m"
    assert cli.main(["train", str(text_data), "-o", str(path), "-q", "--tree", str(tree)]) == 0
    assert cli.main(["inspect", str(path), "--tree", str(tmp_path / "again.txt")]) == 0
    assert (tmp_path / "again.txt").read_text() == tree.read_text()


def test_trees_of_an_ensemble_are_numbered(text_data: Path, tmp_path: Path) -> None:
    path = tmp_path / "m"
    assert cli.main(["train", str(text_data), "-o", str(path), *SMALL, "--trees", "2"]) == 0
    assert cli.main(["inspect", str(path), "--tree", str(tmp_path / "tree.txt")]) == 0
    assert sorted(os.listdir(tmp_path)) == ["m", "tree.1.txt", "tree.2.txt"]


def test_a_large_k_costs_no_memory(
    text_model: Path, text_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lines_of(capsys, "predict", text_model, text_data, "-k", "4") == lines_of(
        capsys, "predict", text_model, text_data, "-k", str(10**15)
    )
    scores = json.loads(lines_of(capsys, "test", text_model, text_data, "-k", "1,4,1000000", "--json")[-1])
    assert scores["r@1000000"] == scores["r@4"] == 1
    assert scores["p@1000000"] == pytest.approx(scores["p@4"] * 4 / 1_000_000)
    assert scores["ndcg@1000000"] == pytest.approx(scores["ndcg@4"])


@pytest.mark.parametrize(
    ("content", "notices", "counts"),
    [
        ("__label__bread flour\n", [], (1, 0, 0)),
        ("flour\noven\n", ["No row of {} has a label, so all scores are 0"], (0, 0, 2)),
        ("__label__x __label__y a\n", ["All 2 labels of {} are unknown to the model"], (2, 2, 0)),
        (
            "__label__x __label__soup a\nb\n",
            ["1 of 2 rows of {} have no label", "1 of 2 labels of {} are unknown"],
            (2, 1, 1),
        ),
    ],
)
def test_what_cannot_match_is_told(
    content: str,
    notices: list[str],
    counts: tuple[int, int, int],
    text_model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = tmp_path / "test.txt"
    data.write_text(content)
    capsys.readouterr()
    assert cli.main(["test", str(text_model), str(data), "--json"]) == 0
    captured = capsys.readouterr()
    lines = [line for line in captured.err.splitlines() if str(data) in line]
    assert len(lines) == len(notices)
    assert all(line.startswith(start.format(data)) for line, start in zip(lines, notices, strict=True))
    facts = json.loads(captured.out)
    assert (facts["labels"], facts["unknown_labels"], facts["rows_without_labels"]) == counts


@pytest.mark.parametrize("options", [[], ["--normalize"]])
def test_prob_hands_on_normalize(
    options: list[str], text_model: Path, text_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from labeltree.model import Model

    given = []
    original = Model.probability_rows

    def spy(self: Model, *arguments: Any, normalize: bool, threads: int) -> Any:
        given.append(normalize)
        return original(self, *arguments, normalize=normalize, threads=threads)

    monkeypatch.setattr(Model, "probability_rows", spy)
    assert cli.main(["prob", str(text_model), str(text_data), *options]) == 0
    assert given == [bool(options)]


def test_training_warns_where_no_features_are_left(
    text_data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["train", str(text_data), "-o", str(tmp_path / "m"), *SMALL[:-1]]
    assert cli.main([*arguments, "--min-count", "1000", "--min-rows", "1000"]) == 0
    assert "Warning: no features are left" in capsys.readouterr().err


@pytest.mark.parametrize(("last", "warns"), [(0.2, False), (0.51, False), (0.8, True)])
def test_training_warns_of_a_risen_loss(last: float, warns: bool, text_model: Path) -> None:
    from labeltree.cli.reports import training_lines
    from labeltree.model import load

    text = "\n".join(training_lines(load(text_model), text_model, 1.0, {1: (0.1, 0.1), 2: (0.5, last)}))
    assert ("Warning: the loss rose from 0.5000 to" in text) == warns
    assert f"; loss {(0.1 + last) / 2:.4f};" in text
