"""ClusterCIDRConfigs as users of the vendor's write them, and variants of them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

FILES = {file.stem: file for file in sorted((Path(__file__).parent / "clustercidr").iterdir())}
GONE = object()  # a field that is not there


def documents(file: str) -> list[dict[str, Any]]:
    """Return what a file says, by its name without an ending."""
    return [dict(one) for one in YAML(typ="safe").load_all(FILES[file])]


def another(file: str, path: str, value: object) -> dict[str, Any]:
    """Return the first document of a file in which a field of the spec is another, or with "" the spec is."""
    document = copy.deepcopy(documents(file)[0])
    *way, last = f"spec.{path}".rstrip(".").split(".")
    here = document
    for step in way:
        here = here[step]
    here.pop(last, None)
    if value is not GONE:
        here[last] = value
    return document
