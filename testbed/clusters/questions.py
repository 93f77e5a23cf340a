"""What the API of a cluster that exists is asked: objects at a path, only to be read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlencode

from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.namespaces import ANSWER_SECONDS

PAGE = 500  # objects of an answer, as kubectl has it: so neither side holds a large cluster's pods at once
# What kubectl says where an API has no such kind or object, and where one may not look.
ABSENT, FORBIDDEN = "(NotFound)", "(Forbidden)"


def listed(client: Outside, path: str, **query: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, a page at a time. Raises LookupError."""
    more: dict[str, str] = {}
    while True:
        shown = raw(client, path, limit=PAGE, **query, **more)
        assert shown is not None
        yield from shown["items"]
        token = shown["metadata"].get("continue")
        if not token:
            return
        more = {"continue": token}


def raw(client: Outside, path: str, unless: Sequence[str] = (), **query: str | int) -> dict[str, Any] | None:
    """Return what is at a path; None if kubectl says one of ``unless``. Raises LookupError."""
    wait = f"--request-timeout={ANSWER_SECONDS}s"
    done = client.run("get", "--raw", f"{path}?{urlencode(query)}", wait, check=False)
    if done.status == 0:
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    if any(words in done.stderr for words in unless):
        return None
    said = done.stderr.strip().rpartition("\n")[2] or f"kubectl ended with {done.status}"
    raise LookupError(f"--kubeconfig {client.access}: {path}: {said}")
