"""What values parameters may have: each by itself, and together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from labeltree.errors import ParameterError, show
from labeltree.nodes import KINDS, LINKS
from labeltree.parameter import Parameter, check

if TYPE_CHECKING:
    from labeltree.config.definition import Config

LOSSES = {"dual": ("squared-hinge", "log"), "active": ("squared-hinge", "hinge")}  # of solvers


def check_values(values: Mapping[str, Any], known: Iterable[Parameter]) -> None:
    """Raise an error that names the parameter, the bound and the value."""
    for parameter in known:
        if parameter.name in values:
            check(parameter, values[parameter.name])
    if values.get("arity") == 1:
        raise ParameterError("arity must be at least 2, or 0 to let it be chosen, but is 1")
    prefix = values.get("label_prefix", "__label__")
    if not prefix or any(c.isspace() for c in prefix):
        raise ParameterError(f"label_prefix must be non-empty and without white space, but is {show(prefix)}")
    try:
        prefix.encode()
    except UnicodeEncodeError as error:
        raise ParameterError(
            f"label_prefix must be valid Unicode, but is {show(prefix)}; give it as UTF-8"
        ) from error


def check_together(config: Config) -> None:
    """Raise an error where parameters exclude each other."""
    if config.weighted_words and config.word_ngrams > 1:
        raise ParameterError(
            "weighted_words needs word_ngrams=1, as n-grams have no weights, "
            f"but word_ngrams is {config.word_ngrams}"
        )
    if config.weighted_words and config.embed != "none":
        raise ParameterError("embed needs texts, but with weighted_words they are lists of weights")
    if not (config.trees or config.neighbours or config.forest):
        raise ParameterError(
            "trees, neighbours and forest are all 0, but a model needs one of them: use trees=1"
        )
    if config.nodes in KINDS.users_of("solver"):
        _check_loss(config)


def _check_loss(config: Config) -> None:
    """Whether the solver of sparse nodes has the loss."""
    has_loss = config.link in LINKS.users_of("loss")
    if config.solver == "active" and not has_loss:
        links = " or ".join(LINKS.users_of("loss"))
        raise ParameterError(f"solver active needs link={links}, but link is {config.link}")
    if config.solver in LOSSES and has_loss and config.loss not in LOSSES[config.solver]:
        known = " or ".join(LOSSES[config.solver])
        raise ParameterError(f"solver {config.solver} needs loss={known}, but loss is {config.loss}")
