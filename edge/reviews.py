"""AdmissionReviews of ``admission.k8s.io/v1`` (Kubernetes, "Dynamic Admission Control"), and answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from edge.fields import ABSENT
from edge.http import Json, UnfitError

API, KIND = "admission.k8s.io/v1", "AdmissionReview"
MOST_SAID, MOST_SHOWN = 20, 100  # faults of an object, and characters of a value
INVALID, REQUIRED = "FieldValueInvalid", "FieldValueRequired"  # as apimachinery's causes are called
WARNING = ""  # is no fault


class Fault(NamedTuple):
    """What is wrong with a field, or to be known of it, in the words of a Kubernetes server."""

    path: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


def review(asked: Json, found_in: Callable[[Json], Iterable[Fault]]) -> Json:
    """Return the answer to an AdmissionReview, by what is found in its request.

    Raises UnfitError for what is no such review, and what ``found_in`` raises.
    """
    if (asked.get("apiVersion"), asked.get("kind")) != (API, KIND):
        raise UnfitError(f"must be an {KIND} of {API}")
    request = member(asked, "request")
    uid = request.get("uid")
    if not isinstance(uid, str):
        raise UnfitError("request.uid must be a string")
    try:
        found = list(found_in(request))
    except RecursionError:
        raise UnfitError("request is nested too deeply") from None
    faults = [one for one in found if one.reason != WARNING]
    response: Json = {"uid": uid, "allowed": not faults}
    if faults:
        response["status"] = _status(request, faults)
    elif found:
        response["warnings"] = [str(one) for one in found]
    return {"apiVersion": API, "kind": KIND, "response": response}


def fault(path: str, what: str, value: object, reason: str = "") -> Fault:
    """Return a fault worded as apimachinery's ``field.Error`` is."""
    if not reason:
        reason = REQUIRED if value in (None, ABSENT) else INVALID
    if reason == REQUIRED:
        return Fault(path, reason, f"Required value: {what}")
    return Fault(path, reason, f"Invalid value: {_shown(value)}: {what}")


def _shown(value: object) -> str:
    text = json.dumps(None if value is ABSENT else value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _status(request: Json, faults: Sequence[Fault]) -> Json:
    """Return a refusal as apimachinery's ``NewInvalid`` makes it: kubectl shows its causes, a line each."""
    group, name = request["resource"]["group"], _name(request)
    kind = member(request, "kind").get("kind")
    said = [str(one) for one in faults[:MOST_SAID]]
    if len(faults) > MOST_SAID:
        said.append(f"and {len(faults) - MOST_SAID} more")
    listed = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    causes = [{"reason": one.reason, "message": one.message, "field": one.path} for one in faults[:MOST_SAID]]
    return {
        "status": "Failure",
        "code": 422,
        "reason": "Invalid",
        "message": f'{kind}.{group} "{name}" is invalid: {listed}',
        "details": {"name": name, "group": group, "kind": kind, "causes": causes},
    }


def _name(request: Json) -> str:
    """Return how the refused object is called; a server may leave it to the object."""
    return str(request.get("name") or member(member(request, "object"), "metadata").get("name", ""))


def member(document: Json, field: str) -> Json:
    """Return an object in another one. Raises UnfitError."""
    found = document.get(field)
    if not isinstance(found, dict):
        raise UnfitError(f"{field} must be an object")
    return found
