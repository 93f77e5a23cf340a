"""Descriptions of networks as files: the shipped ones, which have names, and anybody's own.

A file may name others: the configuration list, and the directory of plugins, both relative to itself. What is
read holds the list itself and a whole path, so that a recording is complete without these files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from testbed import resources
from testbed.scenario import reading, texts
from testbed.scenario.description import Description, faults
from testbed.scenario.faults import Fault, Path, ScenarioError, explained

OURS = "concorde"  # as ``plugins``: those of this project, which are built
MOST_BYTES = 1 << 20  # of a configuration list


def shipped() -> Iterator[str]:
    """Yield the names that need no path."""
    yield from sorted(file.stem for file in resources.NETWORKS.glob("*.yaml"))


@cache
def of_name(name: str) -> Description:
    """Return a shipped description. Raises ScenarioError."""
    return read(resources.NETWORKS / f"{name}.yaml")


def is_path(word: str) -> bool:
    """Tell whether a word for a network is the path of a file, and no name."""
    return "/" in word or word.endswith((".yaml", ".yml"))


def read(file: FilePath, named_in: str = "", at: Path = ()) -> Description:
    """Return what a file describes, which another may name at some path there.

    Raises ScenarioError with every fault; that it cannot be read is one of who names it.
    """
    try:
        text = texts.read(file, reading.MOST_BYTES)
    except texts.TextError as error:
        words = f"{file}: {error}" if named_in else str(error)
        raise ScenarioError(named_in or str(file), [Fault(at, words)]) from None
    try:
        data = reading.parse(text)
    except reading.ReadingError as error:
        raise ScenarioError(str(file), [Fault((), str(error))]) from None
    if isinstance(data, dict):
        data.setdefault("name", file.stem)
    return complete(data, str(file), file.parent, ())


def complete(data: Any, file: str, base: FilePath, at: Path) -> Description:
    """Return a description that stands in a file, at some path there; what it names is relative to ``base``.

    Raises ScenarioError with every fault.
    """
    if not isinstance(data, dict):
        raise ScenarioError(file, [Fault(at, "not a description: expected a mapping")])
    whole = dict(data)
    if isinstance(whole.get("conflist"), str):
        whole["conflist"] = _conflist(base / whole["conflist"], file, (*at, "conflist"))
    plugins = whole.get("plugins")
    if isinstance(plugins, str) and plugins != OURS:
        whole["plugins"] = str((base / plugins).resolve())
    try:
        description = Description.model_validate(whole)
    except ValidationError as error:
        found = [Fault((*at, *path), text) for path, text in explained(error)]
        raise ScenarioError(file, found) from None
    if found := list(faults(description, at)):
        raise ScenarioError(file, found)
    return description


def _conflist(file: FilePath, named_in: str, at: Path) -> Any:
    try:
        return json.loads(texts.read(file, MOST_BYTES))
    except texts.TextError as error:
        raise ScenarioError(named_in, [Fault(at, f"{file}: {error}")]) from None
    except ValueError as error:
        raise ScenarioError(named_in, [Fault(at, f"{file} is not JSON: {error}")]) from None
    except RecursionError:
        raise ScenarioError(named_in, [Fault(at, f"{file} is nested too deeply")]) from None
