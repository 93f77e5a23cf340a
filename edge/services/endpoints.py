"""Nodes, and the endpoints of a service in their slices; read from what a Kubernetes API says of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, NamedTuple, Optional

ZONE_LABEL = "topology.kubernetes.io/zone"
# A node with one of these, whatever the value, counts for no zone (kubernetes/endpointslice, topologycache).
CONTROL_PLANE_LABELS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_QUANTITY = re.compile(r"(\d+\.?\d*|\.\d+)(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?")
_FACTORS = {
    **{suffix: Fraction(1000) ** power for power, suffix in zip((-3, -2, -1, 1, 2, 3, 4, 5, 6), "numkMGTPE")},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}


class Node(NamedTuple):
    """A node; ``zone`` is empty and ``milli_cpu`` (thousandths of a processor) 0 where it does not say."""

    name: str
    zone: str = ""
    milli_cpu: int = 0
    ready: bool = True
    control_plane: bool = False

    @property
    def counts(self) -> bool:
        """Whether its processors are its zone's."""
        return self.ready and not self.control_plane


class Endpoint(NamedTuple):
    """An address that answers for a service, and the zones that it is hinted for.

    A condition that is not said is None: who writes hints and who uses them read that differently.
    """

    address: str
    zone: str = ""  # of its node
    node: str = ""
    ready: Optional[bool] = True  # noqa: UP045 (nodes may have Python 3.9)
    serving: Optional[bool] = None  # noqa: UP045
    terminating: bool = False
    hints: tuple[str, ...] = ()


class Slice(NamedTuple):
    """An EndpointSlice; ``changed`` if its endpoints are not those for which its hints were written."""

    name: str
    endpoints: tuple[Endpoint, ...]
    changed: bool = False


def ready_ones(slices: Iterable[Slice]) -> Iterator[Endpoint]:
    """Return the endpoints that may have hints, in their order: they say that they are ready."""
    return (one for each in slices for one in each.endpoints if one.ready)


def node_of(document: Mapping[str, Any]) -> Node:
    """Return what an API's Node says of itself."""
    metadata, status = document.get("metadata") or {}, document.get("status") or {}
    labels = metadata.get("labels") or {}
    conditions = status.get("conditions") or ()
    return Node(
        str(metadata.get("name", "")),
        str(labels.get(ZONE_LABEL, "")),
        milli_cpu(str((status.get("allocatable") or {}).get("cpu", ""))),
        any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions),
        any(label in labels for label in CONTROL_PLANE_LABELS),
    )


def milli_cpu(quantity: str) -> int:
    """Return thousandths of a processor, rounded up, as Kubernetes' quantities say them; 0 if it is none."""
    found = _QUANTITY.fullmatch(quantity)
    if found is None:
        return 0
    number, exponent, suffix = found.groups()
    factor = _FACTORS[suffix] if suffix else Fraction(10) ** int(exponent or 0)
    return math.ceil(Fraction(number) * factor * 1000)


def slice_of(document: Mapping[str, Any]) -> Slice:
    """Return what an API's EndpointSlice says, of ``discovery.k8s.io/v1`` or of ``v1beta1``."""
    name = str((document.get("metadata") or {}).get("name", ""))
    return Slice(name, tuple(map(_endpoint_of, document.get("endpoints") or ())))


def _endpoint_of(document: Mapping[str, Any]) -> Endpoint:
    """Read one endpoint.

    Only the first address is used, as kube-proxy does. ``v1beta1`` has zone and node in ``topology``.
    """
    conditions, topology = document.get("conditions") or {}, document.get("topology") or {}
    hints = (document.get("hints") or {}).get("forZones") or ()
    return Endpoint(
        str((document.get("addresses") or [""])[0]),
        str(document.get("zone") or topology.get(ZONE_LABEL) or ""),
        str(document.get("nodeName") or topology.get("kubernetes.io/hostname") or ""),
        conditions.get("ready"),
        conditions.get("serving"),
        bool(conditions.get("terminating")),
        tuple(str(zone.get("name", "")) for zone in hints),
    )
