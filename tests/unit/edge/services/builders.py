"""Zones by the processors of their nodes, and services by how many endpoints each zone has."""

from __future__ import annotations

from collections.abc import Sequence

from edge.services.endpoints import Endpoint, Node, Slice

ZONES = "abcdef"


def nodes(*milli_cpu: int) -> list[Node]:
    """Return a node for each of the zones a, b, c..., with so many thousandths of a processor."""
    return [Node(f"node-{zone}", zone, cpu) for zone, cpu in zip(ZONES, milli_cpu, strict=False)]


def service(*ready: int) -> list[Slice]:
    """Return a slice with so many ready endpoints of zone a, then of b, and so on: a-0, a-1, b-0."""
    return [Slice("web-1", tuple(endpoints("".join(z * n for z, n in zip(ZONES, ready, strict=False)))))]


def endpoints(zones: str) -> list[Endpoint]:
    """Return ready endpoints of these zones in this order, one a letter."""
    return [Endpoint(f"{zone}-{zones[:at].count(zone)}", zone) for at, zone in enumerate(zones)]


def hints(slices: Sequence[Slice]) -> dict[str, str]:
    """Return each endpoint's zones, written without a space."""
    return {one.address: "".join(one.hints) for each in slices for one in each.endpoints}
