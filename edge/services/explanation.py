"""Why a service has the hints that it has: who serves whom, what is in the way, what would change it; pure.

What would change it is found by trying: the same allocation, of a service or of nodes that are a little
different. What is expected rests on what hints assume: zones ask in proportion to their processors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, Optional

from edge.services.annotations import Version, Wish
from edge.services.endpoints import Endpoint, Node, Slice, ready_ones
from edge.services.hints import MODES, MOST_LOAD, NO_DELAYS, OFF, Delays, Reason, Result, allocate, listed
from edge.services.selection import CLUSTER, LOCAL, Policies, Why, choose, distinct


class Expectation(NamedTuple):
    """What a service's endpoints are expected to carry, and how many requests leave their zone (shares)."""

    loads: Mapping[str, Fraction]  # by address; 1 is an even share
    away: Fraction

    @property
    def busiest(self) -> Fraction:
        """The load of the endpoint that carries most."""
        return max(self.loads.values(), default=Fraction(0))


class Row(NamedTuple):
    """One zone: what it has, and which zones' endpoints its proxies use."""

    zone: str
    nodes: int
    ready_nodes: int  # that count for its processors
    milli_cpu: int
    share: Fraction  # of all requests
    endpoints: int  # that are ready
    hinted: int
    minimum: int  # of hinted endpoints; 0 if none is asked
    served_by: Mapping[str, int]
    why: Why
    busiest: Fraction  # of the endpoints that its proxies use


class Remedy(NamedTuple):
    """A change after which there are hints and no endpoint above the threshold."""

    what: str
    expected: Expectation


@dataclass(frozen=True)
class Explanation:
    """All that is to be said of a service's hints; ``pending`` if they are not yet what they should be."""

    mode: str
    rows: Sequence[Row]
    why_not: Optional[Reason]  # noqa: UP045 (nodes may have Python 3.9)
    pending: bool
    expected: Expectation
    remedies: Sequence[Remedy]


class Report(NamedTuple):
    """A Service, what it asks for, why it has which hints for each kind of addresses, and what else is so."""

    service: str  # namespace/name
    version: Version
    wish: Wish
    explained: Mapping[str, Explanation]
    notes: Sequence[str]


def explain(
    mode: str,
    nodes: Sequence[Node],
    slices: Sequence[Slice],
    delays: Delays = NO_DELAYS,
    policies: Policies = CLUSTER,
) -> Explanation:
    """Explain the hints that a service's slices have now, in the light of those that they should have."""
    result = allocate(mode, nodes, slices, delays)
    expected = expectation(mode, nodes, slices, policies)
    good = mode != OFF and result.why_not is None and expected.busiest <= MOST_LOAD
    return Explanation(
        mode,
        [_row(zone, mode, nodes, slices, result, policies) for zone in _zones(nodes, slices)],
        result.why_not,
        [each.endpoints for each in result.slices] != [each.endpoints for each in slices],
        expected,
        [] if good or LOCAL in policies else list(_remedies(mode, nodes, slices, delays)),
    )


def expectation(
    mode: str, nodes: Sequence[Node], slices: Sequence[Slice], policies: Policies = CLUSTER
) -> Expectation:
    """Return what endpoints are expected to carry with the hints that they have; nothing if policies say."""
    if policies.internal == LOCAL:
        return Expectation({}, Fraction(0))
    endpoints = distinct(slices)
    everyone = choose(endpoints, "", False).endpoints
    loads = {one.address: Fraction(0) for one in everyone}
    away = Fraction(0)
    for zone, share in _shares(nodes).items():
        chosen = choose(endpoints, zone, mode != OFF, policies=policies).endpoints
        for one in chosen:
            loads[one.address] += share * len(everyone) / len(chosen)
            away += share / len(chosen) if one.zone != zone else 0
    return Expectation(loads, away)


def lines(explained: Explanation) -> Iterator[str]:
    """Return an explanation as the lines of a text: a table of the zones, and what is to be said below it."""
    table = [
        ("zone", "nodes", "CPU", "requests", "endpoints", "hinted", "least", "served by", "busiest"),
        *map(_cells, explained.rows),
    ]
    widths = [max(map(len, column)) for column in zip(*table)]
    for cells in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths)).rstrip()
    if explained.why_not is not None:
        yield f"no hints: {explained.why_not}"
    if explained.pending:
        yield "hints are not yet what they should be"
    for why, zones in _ignored(explained.rows).items():
        yield f"{listed(zones)}: {why.value}"
    for what, then in (("expected", explained.expected), *explained.remedies):
        yield f"{what}: busiest endpoint at {percent(then.busiest)}, {percent(then.away)} leave their zone"


def percent(share: Fraction) -> str:
    """Return a share as people write it."""
    return f"{float(share):.0%}".replace("%", " %")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.zone,
        f"{row.ready_nodes}/{row.nodes}",
        f"{row.milli_cpu / 1000:g}",
        percent(row.share),
        str(row.endpoints),
        str(row.hinted),
        str(row.minimum or "-"),
        listed(f"{count} of {zone}" for zone, count in sorted(row.served_by.items())) or "-",
        percent(row.busiest),
    )


def _ignored(rows: Sequence[Row]) -> dict[Why, list[str]]:
    """Return why zones' proxies do not follow hints, and which zones."""
    found: dict[Why, list[str]] = {}
    for row in rows:
        if row.why not in (Why.HINTED, Why.OFF):
            found.setdefault(row.why, []).append(row.zone)
    return found


def _zones(nodes: Sequence[Node], slices: Sequence[Slice]) -> list[str]:
    found = {node.zone for node in nodes} | {one.zone for one in ready_ones(slices)}
    return sorted(found - {""})


def _shares(nodes: Sequence[Node]) -> dict[str, Fraction]:
    """Return which share of requests comes from each zone, by its processors; by nodes if any says none."""
    counted = [node for node in nodes if node.counts]
    known = all(node.milli_cpu for node in counted)
    weights: Counter[str] = Counter()
    for node in counted:
        weights[node.zone] += node.milli_cpu if known else 1
    total = sum(weights.values())
    return {zone: Fraction(weight, total) for zone, weight in sorted(weights.items())}


def _row(
    zone: str, mode: str, nodes: Sequence[Node], slices: Sequence[Slice], result: Result, policies: Policies
) -> Row:
    there = [node for node in nodes if node.zone == zone]
    counted = [node for node in there if node.counts]
    ready = list(ready_ones(slices))
    loads = expectation(mode, nodes, slices, policies).loads
    chosen = choose(distinct(slices), zone, mode != OFF, policies=policies)
    if policies.internal == LOCAL:  # which ones depends on the node, not on the zone
        chosen = chosen._replace(endpoints=(), why=Why.ON_NODE)
    return Row(
        zone,
        len(there),
        len(counted),
        sum(node.milli_cpu for node in counted),
        _shares(nodes).get(zone, Fraction(0)),
        sum(one.zone == zone for one in ready),
        sum(zone in one.hints for one in ready),
        result.allocations[zone].minimum if zone in result.allocations else 0,
        Counter(one.zone for one in chosen.endpoints),
        chosen.why,
        max((loads[one.address] for one in chosen.endpoints), default=Fraction(0)),
    )


def _remedies(mode: str, nodes: Sequence[Node], slices: Sequence[Slice], delays: Delays) -> Iterator[Remedy]:
    """Try what could help: one change at a time."""
    for what, changed_mode, changed_nodes, changed_slices in (
        *_with_all_nodes(mode, nodes, slices),
        *_with_other_modes(mode, nodes, slices),
    ):
        if then := _good(changed_mode, changed_nodes, changed_slices, delays):
            yield Remedy(what, then)
    for more in _more_endpoints(nodes, slices):
        if then := _good(mode, nodes, [*slices, more], delays):
            counts = Counter(one.zone for one in more.endpoints)
            where = listed(f"{count} in {zone}" for zone, count in sorted(counts.items()))
            yield Remedy(f"with more ready endpoints, {where}", then)
            return


def _good(mode: str, nodes: Sequence[Node], slices: Sequence[Slice], delays: Delays) -> Optional[Expectation]:  # noqa: UP045
    """Return what is expected if there were hints then, none above the threshold; else None."""
    result = allocate(mode, nodes, slices, delays)
    expected = expectation(mode, nodes, result.slices)
    return expected if result.hinted and expected.busiest <= MOST_LOAD else None


def _with_all_nodes(
    mode: str, nodes: Sequence[Node], slices: Sequence[Slice]
) -> Iterator[tuple[str, str, Sequence[Node], Sequence[Slice]]]:
    gone = [node.name for node in nodes if not node.ready]
    if gone:
        yield f"with {listed(gone)} ready", mode, [node._replace(ready=True) for node in nodes], slices


def _with_other_modes(
    mode: str, nodes: Sequence[Node], slices: Sequence[Slice]
) -> Iterator[tuple[str, str, Sequence[Node], Sequence[Slice]]]:
    for other in MODES:
        if other not in (OFF, mode):
            yield f"with mode {other}", other, nodes, slices


def _more_endpoints(nodes: Sequence[Node], slices: Sequence[Slice]) -> Iterator[Slice]:
    """Return slices to be added, of ever more endpoints, each where most are missing of an even share.

    With six endpoints a zone the minimums fit, whatever the processors: a sum of ceil(5/6 x) is at most
    5/6 of the sum, and one for each zone.
    """
    shares = {zone: share for zone, share in _shares(nodes).items() if zone}
    have = Counter(one.zone for one in ready_ones(slices))
    count = sum(have.values())
    for more in range(1, max(1, 6 * len(shares) - count) + 1 if shares else 0):
        there, added = have.copy(), []
        for number in range(more):
            missing = {zone: share * (count + more) - there[zone] for zone, share in shares.items()}
            zone = max(missing, key=missing.__getitem__)
            there[zone] += 1
            added.append(Endpoint(f"{zone}/{number}", zone))
        yield Slice("", tuple(added))
