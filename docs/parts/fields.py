"""All fields of a scenario, part by part, from the JSON Schema that editors get."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter

from docs.parts.table import table
from testbed.scenario import render_schema, words

Schema = Mapping[str, Any]

REFERENCE = "#/$defs/"
# Types that the schema writes out at each field, by what people call them.
NAMED = {
    json.dumps(TypeAdapter(kind).json_schema(), sort_keys=True): word
    for kind, word in (
        (words.Rate, "rate"),
        (words.Network, "IPv4 network"),
        (words.Address, "IPv4 address"),
        (words.Name, "name"),
        (words.Interface, "interface"),
    )
}
WORDS = {"string": "text", "boolean": "true or false", "object": "mapping", "null": "nothing"}
# What says how large a value may be, and how that is read.
BOUNDS = (
    ("minimum", "at least {}"), ("exclusiveMinimum", "more than {}"),
    ("maximum", "at most {}"), ("exclusiveMaximum", "less than {}"),
    ("minItems", "at least {}"), ("minProperties", "at least {}"), ("maxProperties", "at most {}"),
)  # fmt: skip
# What pydantic says of a field besides; none of it is part of a type.
BESIDES = {"title", "description", "default"}


def render() -> str:
    """Return a section for each part as Markdown, the scenario itself first."""
    schema = json.loads(render_schema())
    parts = {"Scenario": schema, **{name: schema["$defs"][name] for name in _order(schema)}}
    return "\n".join(_section(name, part) for name, part in parts.items())


def _order(schema: Schema) -> list[str]:
    """Return the names of all parts, in the order in which a reader from the top meets them."""
    met: list[str] = []
    waiting = list(_references(schema["properties"]))
    while waiting:
        name = waiting.pop(0)
        if name not in met:
            met.append(name)
            waiting += _references(schema["$defs"][name])
    return met


def _references(value: object) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield value["$ref"].removeprefix(REFERENCE)
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _section(name: str, part: Schema) -> str:
    rows = (
        [f"`{field}`", kind(of), _default(field, of, part), of.get("description", "")]
        for field, of in part.get("properties", {}).items()
    )
    text = part.get("description", "").replace("``", "`")
    listed = table(["Field", "Value", "Default", "Means"], rows) if part.get("properties") else kind(part)
    return f"## {name}\n\n{text}\n\n{listed}"


def _default(field: str, of: Schema, part: Schema) -> str:
    if field in part.get("required", ()):
        return "must be given"
    default = of.get("default")
    if default is None:
        return "none"
    # Parts have a table of their own, with the defaults of all their fields.
    return "that of each field" if default and isinstance(default, dict) else f"`{json.dumps(default)}`"


def kind(of: Schema) -> str:
    """Return what a field's value is, in words."""
    bare = {key: value for key, value in of.items() if key not in BESIDES}
    for described in (of, bare):
        text = json.dumps({key: described[key] for key in described if key != "title"}, sort_keys=True)
        if text in NAMED:
            return NAMED[text]
    if "$ref" in bare:
        name = bare["$ref"].removeprefix(REFERENCE)
        return f"[{name}](#{name.lower()})"
    if several := bare.get("anyOf") or bare.get("oneOf") or bare.get("allOf"):
        return " or ".join(dict.fromkeys(kind(one) for one in several if one.get("type") != "null"))
    if "enum" in bare or "const" in bare:
        return ", ".join(f"`{value}`" for value in bare.get("enum", [bare.get("const")]))
    return _plain(bare)


def _values(bare: Schema) -> list[Schema]:
    """Return what the values of a mapping with free keys are."""
    others = [*bare.get("patternProperties", {}).values(), bare.get("additionalProperties")]
    return [other for other in others if isinstance(other, Mapping)]


def _plain(bare: Schema) -> str:
    plain: str = bare.get("type", "anything")
    word = WORDS.get(plain, plain)
    if bare.get("type") == "array":
        word = f"list of {kind(bare['items'])}" if "items" in bare else "list"
    elif values := _values(bare):
        word = f"mapping of a name to {' or '.join(dict.fromkeys(map(kind, values)))}"
    return ", ".join([word, *(words.format(bare[bound]) for bound, words in BOUNDS if bound in bare)])
