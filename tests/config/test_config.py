"""Parameters: defaults, bounds, presets, files, and messages that say name, bound and value."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from labeltree.config import PRESETS, Config, check_effects, effective, make_config, parameters
from labeltree.errors import LabelTreeError, ParameterError
from labeltree.parameter import Parameter

ALL = list(parameters())
BY_NAME = {parameter.name: parameter for parameter in ALL}
WITH_NEEDS = [parameter for parameter in ALL if parameter.needs]


def enabling(parameter: Parameter) -> dict[str, Any]:
    """Values of other parameters with which this one has an effect."""
    others: dict[str, Any] = {}
    for need in parameter.needs:
        name, wanted = next(iter(need.any_of.items()))
        if name in BY_NAME:
            others |= {name: wanted[0], **enabling(BY_NAME[name])}
    return others


def ids(parameter: Parameter) -> str:
    return parameter.name


def test_defaults_are_valid_and_survive_json() -> None:
    config = make_config()
    assert config == Config()
    assert Config(**json.loads(json.dumps(config.to_dict()))).validate() == config


@pytest.mark.parametrize("parameter", ALL, ids=ids)
def test_every_parameter_is_described(parameter: Parameter) -> None:
    assert parameter.help.endswith(".")
    assert parameter.group in ("data", "features", "tree", "nodes", "sparse nodes", "training", "forest")
    assert type(parameter.default) is parameter.type
    assert parameter.option == "--" + parameter.name.replace("_", "-")
    if parameter.type is int:
        assert parameter.low is not None, "a whole number needs a lower bound"


@pytest.mark.parametrize("parameter", [p for p in ALL if p.low is not None], ids=ids)
def test_lower_bound(parameter: Parameter) -> None:
    assert parameter.low is not None
    low = parameter.type(parameter.low)
    assert getattr(make_config({parameter.name: low} | enabling(parameter)), parameter.name) == low
    with pytest.raises(ParameterError, match=f"{parameter.name} must be at least .* but is {low - 1}"):
        make_config({parameter.name: low - 1})


@pytest.mark.parametrize("parameter", [p for p in ALL if p.high is not None], ids=ids)
def test_upper_bound(parameter: Parameter) -> None:
    assert parameter.high is not None
    high = parameter.type(parameter.high)
    assert getattr(make_config({parameter.name: high} | enabling(parameter)), parameter.name) == high
    with pytest.raises(ParameterError, match=f"{parameter.name} must be at most .* but is {high + 1}"):
        make_config({parameter.name: high + 1})


@pytest.mark.parametrize("parameter", ALL, ids=ids)
@pytest.mark.parametrize("value", [None, [], {}, object(), b"3"])
def test_wrong_types(parameter: Parameter, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{parameter.name} must be of type"):
        make_config({parameter.name: value})


@pytest.mark.parametrize("parameter", [p for p in ALL if p.type in (int, float)], ids=ids)
@pytest.mark.parametrize("value", [True, "one", "", math.nan, math.inf, "nan", "inf"])
def test_numbers_are_finite_numbers(parameter: Parameter, value: Any) -> None:
    with pytest.raises(ParameterError, match=parameter.name):
        make_config({parameter.name: value})


@pytest.mark.parametrize("parameter", [p for p in ALL if p.choices], ids=ids)
def test_choices(parameter: Parameter) -> None:
    for choice in parameter.choices:
        given = enabling(parameter) | ({"solver": "active"} if choice == "hinge" else {})
        assert getattr(make_config({parameter.name: choice, **given}), parameter.name) == choice
    if parameter.open_choice:
        assert getattr(make_config({parameter.name: "some/file"}), parameter.name) == "some/file"
    else:
        with pytest.raises(ParameterError, match=f"{parameter.name} must be one of .*but is 'other'"):
            make_config({parameter.name: "other"})


def test_a_whole_number_will_do_for_a_fraction() -> None:
    assert make_config({"C": 1}).C == 1


@pytest.mark.parametrize("prefix", ["", " ", "a b", "\t", "label\n", "\u2003"])
def test_a_label_prefix_is_a_word(prefix: str) -> None:
    with pytest.raises(ParameterError, match="label_prefix"):
        make_config({"label_prefix": prefix})


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_valid(name: str) -> None:
    config = make_config(preset=name)
    assert {field: getattr(config, field) for field in PRESETS[name]} == PRESETS[name]


def test_the_paper_preset_is_the_papers_algorithm() -> None:
    config = make_config(preset="paper")
    assert (config.optimizer, config.batch_size, config.arity, config.max_leaves) == ("sgd", 1, 2, 100)
    assert config.l2 > 0
    assert (config.idf, config.row_norm, config.dim, config.epochs) == (True, "mean", 500, 30)


def test_the_fasttext_preset_is_fasttexts_hierarchical_softmax() -> None:
    """Huffman, one logistic per inner node, online, and the plain mean of word vectors."""
    config = make_config(preset="fasttext-hs")
    assert (config.tree, config.arity, config.link, config.nodes) == ("huffman", 2, "hsm", "dense")
    assert (config.optimizer, config.batch_size, config.l2) == ("sgd", 1, 0.0)
    assert (config.tf, config.idf, config.row_norm, config.lowercase) == ("count", False, "mean", False)
    assert (config.dim, config.lr, config.epochs) == (100, 0.1, 5)


def test_weights_and_ngrams_exclude_each_other() -> None:
    both = {"weighted_words": True, "word_ngrams": 2}
    for make in (lambda: make_config(both), lambda: Config(**both).validate()):
        with pytest.raises(ParameterError, match=r"weighted_words needs word_ngrams=1.* word_ngrams is 2"):
            make()


def test_a_learned_tree_is_trained_by_dense_nodes_whatever_scores_its_nodes_then() -> None:
    assert make_config({"tree": "learned", "nodes": "sparse", "dim": 7}).dim == 7
    with pytest.raises(ParameterError, match="dim=7 has no effect"):
        make_config({"nodes": "sparse", "dim": 7})


def test_values_beat_the_file_beats_the_preset(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text("batch-size = 7\nlr = 0.3\nword_ngrams = 2\nidf = false\n")
    config = make_config({"lr": 0.4}, preset="paper", file=path)
    assert (config.lr, config.batch_size, config.word_ngrams, config.idf) == (0.4, 7, 2, False)
    assert config.dim == PRESETS["paper"]["dim"]
    assert config.seed == Config().seed


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(ParameterError, match=r"unknown parameter 'deep'; known are .*epochs"):
        make_config({"deep": 3})
    with pytest.raises(ParameterError, match=r"preset must be one of .*paper.*, but is 'poem'"):
        make_config(preset="poem")


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Config().dim = 3  # type: ignore[misc]
    with pytest.raises(TypeError):
        Config("__label__")  # type: ignore[misc]


def test_errors_are_value_errors_too() -> None:
    """So that callers who know nothing of the package can catch them."""
    assert issubclass(ParameterError, ValueError)
    assert issubclass(ParameterError, LabelTreeError)


def test_values_of_numpy_are_pythons() -> None:
    given = dict(dim=np.int64(8), lr=np.float32(0.25), idf=np.bool_(False), nodes=np.str_("dense"))
    config = make_config(given | {"epochs": np.array(3)})
    assert config == make_config(dict(dim=8, lr=0.25, idf=False, nodes="dense", epochs=3))
    assert type(config.dim) is int
    assert type(config.nodes) is str
    json.dumps(config.to_dict())
    for value in (np.array([8]), np.float64(8), np.bool_(True)):
        with pytest.raises(ParameterError, match="dim must be of type int"):
            make_config({"dim": value})


@pytest.mark.parametrize("parameter", ALL, ids=ids)
def test_values_may_be_strings_as_in_a_configuration_file(parameter: Parameter) -> None:
    others = enabling(parameter)
    config = make_config({parameter.name: str(parameter.default)} | others)
    assert config == make_config({parameter.name: parameter.default} | others)
    assert type(getattr(config, parameter.name)) is parameter.type


def test_strings_are_parsed_by_the_type_of_the_parameter(tmp_path: Path) -> None:
    given = dict(nodes="both", dim="100", balanced="false", idf=" Yes ", C="0.5", lr="1e-2", seed=" 7")
    expected = dict(nodes="both", dim=100, balanced=False, idf=True, C=0.5, lr=0.01, seed=7)
    assert make_config(given) == make_config(expected)
    path = tmp_path / "some.toml"
    path.write_text("\n".join(f'{name} = "{value}"' for name, value in given.items()))
    assert make_config(file=path) == make_config(expected)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("seed", "1o0", "seed must be a whole number, but is '1o0'"),
        ("seed", "1.5", "seed must be a whole number, but is '1.5'"),
        ("balanced", "maybe", "balanced must be true or false, but is 'maybe'"),
        ("C", "half", "C must be a number, but is 'half'"),
        ("C", "-1", "C must be at least 0.0, but is -1.0"),
    ],
)
def test_strings_that_cannot_be_parsed(name: str, value: str, message: str) -> None:
    with pytest.raises(ParameterError, match=f"^{message}$"):
        make_config({name: value})


@pytest.mark.parametrize("parameter", WITH_NEEDS, ids=ids)
def test_needs_are_of_parameters_that_are_known(parameter: Parameter) -> None:
    for need in parameter.needs:
        for name, wanted in need.any_of.items():
            if name in ("input", "beside"):
                assert set(wanted) <= {"text", "vectors"}
            else:
                for value in wanted:
                    Config(**{name: value}).validate()
    assert parameter.full_help.startswith(parameter.help)
    assert "Needs" in parameter.full_help


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"dim": 7},
            "dim=7 has no effect where nodes is sparse and tree is kmeans: it needs nodes=dense or both, "
            "or tree=learned; or leave it out",
        ),
        ({"lr": 0.1}, "lr=0.1 has no effect"),  # also a value that is the default
        ({"batch_size": 3}, "it needs nodes=dense or both"),
        (
            {"epochs": 99},
            "epochs=99 has no effect where nodes is sparse and tree is kmeans and solver is dual: it needs "
            "nodes=dense or both, or tree=learned, or solver=sgd",
        ),
        ({"eta": 1.0}, "eta=1.0 has no effect where solver is dual: it needs solver=sgd"),
        ({"solver": "sgd", "C": 1.0}, "C=1.0 has no effect where solver is sgd: it needs solver=dual"),
        ({"link": "hsm", "loss": "log"}, "loss=log has no effect where link is hsm: it needs link=plt"),
        ({"nodes": "dense", "prune": 0.2}, "it needs nodes=sparse or both"),
        ({"nodes": "dense", "loss": "log"}, "loss=log has no effect where nodes is dense"),  # through solver
        ({"tree": "flat", "arity": 4}, "it needs tree=kmeans or huffman or complete or learned"),
        ({"tree": "some/file", "arity": 4}, "arity=4 has no effect where tree is some/file"),
        ({"tree": "huffman", "balanced": False}, "balanced=no has no effect where tree is huffman"),
        ({"ngram_buckets": 4}, "ngram_buckets=4 has no effect where word_ngrams is 1"),
        (
            {"trees": 0, "char_weight": 0.5},
            "char_weight=0.5 has no effect where trees is 0",
        ),  # only trees look
        ({"trees": 0, "forest": 3, "char_ngrams": 3}, "has no effect where trees is 0: it needs trees=1 to"),
        ({"weighted_words": True, "tf": "log"}, "tf=log has no effect where weighted_words is yes"),
    ],
)
def test_a_parameter_without_effect_is_an_error(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ParameterError) as caught:
        make_config(given)
    assert message in str(caught.value)
    path = tmp_path / "some.toml"
    path.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in given.items()))
    with pytest.raises(ParameterError, match="has no effect") as caught:
        make_config(file=path)
    assert str(caught.value).startswith(f"config file {path}: ")
    assert make_config(config=Config(**given)) == Config(**given), "a whole config gives nothing explicitly"


def test_steps_are_of_dense_nodes_or_of_the_online_solver() -> None:
    for others in ({"nodes": "dense"}, {"nodes": "both"}, {"solver": "sgd"}):
        assert make_config({"epochs": 9, **others}).epochs == 9


def test_what_presets_give_need_not_have_an_effect() -> None:
    assert make_config({"nodes": "sparse"}, preset="paper").dim == 500
    assert make_config({"dim": 5}, preset="paper").dim == 5


def test_what_a_file_gives_may_need_what_is_given_elsewhere(tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text('dim = 5\ntree = "learned"\n')
    assert make_config({"nodes": "dense"}, file=path).dim == 5


def test_some_parameters_need_texts() -> None:
    config = make_config({"tf": "count", "ngram_buckets": 9, "word_ngrams": 2})
    check_effects(config, dict.fromkeys(["tf", "word_ngrams", "ngram_buckets"], ""), input="text")
    for name in ("label_prefix", "weighted_words", "lowercase", "min_count", "word_ngrams", "ngram_buckets",
                 "tf"):  # fmt: skip
        with pytest.raises(ParameterError, match=f"{name}=.* where input is vectors: it needs input=text"):
            check_effects(config, {name: ""}, input="vectors")
    check_effects(config, dict.fromkeys(["row_norm", "idf", "C"], ""), input="vectors")


def test_inverse_document_frequencies_need_counts() -> None:
    asked = {"idf": ""}
    check_effects(Config(idf=False), asked, input="text")
    check_effects(Config(idf=False), asked, input="vectors")
    with pytest.raises(ParameterError, match=r"idf=yes .* where weighted_words is yes and input is text"):
        check_effects(Config(weighted_words=True), asked, input="text")


def test_effective_parameters() -> None:
    found = effective(Config(), input="vectors")
    assert {"C", "arity", "row_norm"} <= found.keys()
    assert not {"dim", "tf", "epochs", "eta", "label_prefix"} & found.keys()
    assert "tf" in effective(Config())


def test_the_nearest_name_is_suggested() -> None:
    with pytest.raises(ParameterError, match="unknown parameter 'epoch'; did you mean 'epochs'"):
        make_config({"epoch": 3})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("dim = 0", "dim must be at least 1, but is 0"),
        ("batchsize = 3", "unknown parameter 'batchsize'; did you mean 'batch_size'?"),
        ("batch-size = 3\nbatch_size = 3", "batch_size is given twice"),
        ('label-prefix = ""', "label_prefix must be non-empty"),
    ],
)
def test_errors_in_a_file_name_it(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "some.toml"
    path.write_text(content)
    with pytest.raises(ParameterError) as caught:
        make_config(file=path)
    assert str(caught.value).startswith(f"config file {path}: {message}")
