"""An API of a cluster that exists, by what it has, as kubectl shows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

from testbed.access.place import Result
from testbed.clusters.kubeconfigs import Outside
from tests.doubles import Asked, RecordingNode, shown

ABSENT = Result(1, "", "Error from server (NotFound): the server could not find the requested resource")
Objects = Mapping[str, list[dict[str, Any]] | dict[str, Any] | Result]


class Api:
    """Lists have as many objects a page as are asked for; what is no list is one object."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.node = RecordingNode("here", self._answer)
        self.client = Outside("a", self.node, "kubectl", "/a.conf")

    def _answer(self, asked: Asked) -> Result:
        _, _, _, get, raw, path, _ = asked.argv
        assert (get, raw) == ("get", "--raw")
        parts = urlsplit(path)
        query = {name: one for name, (one,) in parse_qs(parts.query).items()}
        found = self._objects.get(parts.path, ABSENT)
        if isinstance(found, Result):
            return found
        if isinstance(found, dict):
            return shown(found)
        start, count = int(query.get("continue", 0)), int(query.get("limit", len(found) + 1))
        more = str(start + count) if start + count < len(found) else ""
        return shown({"metadata": {"continue": more}, "items": found[start : start + count]})

    @property
    def paths(self) -> list[str]:
        return [command[5] for command in self.node.commands]
