"""What was measured of backends comes to: what packets and exchanges cost, and how soon a change is known.

What packets cost and a flow carries is the machine's, so it holds only where nothing else was at work.

What a user waits for counts from when a request was due, in a report as in a verdict. Here nothing else is
under way, no request waits for the one before, and what is asked is the datapath's own share: it counts from
when the request was sent; how late the generator was stands beside it. When packets arrive again, and when
entries are gone, probe streams say, and the kernels' own words.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence

from bench.analysis import exchanges
from bench.analysis.exchanges import ANSWERED
from bench.analysis.phases import QUIET
from bench.analysis.statistics import percentile
from bench.recording.directory import Recording
from bench.studies.backends.index import Convergence, First, PacketCost, RoundTrip, Size
from bench.studies.backends.records import (
    Cost,
    Event,
    Exchange,
    Exchanges,
    Nodes,
    Run,
    Throughput,
)
from bench.studies.machine import neighbours
from bench.studies.packets import faults, per_packet_ns
from bench.studies.study import Spread


def packet_costs(rounds: Sequence[Cost]) -> list[PacketCost]:
    """Return the cost for each size and rate, over all rounds of one backend."""
    kinds = dict.fromkeys((one.size, one.rate) for cost in rounds for one in cost.offered)
    return [_packet_cost(size, rate, rounds) for size, rate in kinds]


def _packet_cost(size: int, rate: int, rounds: Sequence[Cost]) -> PacketCost:
    found, invalid = [], []
    for cost in rounds:
        for one in cost.offered:
            if (one.size, one.rate) != (size, rate):
                continue
            if words := list(faults(one)):
                invalid += [f"round {cost.round}: {word}" for word in words]
            else:
                found.append(per_packet_ns(one))
    return PacketCost(size=size, rate=rate, ns=Spread.of(found), invalid=invalid)


def throughputs(rounds: Iterable[Throughput]) -> tuple[dict[str, dict[int, float]], list[str]]:
    """Return each backend's median rate of each round, in bits per second; and what is not valid, in words.

    A round counts as a whole or not at all: what is compared was measured side by side.
    """
    found: dict[str, dict[int, float]] = {}
    invalid = []
    for one in rounds:
        words = [
            f"round {one.round}: {flow.backend}: {word}"
            for flow in one.flows
            for word in neighbours(flow.beside)
        ]
        invalid += words
        if words:
            continue
        for backend in dict.fromkeys(flow.backend for flow in one.flows):
            rates = [flow.bits_per_second for flow in one.flows if flow.backend == backend]
            found.setdefault(backend, {})[one.round] = statistics.median(rates)
    return found, invalid


def shares(of: Mapping[int, float], other: Mapping[int, float]) -> Spread | None:
    """Return what one backend carried as a share of another, round by round."""
    return Spread.of(of[number] / other[number] for number in of.keys() & other.keys())


def firsts(rounds: Iterable[Exchanges]) -> list[First]:
    """Return the percentiles of each kind, over all rounds of one backend."""
    all_of_them = [one for each in rounds for one in each.exchanges]
    kinds = dict.fromkeys(one.kind for one in all_of_them)
    return [first for kind in kinds if (first := _first([one for one in all_of_them if one.kind == kind]))]


def _first(exchanges: list[Exchange]) -> First | None:
    took = [one.ns for one in exchanges if one.ns is not None]
    if not took:
        return None
    return First(
        kind=exchanges[0].kind,
        p50_ns=percentile(took, 0.5),
        p95_ns=percentile(took, 0.95),
        count=len(exchanges),
        failed=len(exchanges) - len(took),
    )


def round_trips(recording: Recording) -> list[RoundTrip]:
    """Return each kind of requests of a recording. Raises StoredError and ScenarioError."""
    scenario = recording.scenario()
    table = exchanges.read(recording, scenario, recording.run_record()).exchanges
    quiet = table[table["phase"] == QUIET]
    found = []
    for requests in scenario.requests:
        own = quiet[quiet["requests"] == requests.label]
        answered = own[own["status"] == ANSWERED]
        took = (answered["answered_s"] - answered["sent_s"]).tolist()
        late = (own["sent_s"] - own["due_s"]).tolist()
        found.append(
            RoundTrip(
                name=requests.label,
                p50_s=round(percentile(took, 0.5), exchanges.DIGITS) if took else None,
                p99_s=round(percentile(took, 0.99), exchanges.DIGITS) if took else None,
                late_p99_s=round(percentile(late, 0.99), exchanges.DIGITS) if late else None,
                lost=len(own) - len(answered),
                count=len(own),
            )
        )
    return found


# A stretch of so many missing packets is an outage; fewer are loss, as on any full machine.
MISSING = 3
# A pair whose last packet came so many rounds before the end of what was looked at does not arrive.
SILENT_ROUNDS = 20


def size(nodes: Nodes) -> Size:
    """Return what was measured of a cluster of so many nodes."""
    rest, talking, streams = nodes.rest, nodes.talking, nodes.streams
    real = (streams.ended_ns - streams.begun_ns) / max(streams.rounds, 1) / 1e6
    return Size(
        nodes=nodes.nodes,
        up_s=nodes.up_s,
        rest=rest.routes + rest.neighbours + rest.forwarding,
        talking=talking.routes + talking.neighbours + talking.forwarding,
        daemon_bytes=sum(one.bytes for one in nodes.daemons),
        daemons=sum(one.processes for one in nodes.daemons),
        interval_ms=round(real, 3),
        events=[_event(nodes, event, until) for event, until in _windows(nodes)],
        invalid=["the kernel had more to say of entries than was read"] if nodes.changes_lost else [],
    )


def _windows(nodes: Nodes) -> Iterator[tuple[Event, int]]:
    """Yield each event with the moment up to which its consequences are looked at: the next one's."""
    ends = [*(event.begun_ns for event in nodes.events[1:]), nodes.streams.ended_ns]
    yield from zip(nodes.events, ends, strict=False)


def _event(nodes: Nodes, event: Event, until: int) -> Convergence:
    arrive = arrival_ns(nodes.streams.runs, event.begun_ns, until, nodes.streams.interval_ns)
    gone = gone_ns(nodes, event.begun_ns, until)
    looked = until if arrive is None else event.begun_ns + arrive
    late = [by for moment, by in nodes.streams.late if event.begun_ns <= moment <= looked + by]
    return Convergence(
        event=event.name,
        late_s=max(late, default=0) / 1e9,
        arrive_s=None if arrive is None else arrive / 1e9,
        gone_s=None if gone is None else gone / 1e9,
        given_s=(until - event.begun_ns) / 1e9,
    )


def arrival_ns(pairs: Sequence[Sequence[Run]], begun: int, until: int, interval: int) -> int | None:
    """Return how long after ``begun`` the packets of every pair arrive again, up to ``until``.

    0 if they never ceased to; None if those of some pair do not arrive in the end.
    """
    slowest = 0
    for runs in pairs:
        arrived = _again(runs, begun, until, interval)
        if arrived is None:
            return None
        slowest = max(slowest, arrived - begun)
    return slowest


def _again(runs: Sequence[Run], begun: int, until: int, interval: int) -> int | None:
    """Return when the last outage of a pair that ends between two moments ended; ``begun`` without one."""
    seen = [run for run in runs if run[1] <= until]
    if not seen or (seen[-1][3] < until - SILENT_ROUNDS * interval):
        return None
    ends = [begun]
    for number, run in enumerate(seen):
        missing = run[0] - (seen[number - 1][2] + 1 if number else 0)
        if missing >= MISSING and run[1] > begun:
            ends.append(run[1])
    return max(ends)


def gone_ns(nodes: Nodes, begun: int, until: int) -> int | None:
    """Return how long after ``begun`` every other node had lost the entry that leads to the node's pods.

    None if some of them kept it up to ``until``.
    """
    led_to = {("route", nodes.subnet), *(("forwarding", address) for address in nodes.addresses)}
    first: dict[int, int] = {}
    for moment, place, what, kind, where in nodes.changes:
        if what == "del" and (kind, where) in led_to and begun <= moment < until:
            first.setdefault(place, moment)
    if len(first) < len(nodes.watched):
        return None
    return max(first.values(), default=begun) - begun
