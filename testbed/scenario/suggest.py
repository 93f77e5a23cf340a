"""Which field of a scenario comes nearest to one that there is none of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from testbed.scenario.faults import Fault, Path, render_path
from testbed.scenario.model import Scenario
from testbed.suggest import nearest

UNKNOWN = "no such field"


def with_nearest(fault: Fault) -> Fault:
    """Return a fault with what may have been meant, if it is about an unknown field that resembles one."""
    *above, last = fault.path or ("",)
    if fault.message != UNKNOWN or not isinstance(last, str):
        return fault
    fields = {name for one in _reached(above) for name in one.get("properties", {})}
    found = nearest(last, sorted(fields))
    words = f"{UNKNOWN}; did you mean {render_path((*above, found))}?" if found else UNKNOWN
    return Fault(fault.path, words)


def counted(path: Path, depth: int) -> str:
    """Return what to say of a name where numbers are, at a depth of a path, as in flows.0.duration."""
    above, part, below = path[:depth], path[depth], path[depth + 1 :]
    if isinstance(part, str) and part.isdecimal():
        return f"{UNKNOWN}; did you mean {render_path((*above, int(part), *below))}?"
    return f"{UNKNOWN}: give an index, as in {render_path((*above, 0, *below))}"


@cache
def _schema() -> Mapping[str, Any]:
    return Scenario.model_json_schema()


def _reached(path: list[str | int]) -> list[Mapping[str, Any]]:
    """Return the schemas of what is at a path."""
    found = list(_alternatives(_schema()))
    for part in path:
        below = [one.get("items", {}) if isinstance(part, int) else _named(one, part) for one in found]
        found = [alternative for one in below if isinstance(one, dict) for alternative in _alternatives(one)]
    return found


def _named(schema: Mapping[str, Any], name: str) -> Any:
    """Return the schema of a field, or of whatever a mapping with names of one's own holds."""
    own = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties", {})]
    return schema.get("properties", {}).get(name, own[0])


def _alternatives(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if reference := schema.get("$ref"):
        yield from _alternatives(_schema()["$defs"][reference.rpartition("/")[2]])
    for one in schema.get("anyOf", ()):
        yield from _alternatives(one)
    yield schema
