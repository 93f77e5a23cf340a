"""What a Service asks of hints, as its Kubernetes version reads it, and hints beside slices; pure.

``service.kubernetes.io/topology-aware-hints`` is read from 1.21 and ``topology-mode`` from 1.27 on, the older
one first where both are set; ``trafficDistribution``, after them, from 1.31 on: its feature gate is on from
then. Only ``auto`` and ``Auto`` switch hints on, ``disabled`` and ``Disabled`` off; what else is written is
off, too, and said. Before 1.21 nobody but us reads the first annotation, and we read it as 1.21 does.

Modes that Kubernetes does not know are asked for by an annotation of ours, which comes before the others.
From 1.24 Kubernetes writes hints into slices by itself; before, and of our modes, they are an annotation on
the slice: the field is not there yet, or the built-in controller's.

``spec.internalTrafficPolicy`` is there by default from 1.22 on (gate ServiceInternalTrafficPolicy, #103462);
before, an annotation of ours says the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional

from edge.services.endpoints import Slice
from edge.services.hints import AUTO, CLOSE, MODES, OFF
from edge.services.selection import INTERNAL_POLICY, LOCAL, policies_of

AWARE_HINTS = "service.kubernetes.io/topology-aware-hints"
TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
OURS = "concorde.contmec.dev/hints"  # on a Service: a mode
ZONE_HINTS = "concorde.contmec.dev/zone-hints"  # on a slice: {"10.1.2.3": ["zone-a"]}

Version = tuple[int, int]  # of Kubernetes: (1, 20)
_TOPOLOGY_MODE_FROM: Version = (1, 27)
_HINTS_BUILT_IN_FROM: Version = (1, 24)
_INTERNAL_POLICY_FROM: Version = (1, 22)
_DISTRIBUTIONS: Mapping[str, Version] = {"PreferClose": (1, 31), "PreferSameZone": (1, 34)}
_VALUES = {"auto": AUTO, "Auto": AUTO, "disabled": OFF, "Disabled": OFF}


class Wish(NamedTuple):
    """The mode that a Service asks for, whether Kubernetes sees to it, and what its owner should know."""

    mode: str
    built_in: bool = False
    said: tuple[str, ...] = ()


def wish(service: Mapping[str, Any], version: Version) -> Wish:
    """Return what a Service, as the API says it, asks for where Kubernetes has this version."""
    annotations = (service.get("metadata") or {}).get("annotations") or {}
    spec = service.get("spec") or {}
    found = _asked(annotations, str(spec.get("trafficDistribution") or ""), version)
    internal = "spec.internalTrafficPolicy" if spec.get("internalTrafficPolicy") else INTERNAL_POLICY
    local = [
        f"{field}: Local, so hints are ignored: use Cluster, or {OFF} for hints"
        for field, policy in zip((internal, "spec.externalTrafficPolicy"), policies_of(service))
        if policy == LOCAL and found.mode != OFF
    ]
    return found._replace(said=(*found.said, *local))


def annotations_of(mode: str, version: Version) -> dict[str, str]:
    """Return the annotations of a Service that ask for a mode where Kubernetes has this version."""
    if mode == OFF:
        return {}
    if mode == AUTO:
        return {TOPOLOGY_MODE if version >= _TOPOLOGY_MODE_FROM else AWARE_HINTS: "Auto"}
    return {OURS: mode}


def annotations_of_policy(policy: str, version: Version) -> dict[str, str]:
    """Return the annotations that say a Service's internal traffic policy where the API keeps no field."""
    return {INTERNAL_POLICY: policy} if policy == LOCAL and version < _INTERNAL_POLICY_FROM else {}


def annotation_of(each: Slice) -> Optional[str]:  # noqa: UP045 (nodes may have Python 3.9)
    """Return a slice's hints as the text of its annotation; None if it is to have none."""
    hints = {one.address: sorted(one.hints) for one in each.endpoints if one.hints}
    return json.dumps(hints, sort_keys=True, separators=(",", ":")) if hints else None


def with_hints(each: Slice, text: Optional[str]) -> tuple[Slice, str]:  # noqa: UP045
    """Return a slice with the hints of its annotation, and what is wrong with that; empty if nothing is.

    A slice without annotation keeps the hints of its field. What is hinted is what was ready when hints were
    written: if that is not so any more, the slice changed.
    """
    if text is None:
        return each, ""
    hints = _parsed(text)
    endpoints = tuple(one._replace(hints=hints.get(one.address, ())) for one in each.endpoints)
    ready = {one.address for one in endpoints if one.ready}
    wrong = "" if hints else f'{ZONE_HINTS}: must be like {{"10.1.2.3": ["zone-a"]}}, not {text[:60]!r}'
    return Slice(each.name, endpoints, changed=hints.keys() != ready), wrong


def _asked(annotations: Mapping[str, str], distribution: str, version: Version) -> Wish:
    if OURS in annotations:
        return _ours(annotations, version)
    newer = version >= _TOPOLOGY_MODE_FROM
    unread = []
    if TOPOLOGY_MODE in annotations and not newer:
        unread = [f"{TOPOLOGY_MODE}: not read before Kubernetes 1.27: use {AWARE_HINTS}"]
    key = AWARE_HINTS if AWARE_HINTS in annotations or not newer else TOPOLOGY_MODE
    value = annotations.get(key)
    if value is not None and value not in _VALUES:
        unread.append(f"{key}: must be auto, Auto, disabled or Disabled, not {value!r}: hints are off")
    if _VALUES.get(value or "") == AUTO:
        return Wish(AUTO, version >= _HINTS_BUILT_IN_FROM, tuple(unread))
    if not distribution:
        return Wish(OFF, said=tuple(unread))
    since = _DISTRIBUTIONS.get(distribution)
    if since is not None and version >= since:
        return Wish(CLOSE, True, tuple(unread))
    why = f"not read before Kubernetes {since[0]}.{since[1]}" if since else "not built here"
    unread.append(f"spec.trafficDistribution: {distribution} is {why}: use {OURS}: {CLOSE}")
    return Wish(OFF, said=tuple(unread))


def _ours(annotations: Mapping[str, str], version: Version) -> Wish:
    value = annotations[OURS]
    if value not in MODES:
        return Wish(OFF, said=(f"{OURS}: must be one of {', '.join(MODES)}, not {value!r}: hints are off",))
    others = [key for key in (AWARE_HINTS, TOPOLOGY_MODE) if key in annotations]
    said = [f"{key}: {OURS} comes before it, but not for kube-proxy: remove one" for key in others]
    return Wish(value, said=tuple(said))


def _parsed(text: str) -> dict[str, tuple[str, ...]]:
    """Return what an annotation of a slice says; nothing if any of it is not as we write it."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    for zones in told.values():
        if not isinstance(zones, list) or not zones or not all(isinstance(zone, str) for zone in zones):
            return {}
    return {address: tuple(zones) for address, zones in told.items()}
