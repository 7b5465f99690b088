"""Explanations as a page that needs nothing else: no script, no other file, light or dark as the reader's
machine is. Texts and labels may come from anyone: all of them are escaped, and the page allows no script."""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from labeltree.explain.deleting import deletion_text
from labeltree.explain.segments import segments
from labeltree.explain.terminal import plain
from labeltree.wording import counted

if TYPE_CHECKING:
    from labeltree.explain.result import ExpertPart, Explanation, LabelExplanation, Node
    from labeltree.explain.row import Term, Word

TERMS, NODE_TERMS, ROWS = 12, 4, 5  # that are shown

_STYLE = """
.labeltree{--ink:#1c2330;--faint:#667085;--paper:#fff;--page:#f4f5f7;--line:#e3e6eb;--for:22 138 84;
--against:205 62 57;color-scheme:light dark;color:var(--ink);font:15px/1.55 system-ui,sans-serif}
@media (prefers-color-scheme:dark){.labeltree{--ink:#e6e9ef;--faint:#98a1b0;--paper:#1d222b;--page:#13161c;
--line:#313845;--for:64 186 124;--against:238 102 96}}
body.labeltree{margin:0;background:var(--page)}
.labeltree main{max-width:62rem;margin:0 auto;padding:1.5rem 1rem 3rem}
.labeltree h1{font-size:1.25rem;margin:.2rem 0}
.labeltree h2{font-size:1.05rem;margin:0;overflow-wrap:anywhere}
.labeltree .note{color:var(--faint);font-size:.87em;margin:.2rem 0}
.labeltree article{background:var(--paper);border:1px solid var(--line);border-radius:.7rem;
padding:1rem 1.2rem;margin:1rem 0}
.labeltree section+section{border-top:1px solid var(--line);margin-top:1.1rem;padding-top:1rem}
.labeltree header{display:flex;flex-wrap:wrap;gap:.2rem .8rem;align-items:baseline}
.labeltree .probability{font-variant-numeric:tabular-nums;font-weight:600}
.labeltree .text{white-space:pre-wrap;overflow-wrap:anywhere;margin:.6rem 0;max-height:24rem;overflow:auto}
.labeltree mark{color:inherit;border-radius:.25em;padding:.05em .1em}
.labeltree .for{background:rgb(var(--for)/calc(var(--part)*.55))}
.labeltree .against{background:rgb(var(--against)/calc(var(--part)*.55))}
.labeltree table{border-collapse:collapse;margin:.4rem 0}
.labeltree td{padding:.08rem .8rem .08rem 0;vertical-align:middle}
.labeltree td:first-child{overflow-wrap:anywhere;min-width:6rem}
.labeltree td.number{text-align:right;font-variant-numeric:tabular-nums}
.labeltree td.bar{width:16rem;padding:0}
.labeltree .bar i{display:block;height:.72em;border-radius:.2em;width:calc(var(--part)*100%)}
.labeltree i.for{background:rgb(var(--for))}
.labeltree i.against{background:rgb(var(--against))}
.labeltree details{margin:.35rem 0}
.labeltree summary{cursor:pointer;color:var(--faint)}
.labeltree ol,.labeltree ul{margin:.3rem 0;padding-left:1.4rem}
.labeltree li{overflow-wrap:anywhere}
.labeltree .plus{color:rgb(var(--for))}
.labeltree .minus{color:rgb(var(--against))}
@media (max-width:36rem){.labeltree td.bar{width:7rem}}
"""
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Why these labels</title>
<style>{style}</style>
</head>
<body class="labeltree">
<main>
<h1>Why these labels</h1>
<p class="note">Green words speak for a label, red ones against it. The shares of a label are exact: they sum
to the change of its log-probability, from that of an empty document to that of this one.</p>
{body}
</main>
</body>
</html>
"""


def page_of(explanations: Iterable[Explanation]) -> str:
    """A page of some documents."""
    body = "\n".join(_document(explanation) for explanation in explanations)
    return _PAGE.format(style=_STYLE, body=body or '<p class="note">There is no document.</p>')


def fragment_of(explanation: Explanation) -> str:
    """A part of someone else's page."""
    return f'<style>{_STYLE}</style><div class="labeltree">{_document(explanation)}</div>'


def _document(explanation: Explanation) -> str:
    parts = []
    if not explanation.is_known:
        said = "Nothing in it is known to the model: this is what it says of any document."
        parts.append(f'<p class="note">{said}</p>')
    if not explanation.labels:
        parts.append('<p class="note">There is no label to explain.</p>')
    parts += [f"<section>{_label(label)}</section>" for label in explanation.labels]
    return f"<article>{''.join(parts)}</article>"


def _label(label: LabelExplanation) -> str:
    said = f"{label.at_empty:.3g} for an empty document; {label.unit} {label.total:+.3f}"
    parts = [
        f"<header><h2>{_escaped(label.label)}</h2>"
        f'<span class="probability">{label.probability:.3g}</span>'
        f'<span class="note">{said}</span></header>'
    ]
    if label.row.text is not None:
        parts.append(f'<p class="text">{_marked(label.row.text, label.words)}</p>')
    parts.append(_table(label.terms[:TERMS]))
    more = label.terms[TERMS:]
    if more:
        said = f"{len(more):,} others: {sum(term.share for term in more):+.3f}"
        parts.append(f'<p class="note">{said}</p>')
    if label.rest:
        parts.append(f'<p class="note">in general: {label.rest:+.3f}</p>')
    if label.deletions is not None:
        parts.append(f'<p class="note">{deletion_text(label.deletions, _escaped)}</p>')
    parts += [_part(part) for part in label.parts]
    return "".join(parts)


def _marked(text: str, words: Sequence[Word]) -> str:
    """The text, each word with a background as strong as its share."""
    pieces = list(segments(text, words))
    largest = max((abs(piece.share) for piece in pieces), default=0.0) or 1.0
    return "".join(_piece(piece.text, piece.share, largest) for piece in pieces)


def _piece(text: str, share: float, largest: float) -> str:
    part = abs(share) / largest
    if part < 0.01:
        return _escaped(text, lines=True)
    return f'<mark {_shade(share, part)} title="{share:+.3f}">{_escaped(text)}</mark>'


def _shade(share: float, part: float) -> str:
    return f'class="{"for" if share >= 0.0 else "against"}" style="--part:{part:.3f}"'


def _table(terms: Sequence[Term]) -> str:
    largest = max((abs(term.share) for term in terms), default=0.0) or 1.0
    rows = [
        f'<tr><td>{_escaped(term.name)}</td><td class="number">{term.share:+.3f}</td>'
        f'<td class="bar"><i {_shade(term.share, abs(term.share) / largest)}></i></td></tr>'
        for term in terms
    ]
    return f"<table>{''.join(rows)}</table>" if rows else ""


def _part(part: ExpertPart) -> str:
    title = f"{_escaped(part.title)}, {part.weight:.0%} of the evidence: {part.probability:.3g}"
    return f"<details><summary>{title}</summary>{''.join(_details(part))}</details>"


def _details(part: ExpertPart) -> Iterator[str]:
    if part.path:
        steps = "".join(f"<li>{_node(node, place)}</li>" for place, node in enumerate(part.path))
        yield f"<ol>{steps}</ol>"
    if part.contribution.similar_rows is not None:
        votes = [near for near in part.neighbours if near.has_label]
        found = counted(len(part.neighbours), "similar training row")
        rows = "".join(
            f"<li>row {near.row:,}, similar by {near.similarity:.2f}: "
            f"{_escaped(', '.join(term.name for term in near.terms[:NODE_TERMS]))}</li>"
            for near in votes[:ROWS]
        )
        yield f'<p class="note">{len(votes):,} of {found} with it</p><ul>{rows}</ul>'
    if part.leaves is not None:
        said = f"{part.leaves.n_with_label:,} of {part.leaves.n_trees:,} trees come to a leaf with it"
        yield f'<p class="note">{said}</p>'


def _node(node: Node, place: int) -> str:
    name = _escaped(node.name) if place else "any label"
    terms = " ".join(
        f'<span class="{"plus" if term.share >= 0.0 else "minus"}">'
        f"{_escaped(term.name)}&nbsp;{term.share:+.2f}</span>"
        for term in node.terms[:NODE_TERMS]
    )
    return f'<b>{node.probability:.3f}</b> {name} <span class="note">{terms}</span>'


def _escaped(text: str, *, lines: bool = False) -> str:
    """For a page: nothing in it is markup, nor a control character; line breaks of a text stay."""
    if lines:
        return "\n".join(map(_escaped, text.splitlines(keepends=False))) + "\n" * text.endswith("\n")
    return html.escape(plain(text), quote=True)
