"""Which zones an endpoint is hinted for, or why no endpoint of a service is; pure.

Mode ``auto`` is Topology Aware Hints as Kubernetes publishes them (kubernetes/endpointslice, topologycache):
the same safeguards, words and arithmetic, down to float64. Where upstream takes what a Go map gives first,
the first name is taken. ``strict`` is ``auto`` in exact fractions that keeps what ``auto`` only checks for
beforehand: no endpoint is expected to carry more than 120 % of an even share. ``close`` is
``trafficDistribution: PreferClose``; ``nearest`` does without processors too, and sends zones without an
endpoint to the nearest that have one.

What is expected rests on upstream's assumption: zones ask in proportion to their processors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import NamedTuple, Optional, Union

from edge.services.endpoints import ZONE_LABEL, Endpoint, Node, Slice, ready_ones

OFF, AUTO, STRICT, CLOSE, NEAREST = "off", "auto", "strict", "close", "nearest"
MODES = (OFF, AUTO, STRICT, CLOSE, NEAREST)
# How far an endpoint may be above an even share (overloadThreshold); its inverse in each arithmetic.
MOST_LOAD = Fraction(6, 5)
_RELIEF, _EXACT_RELIEF = 1 / (1 + 0.2), 1 / MOST_LOAD

Number = Union[float, Fraction]
Delays = Mapping[tuple[str, str], float]  # seconds from one zone to another, said in either order
NO_DELAYS: Delays = {}
LIKE_DELAYS = "north:south=0.005,north:west=0.012"  # names of zones have no colon


class Safeguard(Enum):
    """Why a service has no hints, in upstream's words."""

    NODE_INFORMATION = (
        "Insufficient Node information: allocatable CPU or zone not specified on one or more nodes"
    )
    ONE_ZONE = "Nodes only ready in one zone"  # upstream has these words and says NODE_INFORMATION's
    TOO_FEW_ENDPOINTS = "Insufficient number of endpoints"
    OVERLOAD = (
        "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold"
    )
    NO_ZONE = "One or more endpoints do not have a zone specified"
    NO_ENDPOINTS = "No hints allocated for zones"


class Reason(NamedTuple):
    """A safeguard, and the numbers that made it so: upstream's, in brackets, and ours."""

    safeguard: Safeguard
    detail: str
    counts: str = ""

    def __str__(self) -> str:
        return f"{self.safeguard.value}{self.counts}: {self.detail}"


class Event(NamedTuple):
    """An event of a Service, as ``kubectl describe`` shows it."""

    type: str
    reason: str
    message: str


class Allocation(NamedTuple):
    """How many endpoints a zone is to have."""

    minimum: int
    maximum: int
    desired: Number


@dataclass(frozen=True)
class Result:
    """The slices with the hints that they are to have, and why they have none, if so."""

    slices: tuple[Slice, ...]
    why_not: Optional[Reason] = None  # noqa: UP045 (nodes may have Python 3.9)
    allocations: Mapping[str, Allocation] = field(default_factory=dict)

    @property
    def hinted(self) -> Counter[str]:
        """How many endpoints are hinted for each zone."""
        return Counter(zone for one in ready_ones(self.slices) for zone in one.hints)


def allocate(mode: str, nodes: Sequence[Node], slices: Sequence[Slice], delays: Delays = NO_DELAYS) -> Result:
    """Return the hints of a service's slices, which are of one address type.

    With ``auto`` and ``strict``, slices whose present hints are valid and that did not change keep them.
    ``delays`` are for ``nearest`` alone; a pair that it lacks is farther apart than any it has.
    """
    return _BY_MODE[mode](nodes, slices, delays)


def delays_of(text: str) -> Delays:
    """Return delays that are written like LIKE_DELAYS, or a line each. Raises ValueError."""
    found: dict[tuple[str, str], float] = {}
    for item in text.replace(",", " ").split():
        zones, _, seconds = item.partition("=")
        one, _, other = zones.partition(":")
        try:
            delay = float(seconds)
        except ValueError:
            delay = -1
        if not (one and other and 0 <= delay < math.inf):
            raise ValueError(f"{item[:60]!r} is not like {LIKE_DELAYS}")
        found[one, other] = delay
    return found


def event(result: Result, before: bool, address_type: str = "IPv4") -> Optional[Event]:  # noqa: UP045
    """Return what is to be said of a result; ``before`` says whether the service had hints until now."""
    if result.why_not is not None:
        safeguard, detail, counts = result.why_not
        message = f"{safeguard.value}{counts}, addressType: {address_type}: {detail}"
        return Event("Warning", "TopologyAwareHintsDisabled", message)
    if bool(result.hinted) == before:
        return None
    if before:
        message = f"Topology Aware Hints has been disabled, addressType: {address_type}"
        return Event("Warning", "TopologyAwareHintsDisabled", message)
    counts = listed(f"{count} for {zone}" for zone, count in sorted(result.hinted.items()))
    message = f"Topology Aware Hints has been enabled, addressType: {address_type}: {counts}"
    return Event("Normal", "TopologyAwareHintsEnabled", message)


def is_overloaded(hinted: Mapping[str, int], nodes: Sequence[Node], exact: bool = False) -> bool:
    """Whether hints that were right must be allocated again, now that nodes are others.

    They must be if a zone has too few of them, by the arithmetic of ``auto``, or of ``strict`` if ``exact``.
    A service without hints is not, as upstream, and waits for a change of its endpoints. Hints of ``close``
    know no processors, and those of ``nearest`` change with the set of zones: allocate them anew.
    """
    if not hinted:
        return False
    capacity = capacities(nodes)
    if isinstance(capacity, Reason):
        return True
    total = sum(hinted.values())
    return any(
        zone not in hinted or hinted[zone] < _least(total, share, exact)
        for zone, share in _ratios(capacity, exact).items()
    )


def capacities(nodes: Sequence[Node]) -> Union[dict[str, int], Reason]:  # noqa: UP007
    """Return the zones' thousandths of processors, or why they do not do for hints."""
    counted = [node for node in nodes if node.counts]
    missing = [
        f"{node.name} has no {what}"
        for node in counted
        for what, value in ((f"label {ZONE_LABEL}", node.zone), ("allocatable CPU", node.milli_cpu))
        if not value
    ]
    if missing or not counted:
        return Reason(Safeguard.NODE_INFORMATION, listed(missing) or "no node is ready")
    capacity: Counter[str] = Counter()
    for node in counted:
        capacity[node.zone] += node.milli_cpu
    if len(capacity) < 2:
        return Reason(Safeguard.ONE_ZONE, f"{counted[0].zone} has all {len(counted)} ready nodes")
    return dict(sorted(capacity.items()))


def moves(desired: Mapping[str, Number], have: Mapping[str, int]) -> tuple[Counter[str], Counter[str]]:
    """Return how many endpoints each zone gives to others, and how many each receives.

    One moves at a time, from the zone most above what it desires to the one most below, while it does one of
    them a whole endpoint's good and both at least half of one.
    """
    differences = {zone: have.get(zone, 0) - wanted for zone, wanted in sorted(desired.items())}
    giving = {zone: number for zone, number in differences.items() if number > 0}
    receiving = {zone: -number for zone, number in differences.items() if number < 0}
    gives: Counter[str] = Counter()
    receives: Counter[str] = Counter()
    while giving and receiving:
        giver, receiver = max(giving, key=giving.__getitem__), max(receiving, key=receiving.__getitem__)
        most, least = sorted((giving[giver], receiving[receiver]), reverse=True)
        if most < 1 or least < 0.5:
            break
        for zone, numbers, moved in ((giver, giving, gives), (receiver, receiving, receives)):
            numbers[zone] -= 1
            moved[zone] += 1
    return gives, receives


def listed(items: Sequence[str] | Iterator[str], most: int = 5) -> str:
    """Return items in a row; of many the first, and how many more there are."""
    items = list(items)
    more = [f"{len(items) - most} more"] if len(items) > most else []
    return ", ".join([*items[:most], *more])


def _off(_nodes: Sequence[Node], slices: Sequence[Slice], _delays: Delays) -> Result:
    return _without_hints(slices)


def _auto(nodes: Sequence[Node], slices: Sequence[Slice], _delays: Delays) -> Result:
    allocations = _allocations(nodes, slices, exact=False)
    if isinstance(allocations, Reason):
        return _without_hints(slices, allocations)
    kept = _kept(slices, allocations, one_each=False)
    return _shared(slices, allocations, kept, _as_published)


def _strict(nodes: Sequence[Node], slices: Sequence[Slice], _delays: Delays) -> Result:
    """Allocate as ``auto`` does, and then go on until each zone has its minimum.

    Kept slices may stand in the way of that: then none is kept. An endpoint that is hinted for several zones
    carries their sum, so its slice is not kept either.
    """
    allocations = _allocations(nodes, slices, exact=True)
    if isinstance(allocations, Reason):
        return _without_hints(slices, allocations)
    kept = _kept(slices, allocations, one_each=True)
    result = _shared(slices, allocations, kept, _with_minimums)
    if result.why_not is None and _lacking(allocations, result.hinted):
        return _shared(slices, allocations, set(), _with_minimums)
    return result


def _close(_nodes: Sequence[Node], slices: Sequence[Slice], _delays: Delays) -> Result:
    return _in_zones(slices, lambda one: (one.zone,))


def _nearest(nodes: Sequence[Node], slices: Sequence[Slice], delays: Delays) -> Result:
    """Hint each endpoint for its own zone, and for those without one that have none nearer."""
    having = sorted({one.zone for one in ready_ones(slices)})
    hinted: dict[str, list[str]] = {zone: [] for zone in having}
    for zone in sorted({node.zone for node in nodes if node.zone} | set(having)):
        apart = {other: _apart(zone, other, delays) for other in having}
        least = min(apart.values(), default=0)
        for other in (other for other in having if apart[other] == least):
            hinted[other].append(zone)
    return _in_zones(slices, lambda one: tuple(hinted[one.zone]))


_BY_MODE: Mapping[str, Callable[[Sequence[Node], Sequence[Slice], Delays], Result]] = {
    OFF: _off,
    AUTO: _auto,
    STRICT: _strict,
    CLOSE: _close,
    NEAREST: _nearest,
}


def _ratios(capacity: Mapping[str, int], exact: bool) -> dict[str, Number]:
    total = sum(capacity.values())
    return {zone: Fraction(cpu, total) if exact else cpu / total for zone, cpu in capacity.items()}


def _least(count: int, ratio: Number, exact: bool) -> int:
    """Return the fewest endpoints of ``count`` with which none of a zone is above the threshold."""
    return math.ceil(count * ratio * (_EXACT_RELIEF if exact else _RELIEF))


def _allocations(
    nodes: Sequence[Node], slices: Sequence[Slice], exact: bool
) -> Union[dict[str, Allocation], Reason]:  # noqa: UP007
    capacity = capacities(nodes)
    if isinstance(capacity, Reason):
        return capacity
    count = sum(1 for _ in ready_ones(slices))
    counts = f" ({count} endpoints, {len(capacity)} zones)"
    if len(capacity) > count:
        return Reason(Safeguard.TOO_FEW_ENDPOINTS, f"each of {listed(list(capacity))} needs one", counts)
    ratios = _ratios(capacity, exact)
    minimums = {zone: _least(count, ratio, exact) for zone, ratio in ratios.items()}
    spare = count - sum(minimums.values())
    if spare < 0:
        needs = listed(f"{zone} needs {least}" for zone, least in minimums.items())
        return Reason(Safeguard.OVERLOAD, f"{needs}: {count - spare} in all", counts)
    return {
        zone: Allocation(least, least + spare, max(ratios[zone] * count, least))
        for zone, least in minimums.items()
    }


def _kept(slices: Sequence[Slice], allocations: Mapping[str, Allocation], one_each: bool) -> set[int]:
    """Return which slices may stay as they are, by their place.

    All ready endpoints of one are hinted, for zones that have an allocation, and with those kept before it
    for none more than its maximum. What is not ready has no hint, or else it changed.
    """
    kept: set[int] = set()
    total: Counter[str] = Counter()
    for place, each in enumerate(slices):
        hinted = Counter(zone for one in ready_ones([each]) for zone in one.hints)
        if (
            not each.changed
            and all(bool(one.hints) == bool(one.ready) for one in each.endpoints)
            and not (one_each and any(len(one.hints) > 1 for one in each.endpoints))
            and all(zone in allocations for zone in hinted)
            and all(total[zone] + count <= allocations[zone].maximum for zone, count in hinted.items())
        ):
            kept.add(place)
            total += hinted
    return kept


def _shared(
    slices: Sequence[Slice],
    allocations: Mapping[str, Allocation],
    kept: set[int],
    redistribution: Callable[[Mapping[str, Allocation], Counter[str]], tuple[Counter[str], Counter[str]]],
) -> Result:
    """Hint endpoints for their own zones, then for others what is to be redistributed."""
    free = [each for place, each in enumerate(slices) if place not in kept]
    if nowhere := [one.address for one in ready_ones(free) if not one.zone]:
        return _without_hints(slices, Reason(Safeguard.NO_ZONE, listed(nowhere)))
    have = Counter(zone for place in kept for one in ready_ones([slices[place]]) for zone in one.hints)
    have.update(one.zone for one in ready_ones(free))
    gives, receives = redistribution(allocations, have)

    def zone_of(one: Endpoint) -> tuple[str, ...]:
        receiver = min(+receives, default="") if gives[one.zone] > 0 else ""
        if not receiver:
            return (one.zone,)
        gives[one.zone] -= 1
        receives[receiver] -= 1
        return (receiver,)

    hinted = (each if place in kept else _hinted(each, zone_of) for place, each in enumerate(slices))
    return Result(tuple(hinted), allocations=allocations)


def _as_published(
    allocations: Mapping[str, Allocation], have: Counter[str]
) -> tuple[Counter[str], Counter[str]]:
    return moves({zone: one.desired for zone, one in allocations.items()}, have)


def _with_minimums(
    allocations: Mapping[str, Allocation], have: Counter[str]
) -> tuple[Counter[str], Counter[str]]:
    """Redistribute as published, and then for as long as a zone is below its minimum.

    Zones without a node that counts desire nothing: who asked them would be nobody.
    """
    idle = {zone: Allocation(0, 0, 0) for zone in have if zone not in allocations}
    zones = {**allocations, **idle}
    gives, receives = _as_published(zones, have)
    count = have - gives + receives
    while lacking := _lacking(zones, count):
        above = {zone: count[zone] - one.desired for zone, one in zones.items() if count[zone] > one.minimum}
        below = {zone: zones[zone].desired - count[zone] for zone in lacking}
        count[max(sorted(above), key=above.__getitem__)] -= 1
        count[max(sorted(below), key=below.__getitem__)] += 1
    return have - count, count - have


def _lacking(allocations: Mapping[str, Allocation], have: Mapping[str, int]) -> list[str]:
    return [zone for zone, one in allocations.items() if have.get(zone, 0) < one.minimum]


def _in_zones(slices: Sequence[Slice], zones_of: Callable[[Endpoint], tuple[str, ...]]) -> Result:
    ready = list(ready_ones(slices))
    if not ready:
        return _without_hints(slices, Reason(Safeguard.NO_ENDPOINTS, "no endpoint is ready"))
    if nowhere := [one.address for one in ready if not one.zone]:
        return _without_hints(slices, Reason(Safeguard.NO_ZONE, listed(nowhere)))
    return Result(tuple(_hinted(each, zones_of) for each in slices))


def _hinted(each: Slice, zones_of: Callable[[Endpoint], tuple[str, ...]]) -> Slice:
    endpoints = (one._replace(hints=zones_of(one) if one.ready else ()) for one in each.endpoints)
    return Slice(each.name, tuple(endpoints))


def _without_hints(slices: Sequence[Slice], why_not: Optional[Reason] = None) -> Result:  # noqa: UP045
    return Result(tuple(_hinted(each, lambda _: ()) for each in slices), why_not)


def _apart(zone: str, other: str, delays: Delays) -> float:
    if zone == other:
        return -1  # whatever is told
    return min(delays.get((zone, other), math.inf), delays.get((other, zone), math.inf))
