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
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from testbed.scenario.model import Scenario
from testbed.scenario.rules import Fault, Path, faults, render_path


class ScenarioError(ValueError):
    """A scenario that cannot be run; the message names the file, the path to each fault and what is right."""

    def __init__(self, file: str, problems: Iterable[Fault]) -> None:
        lines = [": ".join(filter(None, (file, render_path(path), text))) for path, text in problems]
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
        raise ScenarioError(str(file), map(_fault, error.errors())) from None
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


def _read(file: FilePath) -> Any:
    try:
        data = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(str(file), [Fault((), error.strerror or str(error))]) from None
    except UnicodeDecodeError as error:
        raise ScenarioError(str(file), [Fault((), f"not UTF-8 text: {error.reason}")]) from None
    except DuplicateKeyError as error:
        raise ScenarioError(str(file), [Fault((), _at(error, str(error.problem)))]) from None
    except MarkedYAMLError as error:
        raise ScenarioError(str(file), [Fault((), _at(error, f"not YAML: {error.problem}"))]) from None
    except YAMLError as error:
        raise ScenarioError(str(file), [Fault((), f"not YAML: {error}")]) from None
    if not isinstance(data, dict):
        raise ScenarioError(
            str(file), [Fault((), "not a scenario: expected a mapping with a name and nodes")]
        )
    return data


def _at(error: MarkedYAMLError, text: str) -> str:
    mark = error.problem_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {text}" if mark else text


def _override(data: Any, override: str) -> None:
    """Set one field, given as ``flows[0].duration=5``; the value is YAML."""
    path_text, separator, value_text = override.partition("=")
    path: Path = tuple(
        int(part[1:-1]) if part.startswith("[") else part
        for part in re.findall(r"\[\d+\]|[^.\[\]]+", path_text)
    )
    if not separator or not path or render_path(path) != path_text:
        raise ScenarioError(
            "--set", [Fault((), f"{override!r} is not path=value, as in flows[0].duration=5")]
        )
    try:
        value = YAML(typ="safe", pure=True).load(value_text)
    except YAMLError:
        raise ScenarioError("--set", [Fault(path, f"{value_text!r} is not a YAML value")]) from None
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
