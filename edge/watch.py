"""All objects of a kind that a Kubernetes API has, and what changes, for as long as anybody listens.

An API is listed once and then watched; what a watch missed is listed again. Whoever follows hears of each
object at least once what it last was, and of a list all that there is: what is not in it is gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple, Union
from urllib.parse import urlencode

from edge.http import ANSWER_SECONDS, AwayError, Json, Question, RefusedError, Server

PAGE = 250  # objects of a list that are asked for at once
LIST_SECONDS = 30.0
# A server says a bookmark about each minute; one that is silent for longer is gone.
SILENCE_SECONDS, WATCH_SECONDS = 90.0, 300
FIRST_WAIT, LAST_WAIT = 0.05, 1.0
ABSENT_SECONDS = 1.0  # how often it is looked whether a kind is there now


class Listed(NamedTuple):
    """All objects of a kind, which may be none."""

    kind: str
    objects: list[Json]


class Changed(NamedTuple):
    """One object that came, changed or is gone."""

    kind: str
    document: Json
    gone: bool


News = Union[Listed, Changed]


class Kind(NamedTuple):
    """A kind of object by its path in the API; of each object ``needed`` returns what is kept of it.

    One that is ``optional`` may not be there; then there are no objects of it. ``fields`` and ``labels`` are
    selectors; without them it is of all objects.
    """

    path: str
    needed: Callable[[Json], Json] = lambda document: document
    optional: bool = False
    fields: str = ""
    labels: str = ""

    def question(self, seconds: float, **asked: object) -> Question:
        """Return what asks for objects, with what else is asked; an answer may take so long."""
        selectors = {"fieldSelector": self.fields, "labelSelector": self.labels}
        given = {name: selector for name, selector in selectors.items() if selector}
        return Question("GET", f"{self.path}?{urlencode({**given, **asked})}", seconds=seconds)


def follow(server: Server, kind: Kind, put: Callable[[News], None], log: Callable[[str], None]) -> None:
    """Say all objects of a kind, and what changes, until the server's connections are closed."""
    wait, version, away = FIRST_WAIT, "", False
    while not server.closed:
        try:
            if not version:
                version = list_all(server, kind, put)
            if version:
                version = _watch(server, kind, version, put)
                time.sleep(FIRST_WAIT)
            else:
                time.sleep(ABSENT_SECONDS)
            if away:
                log(f"{kind.path}: the API is back")
            wait, away = FIRST_WAIT, False
        except Exception as error:  # of any kind: a thread that ended would let what is known grow old
            problem = str(error) if isinstance(error, AwayError) else repr(error)
            if not away and not server.closed:
                log(f"{kind.path}: cannot be followed, and is listed again: {problem}")
            version, away = "", True
            time.sleep(wait)
            wait = min(2 * wait, LAST_WAIT)


def list_all(server: Server, kind: Kind, put: Callable[[News], None]) -> str:
    """Say all objects; return the version of the list, or nothing if there is no such kind.

    Raises AwayError.
    """
    found: list[Json] = []
    more: dict[str, str] = {}
    while True:
        try:
            answer = server.ask(kind.question(LIST_SECONDS, limit=PAGE, **more))
        except RefusedError as error:
            if error.status != 404 or not kind.optional:
                raise
            put(Listed(kind.path, []))
            return ""
        found += [kind.needed(one) for one in answer.get("items") or ()]
        token = answer["metadata"].get("continue")
        if not token:
            put(Listed(kind.path, found))
            return str(answer["metadata"]["resourceVersion"])
        more = {"continue": token}


def _watch(server: Server, kind: Kind, version: str, put: Callable[[News], None]) -> str:
    """Say what changes until the watch ends; return from which version on it goes on, or nothing."""
    asked = {"watch": 1, "resourceVersion": version, "allowWatchBookmarks": "true"}
    question = kind.question(ANSWER_SECONDS, **asked, timeoutSeconds=WATCH_SECONDS)
    for event in server.listen(question, SILENCE_SECONDS):
        what, document = event["type"], event["object"]
        if what not in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
            return ""  # what changed since is not known any more
        version = str(document["metadata"]["resourceVersion"])
        if what != "BOOKMARK":
            put(Changed(kind.path, kind.needed(document), what == "DELETED"))
    return version
