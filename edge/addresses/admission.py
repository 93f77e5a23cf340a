"""What an API server is told of a ClusterCIDRConfig that somebody makes or changes: yes, or what is wrong.

Pure: AdmissionReviews of ``admission.k8s.io/v1`` (Kubernetes, "Dynamic Admission Control"), with the rules by
which the controller says what a config gives. Never refused is what leaves the spec as it is, so that a
config that is bad already can be marked, told and deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from edge.addresses import checks, kinds
from edge.addresses.books import FIRST_SPEC, Held, Rules, agreed, judged, spec_text
from edge.http import Json, UnfitError

API, KIND = "admission.k8s.io/v1", "AdmissionReview"
MOST_SAID, MOST_SHOWN = 20, 100  # faults of a config, and characters of a value
INVALID, REQUIRED = "FieldValueInvalid", "FieldValueRequired"  # as apimachinery's causes are called
FIRST = "metadata.annotations"
IMMUTABLE = "field is immutable: make another config, and delete this one"
WARNING = ""  # is no fault
# Of two of one second the one with the smaller name counts as first; who is not there yet comes last.
LAST = "9999-12-31T23:59:59Z"
_ABSENT = object()


class Surroundings(NamedTuple):
    """What a new config is judged by beside itself; ``both``: the server surely keeps two families a node."""

    others: Sequence[Held]
    rules: Rules = Rules()
    both: bool = False


class Fault(NamedTuple):
    """What is wrong with a field, or to be known of it, in the words of a Kubernetes server."""

    path: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def review(asked: Json, surroundings: Callable[[], Surroundings]) -> Json:
    """Return the answer to an AdmissionReview; ``surroundings`` are asked for only if they matter.

    Raises UnfitError for what is no such review.
    """
    if (asked.get("apiVersion"), asked.get("kind")) != (API, KIND):
        raise UnfitError(f"must be an {KIND} of {API}")
    request = _mapping(asked, "request")
    uid = request.get("uid")
    if not isinstance(uid, str):
        raise UnfitError("request.uid must be a string")
    try:
        found = list(_found(request, surroundings))
    except RecursionError:
        raise UnfitError("request is nested too deeply") from None
    faults = [one for one in found if one.reason != WARNING]
    response: Json = {"uid": uid, "allowed": not faults}
    if faults:
        response["status"] = _status(request, faults)
    elif found:
        response["warnings"] = [str(one) for one in found]
    return {"apiVersion": API, "kind": KIND, "response": response}


def _found(request: Json, surroundings: Callable[[], Surroundings]) -> Iterator[Fault]:
    resource = _mapping(request, "resource")
    of = f"{resource.get('group')}/{resource.get('version')}"
    if resource.get("resource") != kinds.PLURAL or of not in (kinds.OURS, kinds.VENDOR):
        return
    if request.get("subResource"):
        return
    if request.get("operation") == "CREATE":
        yield from _made(f"/apis/{of}/{kinds.PLURAL}", _mapping(request, "object"), surroundings)
    elif request.get("operation") == "UPDATE":
        yield from _changed(_mapping(request, "oldObject"), _mapping(request, "object"))


def _made(kind: str, document: Json, surroundings: Callable[[], Surroundings]) -> Iterator[Fault]:
    """Yield what is wrong with a new config, by itself or else beside the others, and what is to be known."""
    metadata = _mapping(document, "metadata")
    try:
        config = kinds.parse(document)
    except kinds.BadConfigError as error:
        for problem in error.problems:
            yield _fault(problem.path, problem.what, _at(document, problem.path))
        return
    first = _first_spec(document)
    if first not in ("", spec_text(document["spec"])):
        yield _fault(FIRST, f"{FIRST_SPEC} is of another spec: leave it out", {FIRST_SPEC: first})
        return
    mine = judged(kind, {**document, "metadata": {**metadata, "creationTimestamp": LAST}})
    around = surroundings()
    others = [one for one in around.others if (one.kind, one.name) != (kind, mine.name)]
    for one in agreed([*others, mine], around.rules, around.both):
        if one.name == mine.name and one.reason:
            yield _fault("spec", one.message, document["spec"])
    for network in checks.overlapping(config.ranges, around.rules.reserved):
        yield Fault("spec", WARNING, f"nothing of {network} is given, which is reserved")


def _changed(old: Json, new: Json) -> Iterator[Fault]:
    """Yield the fields of a spec that are changed, unless it is written back as it was first."""
    before, after = old.get("spec"), new.get("spec")
    if spec_text(after) not in (spec_text(before), _first_spec(old)):
        for path in _differing(before, after, "spec"):
            yield _fault(path, IMMUTABLE, _at(new, path), INVALID)


def _differing(one: object, other: object, path: str) -> Iterator[str]:
    """Yield where two specs differ: ``spec.FIELD``, or ``spec.FIELD.FIELD``."""
    if path.count(".") < 2 and isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted({**one, **other}):
            yield from _differing(one.get(key), other.get(key), f"{path}.{key}")
    elif spec_text(one) != spec_text(other):
        yield path


def _first_spec(document: Json) -> str:
    """Return the spec by which a config gave first, as its annotation has it."""
    metadata = _mapping(document, "metadata")
    if metadata.get("annotations") is None:
        return ""
    return str(_mapping(metadata, "annotations").get(FIRST_SPEC, ""))


def _fault(path: str, what: str, value: object, reason: str = "") -> Fault:
    """Return a fault worded as apimachinery's ``field.Error`` is."""
    if not reason:
        reason = REQUIRED if value in (None, _ABSENT) else INVALID
    if reason == REQUIRED:
        return Fault(path, reason, f"Required value: {what}")
    return Fault(path, reason, f"Invalid value: {_shown(value)}: {what}")


def _shown(value: object) -> str:
    text = json.dumps(None if value is _ABSENT else value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _at(document: Json, path: str) -> object:
    """Return what stands at a path like ``spec.nodeSelector.nodeSelectorTerms[0].matchFields``."""
    here: Any = document
    for key, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        if index:
            here = here[int(index)] if isinstance(here, list) and int(index) < len(here) else _ABSENT
        else:
            here = here.get(key, _ABSENT) if isinstance(here, Mapping) else _ABSENT
    return here


def _status(request: Json, faults: Sequence[Fault]) -> Json:
    """Return a refusal as apimachinery's ``NewInvalid`` makes it: kubectl shows its causes, a line each."""
    group, name = request["resource"]["group"], _name(request)
    said = [str(one) for one in faults[:MOST_SAID]]
    if len(faults) > MOST_SAID:
        said.append(f"and {len(faults) - MOST_SAID} more")
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    causes = [{"reason": one.reason, "message": one.message, "field": one.path} for one in faults[:MOST_SAID]]
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{kinds.KIND}.{group} "{name}" is invalid: {listed}',
        "details": {"name": name, "group": group, "kind": kinds.KIND, "causes": causes},
    }


def _name(request: Json) -> str:
    """Return how the refused config is called; a server may leave it to the object."""
    return str(request.get("name") or _mapping(_mapping(request, "object"), "metadata").get("name", ""))


def _mapping(document: Json, field: str) -> Json:
    found = document.get(field)
    if not isinstance(found, dict):
        raise UnfitError(f"{field} must be an object")
    return found
