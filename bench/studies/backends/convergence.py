"""When packets arrive again, and when entries are gone: of probe streams and of the kernels' own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bench.studies.backends.index import Convergence, Size
from bench.studies.backends.records import Event, Nodes, Run

# A stretch of so many missing packets is an outage; fewer are loss, as on any full machine.
MISSING = 3
# A pair whose last packet came so many rounds before the end of what was looked at does not arrive.
SILENT_ROUNDS = 20
# A time says nothing if the probes were late meanwhile by more than this, and by more than a tenth of it.
LATE_S, LATE_SHARE = 0.02, 0.1


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


def too_late(event: Convergence) -> bool:
    """Tell whether the probes were too late for the time that it says."""
    return event.arrive_s is not None and event.late_s > max(LATE_S, LATE_SHARE * event.arrive_s)


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
