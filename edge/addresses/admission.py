"""What an API server is told of a ClusterCIDRConfig that somebody makes or changes: yes, or what is wrong.

Pure, with the rules by which the controller says what a config gives. Never refused is what leaves the spec
as it is, so that a config that is bad already can be marked, told and deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from edge import reviews
from edge.addresses import checks, kinds
from edge.addresses.books import FIRST_SPEC, Held, Rules, agreed, judged, spec_text
from edge.fields import at
from edge.http import Json
from edge.reviews import INVALID, WARNING, Fault, fault, member

FIRST = "metadata.annotations"
IMMUTABLE = "field is immutable: make another config, and delete this one"
# Of two of one second the one with the smaller name counts as first; who is not there yet comes last.
LAST = "9999-12-31T23:59:59Z"


class Surroundings(NamedTuple):
    """What a new config is judged by beside itself; ``both``: the server surely keeps two families a node."""

    others: Sequence[Held]
    rules: Rules = Rules()
    both: bool = False


def review(asked: Json, surroundings: Callable[[], Surroundings]) -> Json:
    """Return the answer to an AdmissionReview; ``surroundings`` are asked for only if they matter.

    Raises UnfitError for what is no such review.
    """
    return reviews.review(asked, lambda request: _found(request, surroundings))


def _found(request: Json, surroundings: Callable[[], Surroundings]) -> Iterator[Fault]:
    resource = member(request, "resource")
    of = f"{resource.get('group')}/{resource.get('version')}"
    if resource.get("resource") != kinds.PLURAL or of not in (kinds.OURS, kinds.VENDOR):
        return
    if request.get("subResource"):
        return
    if request.get("operation") == "CREATE":
        yield from _made(f"/apis/{of}/{kinds.PLURAL}", member(request, "object"), surroundings)
    elif request.get("operation") == "UPDATE":
        yield from _changed(member(request, "oldObject"), member(request, "object"))


def _made(kind: str, document: Json, surroundings: Callable[[], Surroundings]) -> Iterator[Fault]:
    """Yield what is wrong with a new config, by itself or else beside the others, and what is to be known."""
    metadata = member(document, "metadata")
    try:
        config = kinds.parse(document)
    except kinds.BadConfigError as error:
        for problem in error.problems:
            yield fault(problem.path, problem.what, at(document, problem.path))
        return
    first = _first_spec(document)
    if first not in ("", spec_text(document["spec"])):
        yield fault(FIRST, f"{FIRST_SPEC} is of another spec: leave it out", {FIRST_SPEC: first})
        return
    mine = judged(kind, {**document, "metadata": {**metadata, "creationTimestamp": LAST}})
    around = surroundings()
    others = [one for one in around.others if (one.kind, one.name) != (kind, mine.name)]
    for one in agreed([*others, mine], around.rules, around.both):
        if one.name == mine.name and one.reason:
            yield fault("spec", one.message, document["spec"])
    for network in checks.overlapping(config.ranges, around.rules.reserved):
        yield Fault("spec", WARNING, f"nothing of {network} is given, which is reserved")


def _changed(old: Json, new: Json) -> Iterator[Fault]:
    """Yield the fields of a spec that are changed, unless it is written back as it was first."""
    before, after = old.get("spec"), new.get("spec")
    if spec_text(after) not in (spec_text(before), _first_spec(old)):
        for path in _differing(before, after, "spec"):
            yield fault(path, IMMUTABLE, at(new, path), INVALID)


def _differing(one: object, other: object, path: str) -> Iterator[str]:
    """Yield where two specs differ: ``spec.FIELD``, or ``spec.FIELD.FIELD``."""
    if path.count(".") < 2 and isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({**one, **other}):
            yield from _differing(one.get(key), other.get(key), f"{path}.{key}")
    elif spec_text(one) != spec_text(other):
        yield path


def _first_spec(document: Json) -> str:
    """Return the spec by which a config gave first, as its annotation has it."""
    metadata = member(document, "metadata")
    if metadata.get("annotations") is None:
        return ""
    return str(member(metadata, "annotations").get(FIRST_SPEC, ""))
