"""Explanations as lines for a terminal, with bars; colours only where they are asked for."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from labeltree.explain.deleting import deletion_text
from labeltree.explain.segments import segments
from labeltree.wording import counted, escape_name

if TYPE_CHECKING:
    from labeltree.explain.labels import LabelCard
    from labeltree.explain.result import ExpertPart, Explanation, LabelExplanation, Node, WhyNot
    from labeltree.explain.row import Term, Word

TERMS, NODE_TERMS, ROWS = 8, 3, 3  # that are shown
_BAR = 24
_BLOCKS = " ▏▎▍▌▋▊▉█"
_FOR, _AGAINST, _STRONG, _FAINT = "32", "31", "1", "2"  # codes of colours
_FOR_BEHIND, _AGAINST_BEHIND = "30;42", "30;41"
_LEAST_MARKED = 0.15  # of the largest share: words below it are not highlighted
_NAME = 28


def explanation_lines(explanation: Explanation, *, colour: bool = False) -> list[str]:
    """All labels, one after another."""
    lines = []
    if explanation.text is not None:
        lines += ["", f"  {_clipped(plain(explanation.text), 500)}"]
    if not explanation.is_known:
        lines.append(faint("  nothing in it is known to the model: this is what it says of any", colour))
    for label in explanation.labels:
        lines += ["", *label_lines(label, colour=colour)]
    return lines[1:] if lines[:1] == [""] else lines


def label_lines(label: LabelExplanation, *, colour: bool = False) -> list[str]:
    """Its probability, the shares of words, and what each expert says."""
    title = painted(escape_name(label.label), _STRONG, colour)
    lines = [f"{title}  {label.probability:.4g}   {faint(_from(label), colour)}"]
    if colour and label.words:
        lines.append(f"  {_highlighted(label.row.text or '', label.words)}")
    shown = label.terms[:TERMS]
    lines += _bars(shown, colour)
    more = label.terms[TERMS:]
    if more:
        name = f"{len(more):,} others"
        lines.append(f"  {name.ljust(_NAME)} {sum(term.share for term in more):+.3f}")
    if label.rest:
        lines.append(f"  {'in general'.ljust(_NAME)} {label.rest:+.3f}")
    if label.deletions is not None:
        lines.append(f"  {deletion_text(label.deletions, plain)}")
    for part in label.parts:
        lines += [f"  {line}" for line in _part_lines(part, colour)]
    return lines


def _from(label: LabelExplanation) -> str:
    return f"{label.at_empty:.4g} for an empty document; {label.unit} {label.total:+.3f}, of which:"


def _part_lines(part: ExpertPart, colour: bool) -> list[str]:
    lines = [f"{part.title} ({part.weight:.0%} of the evidence): {part.probability:.4g}"]
    for place, node in enumerate(part.path):
        lines.append(f"  {_node_line(node, place, colour)}")
    votes = [near for near in part.neighbours if near.has_label]
    if part.contribution.similar_rows is not None:
        found = counted(len(part.neighbours), "similar training row")
        lines.append(f"  {len(votes):,} of {found} {'has' if len(votes) == 1 else 'have'} it")
    for near in votes[:ROWS]:
        words = ", ".join(plain(term.name) for term in near.terms[:NODE_TERMS])
        lines.append(f"  row {near.row:,}, similar by {near.similarity:.2f}: {words}")
    if part.leaves is not None:
        lines.append(
            f"  {part.leaves.n_with_label:,} of {part.leaves.n_trees:,} trees come to a leaf with it"
        )
    return lines


def _node_line(node: Node, place: int, colour: bool) -> str:
    name = _clipped(escape_name(node.name), 60) if place else "any label"
    terms = "  ".join(
        painted(f"{plain(term.name)} {term.share:+.2f}", _sign(term.share), colour)
        for term in node.terms[:NODE_TERMS]
    )
    return f"{'  ' * min(place, 8)}{node.probability:.3f} {name}  {terms}".rstrip()


def why_not_lines(why: WhyNot, *, colour: bool = False) -> list[str]:
    """Where it was lost, to which words, and what would have helped."""
    title = painted(escape_name(why.label), _STRONG, colour)
    instead = ", ".join(f"{escape_name(label)} {p:.3g}" for label, p in why.instead)
    lines = [f"{title} has {why.probability:.4g}; the text gets {instead or 'no label'}"]
    if why.lost_at is not None:
        node = why.lost_at
        kind = "itself" if node.n_labels == 1 else f"its group: {_clipped(escape_name(node.name), 80)}"
        lines.append(f"  lost at {kind}, which has {node.probability:.3g} where the way has come to it")
    if why.against:
        lines += ["  words against it", *_bars(why.against[:TERMS], colour)]
    else:
        lines.append("  no word speaks against it; others speak for it too little")
    if why.missing:
        words = ", ".join(plain(term.name) for term in why.missing)
        lines.append(f"  what would speak for it and is missing: {words}")
    return lines


def card_lines(card: LabelCard, *, colour: bool = False) -> list[str]:
    """What is known of a label."""
    lines = [f"{painted(escape_name(card.label), _STRONG, colour)}  {card.reliability}"]
    if card.group:
        lines.append(f"  in the group of {', '.join(map(escape_name, card.group))}")
    if card.nearest:
        near = ", ".join(f"{escape_name(label)} {likeness:.2f}" for label, likeness in card.nearest)
        lines.append(f"  near it: {near}")
    if card.words:
        lines += ["  what speaks most for it", *_bars(card.words, colour)]
    return lines


def _bars(terms: Sequence[Term], colour: bool) -> list[str]:
    """A line for each share."""
    largest = max((abs(term.share) for term in terms), default=0.0) or 1.0
    return [
        f"  {_clipped(plain(term.name), _NAME).ljust(_NAME)} {term.share:+.3f} "
        + painted(_bar(abs(term.share) / largest), _sign(term.share), colour)
        for term in terms
    ]


def _bar(part: float) -> str:
    eighths = round(part * _BAR * 8)
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _highlighted(text: str, words: Sequence[Word]) -> str:
    """The text with the background of its strong words in colour."""
    pieces = list(segments(text, words))
    least = _LEAST_MARKED * max((abs(piece.share) for piece in pieces), default=0.0)
    parts = []
    for piece in pieces:
        code = _FOR_BEHIND if piece.share > 0 else _AGAINST_BEHIND
        is_marked = piece.share != 0.0 and abs(piece.share) >= least
        parts.append(painted(plain(piece.text), code, is_marked))
    return "".join(parts)


def _sign(share: float) -> str:
    return _FOR if share >= 0.0 else _AGAINST


def faint(text: str, colour: bool) -> str:
    return painted(text, _FAINT, colour)


def painted(text: str, code: str, colour: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if colour and text else text


def plain(text: str) -> str:
    """Without what a terminal would obey: texts and labels may come from anyone."""
    return "".join(" " if _is_control(character) else character for character in text)


def _is_control(character: str) -> bool:
    """Control characters, those that turn the direction of writing, and halves of characters."""
    return not character.isprintable() and unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _clipped(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
