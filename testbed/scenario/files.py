"""Scenarios as files: reading, overriding, writing, and the JSON Schema for editors."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from testbed.scenario import reading, texts
from testbed.scenario.model import Scenario
from testbed.scenario.rules import Fault, Path, faults, render_path

MOST_SHOWN = 50  # faults


class ScenarioError(LookupError):
    """A scenario that cannot be run; the message names the file, the path to each fault and what is right.

    A LookupError like all bad input, so that the command line need not know scenarios to end with its status.
    """

    def __init__(self, file: str, problems: Iterable[Fault]) -> None:
        found = list(problems)
        lines = [
            ": ".join(filter(None, (file, render_path(path), text))) for path, text in found[:MOST_SHOWN]
        ]
        if len(found) > MOST_SHOWN:
            lines.append(f"{file}: and {len(found) - MOST_SHOWN} more")
        super().__init__("\n".join(lines))


def load(file: FilePath | str, overrides: Sequence[str] = (), scale: float = 1.0) -> Scenario:
    """Read a scenario, apply ``path=value`` overrides, check it, and multiply its rates by ``scale``.

    Raises ScenarioError, naming every fault that was found.
    """
    file = FilePath(file)
    data = _read(file)
    for override in overrides:
        _override(data, override)
    try:
        scenario = Scenario.model_validate(data)
    except ValidationError as error:
        raise ScenarioError(str(file), explained(error)) from None
    if not 0 < scale <= 1000:
        raise ScenarioError("--scale", [Fault((), f"{scale:g} is no factor for rates; 0.1 is a tenth")])
    scenario = scenario.scaled(scale)
    if found := faults(scenario):
        raise ScenarioError(str(file), found)
    return scenario


def render_yaml(scenario: Scenario) -> str:
    """Return the scenario as YAML with every default filled in; ``load`` reads it back to an equal one."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(scenario.model_dump(mode="json", by_alias=True, exclude_none=True), stream)
    return stream.getvalue()


def render_schema() -> str:
    """Return the JSON Schema (draft 2020-12) of a scenario file, for editors."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Scenario.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def explained(error: ValidationError) -> list[Fault]:
    """Return what a model does not take, with the path to each, as people say it."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [_fault(one) for one in found]


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


def _override(data: Any, override: str) -> None:
    """Set one field, given as ``flows[0].duration=5``; the value is YAML."""
    path_text, separator, value_text = override.partition("=")
    path: Path = tuple(
        int(part[1:-1]) if part.startswith("[") else part
        for part in re.findall(r"\[[0-9]{1,9}\]|[^.\[\]]+", path_text)
    )
    if not separator or not 0 < len(path) <= reading.MOST_DEPTH or render_path(path) != path_text:
        words = f"{texts.shortened(override)!r} is not path=value, as in flows[0].duration=5"
        raise ScenarioError("--set", [Fault((), words)])
    try:
        value = reading.parse(value_text)
    except reading.ReadingError as error:
        shown = texts.shortened(value_text)
        raise ScenarioError("--set", [Fault(path, f"{shown!r} is not a YAML value: {error}")]) from None
    place = data
    for depth, part in enumerate(path[:-1]):
        if (
            isinstance(place, dict)
            and isinstance(part, str)
            and not isinstance(place.get(part), (dict, list))
        ):
            place[part] = {}
        place = _step(place, part, path[: depth + 1])
    _step(place, path[-1], path, missing_is_fine=True)
    place[path[-1]] = value


def _step(place: Any, part: str | int, path: Path, missing_is_fine: bool = False) -> Any:
    if isinstance(place, list) and isinstance(part, int):
        if part < len(place):
            return place[part]
        raise ScenarioError("--set", [Fault(path, f"there are {len(place)} of these, counted from 0")])
    if isinstance(place, dict) and isinstance(part, str):
        if part in place or missing_is_fine:
            return place.get(part)
        raise ScenarioError("--set", [Fault(path, "no such field")])
    raise ScenarioError("--set", [Fault(path, "no such field")])


def _fault(error: Any) -> Fault:
    path = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        return Fault(path, "no such field")
    if error["type"] == "missing":
        return Fault(path, "this field is required")
    text: str = error["msg"].removeprefix("Value error, ")
    return Fault(path, text[0].lower() + text[1:] if text.startswith(("Input", "String", "List")) else text)
