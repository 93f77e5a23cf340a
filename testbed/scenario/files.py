"""Scenarios as files: reading, overriding, writing, and the JSON Schema for editors."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path as FilePath
from typing import Any, get_origin

from pydantic import ValidationError
from ruamel.yaml import YAML

from testbed.registry import nearest
from testbed.scenario import descriptions, reading, settings, texts
from testbed.scenario.faults import MOST_SHOWN, Fault, Path, ScenarioError, explained, render_path, unknown
from testbed.scenario.model import Scenario
from testbed.scenario.rules import faults

ENFORCEMENT, NETWORK = "enforcement", "network"  # two words for the same field
# The fields that hold things by names of one's own: pods, nodes and so on.
NAMED = tuple(name for name, field in Scenario.model_fields.items() if get_origin(field.annotation) is dict)


def load(
    file: FilePath | str, overrides: Sequence[str] = (), scale: float = 1.0, duration: int | None = None
) -> Scenario:
    """Read a scenario, apply ``path=value`` overrides, check it, and multiply its rates by ``scale``.

    With ``duration`` its traffic takes as many seconds, and keeps its shape.

    Raises ScenarioError, naming every fault that was found.
    """
    file = FilePath(file)
    data = _read(file)
    if NETWORK in data and ENFORCEMENT not in data:
        data[ENFORCEMENT] = data.pop(NETWORK)
    for override in overrides:
        _override(data, override)
    _describe(data, file)
    if data.get(settings.FIELD) is not None:
        data[settings.FIELD] = settings.read(data[settings.FIELD], str(file))
    scenario = _validated(data, str(file))
    if not 0 < scale <= 1000:
        raise ScenarioError(
            "--scale", [Fault((), f"must be above 0 and at most 1000, not {scale:g}; 0.1 is a tenth")]
        )
    scenario = scenario.scaled(scale)
    if duration is not None and scenario.measured:
        scenario = scenario.lasting(duration)
    if found := faults(scenario):
        raise ScenarioError(str(file), found)
    return scenario


def _validated(data: Any, source: str) -> Scenario:
    try:
        return Scenario.model_validate(data)
    except ValidationError as error:
        shown = map(with_nearest, explained(error, MOST_SHOWN))
        raise ScenarioError(source, shown, error.error_count()) from None


def render_yaml(scenario: Scenario) -> str:
    """Return the scenario as YAML with every default filled in; ``load`` reads it back to an equal one."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(scenario.model_dump(mode="json", by_alias=True, exclude_none=True), stream)
    return stream.getvalue()


def parse(text: str) -> Scenario:
    """Return what ``render_yaml`` has rendered: whole and checked then, so that nothing is said of faults."""
    return Scenario.model_validate(reading.parse(text))


def render_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of a scenario file, for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    schema["properties"][NETWORK] = schema["properties"][ENFORCEMENT]
    return json.dumps(schema, indent=0, separators=(",", ":")) + "\n"


def _read(file: FilePath) -> Any:
    try:
        data = reading.parse(texts.read(file, reading.MOST_BYTES))
    except (texts.TextError, reading.ReadingError) as error:
        raise ScenarioError(str(file), [Fault((), str(error))]) from None
    if not isinstance(data, dict):
        raise ScenarioError(
            str(file), [Fault((), "not a scenario: expected a mapping with a name and nodes")]
        )
    return data


def _describe(data: Any, file: FilePath) -> None:
    """Put the whole description in the place of a path to one, or of one that names other files."""
    said = data.get(ENFORCEMENT)
    if isinstance(said, dict):
        data[ENFORCEMENT] = descriptions.complete(said, str(file), file.parent, (ENFORCEMENT,))
    elif isinstance(said, str) and descriptions.is_path(said):
        data[ENFORCEMENT] = descriptions.read(file.parent / said, str(file), (ENFORCEMENT,))


def _parsed(override: str) -> tuple[Path, Any]:
    """Return the field's path, and its value."""
    path_text, separator, value_text = override.partition("=")
    path: Path = tuple(
        int(part[1:-1]) if part.startswith("[") else part
        for part in re.findall(r"\[[0-9]{1,9}\]|[^.\[\]]+", path_text)
    )
    if not separator or not 0 < len(path) <= reading.MOST_DEPTH or render_path(path) != path_text:
        words = f"{texts.shortened(override)!r} is not path=value, as in flows[0].duration=5"
        raise ScenarioError("--set", [Fault((), words)])
    try:
        return path, reading.parse(value_text)
    except reading.ReadingError as error:
        shown = texts.shortened(value_text)
        raise ScenarioError("--set", [Fault(path, f"{shown!r} is not a YAML value: {error}")]) from None


def _override(data: Any, override: str) -> None:
    """Set one field, given as ``flows[0].duration=5``; the value is YAML."""
    path, value = _parsed(override)
    if path[0] == NETWORK:
        path = (ENFORCEMENT, *path[1:])
    if path == (ENFORCEMENT,) and isinstance(value, str) and descriptions.is_path(value):
        value = _seen_from_here(value)
    _check_name(data, path)
    place = data
    for depth, part in enumerate(path[:-1]):
        if (
            isinstance(place, dict)
            and isinstance(part, str)
            and not isinstance(place.get(part), (dict, list))
        ):
            place[part] = {}
        place = _step(place, part, path, depth)
    _step(place, path[-1], path, len(path) - 1, missing_is_fine=True)
    place[path[-1]] = value


def _check_name(data: Any, path: Path) -> None:
    """Raise ScenarioError for a field of what there is none of, as of a pod; a new one is set as a whole."""
    if len(path) < 3 or path[0] not in NAMED or not isinstance(path[1], str):
        return
    known = data.get(path[0])
    names = known if isinstance(known, dict) else {}
    if path[1] not in names:
        words = unknown(str(path[0]).removesuffix("s"), path[1], names)
        raise ScenarioError("--set", [Fault(path[:2], words)])


def _seen_from_here(word: str) -> str:
    """Return a path on a command line as an absolute one, if there is such a file."""
    file = FilePath(word)
    return str(file.absolute()) if texts.is_file(file) else word


def _step(place: Any, part: str | int, whole: Path, depth: int, missing_is_fine: bool = False) -> Any:
    """Return what a part of a path leads to; ``whole`` is the path, and ``depth`` where in it the part is."""
    path = whole[: depth + 1]
    if isinstance(place, list) and isinstance(part, int):
        if part < len(place):
            return place[part]
        raise ScenarioError("--set", [Fault(path, f"there are {len(place)} of these, counted from 0")])
    if isinstance(place, list):
        raise ScenarioError("--set", [Fault(path, counted(whole, depth))])
    if isinstance(place, dict) and isinstance(part, str):
        if part in place or missing_is_fine:
            return place.get(part)
        raise ScenarioError("--set", [with_nearest(Fault(path, UNKNOWN))])
    raise ScenarioError("--set", [Fault(path, UNKNOWN)])


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
