"""What an API server is told of a Device or a Connection that somebody makes or changes.

By the rules by which the operator says in a status what is wrong. Strict, it is refused; otherwise each
fault is a warning. Never refused is what leaves the spec as it is, or is being deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edge import reviews
from edge.devices import kinds
from edge.devices.kinds import BadObjectError, Connection
from edge.devices.picture import CONNECTIONS, DEFINITIONS, DEVICES, NODES, Key, Picture, held, key_of
from edge.fields import Problem, at
from edge.http import AwayError, Json, Question, RefusedError, Server
from edge.log import Logger
from edge.reviews import WARNING, Fault, fault, member

API_SECONDS = 1.0  # of what is asked of the API meanwhile: the webhook's own time-out is short
PATHS = {kinds.DEVICES: DEVICES, kinds.CONNECTIONS: CONNECTIONS}


class Judge:
    """Answers by what the API has; ``labels`` are those of a node that may be a gateway."""

    def __init__(self, server: Server, labels: Mapping[str, str], strict: bool, log: Logger) -> None:
        self._server, self._labels, self._strict, self._log = server, labels, strict, log

    def answer(self, asked: Json) -> Json:
        """Return the answer to an AdmissionReview. Raises UnfitError."""
        return reviews.review(asked, self._found)

    def _found(self, request: Json) -> Iterator[Fault]:
        resource = member(request, "resource")
        kind = PATHS.get(str(resource.get("resource")))
        if kind is None or resource.get("group") != kinds.GROUP or request.get("subResource"):
            return
        if request.get("operation") not in ("CREATE", "UPDATE"):
            return
        document = member(request, "object")
        metadata = member(document, "metadata")
        old = request.get("oldObject")
        if metadata.get("deletionTimestamp"):
            return
        if isinstance(old, dict) and old.get("spec") == document.get("spec"):
            return
        name = metadata.get("name") or request.get("name") or ""
        named = {**metadata, "name": name}
        if kind == CONNECTIONS:
            named["namespace"] = request.get("namespace") or metadata.get("namespace") or "default"
        for problem in self._problems(kind, {**document, "metadata": named}):
            found = fault(problem.path, problem.what, at(document, problem.path))
            yield found if self._strict else found._replace(reason=WARNING)

    def _problems(self, kind: str, document: Json) -> list[Problem]:
        try:
            one = held(kind, document)
            if one.said is None:
                return list(one.problems)
            picture = self._picture(one.said)
            picture.put(kind, document, False)
            return picture.problems(key_of(kind, document))
        except BadObjectError as error:
            return list(error.problems)
        except AwayError as error:
            self._log.once(f"webhook: an object was judged by itself alone: {error}")
            return []

    def _picture(self, said: object) -> Picture:
        """Return what is known of all on which an object depends. Raises AwayError."""
        picture = Picture(self._labels)
        if isinstance(said, Connection):
            self._take(picture, Key(DEVICES, "", said.device))
            self._take(picture, Key(DEFINITIONS, *said.definition))
            return picture
        for one in self._asked(DEVICES).get("items") or ():
            picture.put(DEVICES, one, False)
        for name in getattr(said, "nodes", ()):
            self._take(picture, Key(NODES, "", name))
        return picture

    def _take(self, picture: Picture, key: Key) -> None:
        try:
            picture.put(key.kind, self._asked(key.path), False)
        except RefusedError as error:
            if error.status != 404:
                raise

    def _asked(self, path: str) -> Json:
        return self._server.ask(Question("GET", path, seconds=API_SECONDS))
