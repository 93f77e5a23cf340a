"""Reading the fields of a Kubernetes object that may be anything, and saying what is wrong with each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

ABSENT = object()


class Problem(NamedTuple):
    """What is wrong with a field, like ``spec.ipv4.cidr``."""

    path: str
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def text(written: object, path: str, problems: list[Problem]) -> str:
    """Return a string, or the empty one and say what it must be."""
    if isinstance(written, str):
        return written
    problems.append(Problem(path, "must be a string"))
    return ""


def mapping(written: object, path: str, problems: list[Problem]) -> Mapping[str, Any]:
    """Return an object, or an empty one and say what it must be."""
    if isinstance(written, Mapping):
        return written
    problems.append(Problem(path, "must be an object"))
    return {}


def sequence(written: object, path: str, problems: list[Problem]) -> Sequence[Any]:
    """Return a list, or an empty one and say what it must be."""
    if isinstance(written, list):
        return written
    problems.append(Problem(path, "must be a list"))
    return []


def at(document: Mapping[str, Any], path: str) -> object:
    """Return what stands at a path like ``spec.nodeSelector.nodeSelectorTerms[0].matchFields``."""
    here: Any = document
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if index:
            here = here[int(index)] if isinstance(here, list) and int(index) < len(here) else ABSENT
        else:
            here = here.get(key, ABSENT) if isinstance(here, Mapping) else ABSENT
    return here
