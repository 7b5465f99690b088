"""The description of the service to read: plain HTML, without scripts or anything from elsewhere."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, pre { font: 0.9em ui-monospace, monospace; }
pre { background: var(--soft); padding: 0.7rem; overflow-x: auto; border-radius: 0.4rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: 0.2rem 0.6rem; }
tr { border-bottom: 1px solid var(--line); }
section { border-top: 2px solid var(--line); margin-top: 2rem; }
h2 code { font-size: 1em; } .method { font-weight: 700; } a { color: inherit; }
"""
_DIGEST = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
POLICY = f"default-src 'none'; base-uri 'none'; frame-ancestors 'none'; style-src 'sha256-{_DIGEST}'"


def reference_page(description: Mapping[str, Any]) -> str:
    """Of an OpenAPI document."""
    schemas, title = description["components"]["schemas"], f"{description['info']['title']}: its requests"
    operations = [
        (method.upper(), path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    ]
    contents = "".join(
        f'<tr><td class="method">{method}</td><td><a href="#{operation["operationId"]}">'
        f"<code>{escape(path)}</code></a></td><td>{escape(operation['summary'])}</td></tr>"
        for method, path, operation in operations
    )
    sections = "".join(_section(*each, schemas) for each in operations)
    kinds = "".join(_schema(name, schema) for name, schema in schemas.items())
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head><body><main>'
        f"<h1>{escape(title)}</h1><p>Version {escape(description['info']['version'])}. Programs read "
        '<a href="/openapi.json">openapi.json</a> instead. Where the service was started with tokens, send '
        "<code>Authorization: Bearer TOKEN</code>.</p>"
        f"<table>{contents}</table>{sections}<section><h2>What they hold</h2>{kinds}</section>"
        "</main></body></html>"
    )


def _section(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    body = operation.get("requestBody", {}).get("content", {})
    rows = [
        (parameter["name"], f"in the {parameter['in']}", _type(parameter["schema"]))
        for parameter in operation["parameters"]
    ]
    parts = [f'<section id="{operation["operationId"]}"><h2><span class="method">{method}</span> ']
    parts.append(f"<code>{escape(path)}</code></h2><p>{escape(operation['summary'])}</p>")
    if rows:
        parts.append(_table(rows))
    for media, content in body.items():
        parts.append(f"<p>Body, {escape(media)}: {_type(content['schema'])}</p>")
        parts.append(f"<pre>{escape(_example(method, path, media, content['schema'], schemas))}</pre>")
    for media, content in operation["responses"]["200"]["content"].items():
        parts.append(f"<p>Answer, {escape(media)}: {_type(content['schema'])}</p>")
    statuses = ", ".join(sorted(status for status in operation["responses"] if status != "200"))
    return "".join([*parts, f"<p>Problems: {statuses}</p></section>"])


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    needed = schema.get("required", [])
    rows = [
        (field, _type(kind), "needed" if field in needed else _default(kind))
        for field, kind in schema.get("properties", {}).items()
    ]
    told = escape(schema.get("description", ""))
    return f'<h3 id="{escape(name)}">{escape(name)}</h3><p>{told}</p>{_table(rows)}'


def _default(kind: Mapping[str, Any]) -> str:
    return f"else {escape(str(kind['default']))}" if kind.get("default") is not None else ""


def _table(rows: Iterable[tuple[str, ...]]) -> str:
    lines = (
        f"<tr><th scope=row><code>{escape(name)}</code></th>" + "".join(f"<td>{cell}</td>" for cell in cells)
        for name, *cells in rows
    )
    return f"<table>{''.join(lines)}</table>"


def _type(schema: Mapping[str, Any]) -> str:
    """As HTML; other schemas are links."""
    return " or ".join(_types(schema))


def _types(schema: Mapping[str, Any]) -> Iterator[str]:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        yield f'<a href="#{name}">{name}</a>'
    elif "anyOf" in schema:
        for each in schema["anyOf"]:
            yield from _types(each)
    elif "enum" in schema:
        yield from (f"<code>{escape(str(value))}</code>" for value in schema["enum"])
    elif schema.get("type") == "array":
        yield f"list of {_type(schema['items'])}" if schema.get("items") else "list"
    else:
        bounds = [
            f"{told} {schema[key]}"
            for key, told in (("minimum", "at least"), ("maximum", "at most"))
            if key in schema
        ]
        yield escape(", ".join([str(schema.get("type", "anything")), *bounds]))


_EXAMPLES = {
    "text": "how do I store fresh bread", "texts": ["fresh bread", "a sauce without flour"], "label": "bread",
    "documents": [{"text": "fresh bread"}],
    "inputs": [{"name": "text", "datatype": "BYTES", "shape": [1], "data": ["fresh bread"]}],
}  # fmt: skip


def _example(
    method: str, path: str, media: str, schema: Mapping[str, Any], schemas: Mapping[str, Any]
) -> str:
    """A command that sends such a request."""
    kind = schemas.get(schema.get("$ref", "").rpartition("/")[2], {})
    fields = kind.get("properties", {})
    given = [name for name in ("text", "label", "documents", "inputs") if name in fields]
    body = json.dumps({name: _EXAMPLES[name] for name in given})
    sent = f"-H 'Content-Type: {media}' -d '{body}'"
    if media != "application/json":
        sent = " ".join(f"--data-urlencode '{name}={_EXAMPLES[name]}'" for name in given)
    return f"curl -X {method} localhost:8080{path.replace('{name}', 'NAME')} {sent}"


@lru_cache(1)
def whole_page() -> bytes:
    """Without the names of models, which not everybody may know."""
    from labeltree.serve.openapi import description

    return reference_page(description(["NAME"])).encode()
