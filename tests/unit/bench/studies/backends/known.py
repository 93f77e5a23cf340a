"""Raw files of a study of backends, made up: numbers whose consequences can be told beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from bench.studies.backends.records import (
    Cost,
    DaemonUse,
    Entries,
    Event,
    Exchange,
    Exchanges,
    Flow,
    Nodes,
    Run,
    Streams,
    Throughput,
)
from bench.studies.machine import Meanwhile, Reading
from bench.studies.packets import Offered

MS = 1_000_000
SECOND = 1_000_000_000


def reading(seconds: float, busy: float = 0.0, stolen: float = 0.0) -> Reading:
    """Return a moment of a machine of two processors that were busy for so many seconds by then."""
    idle = 2 * seconds - busy - stolen
    ticks = [round(100 * value) for value in (busy, 0, 0, idle, 0, 0, 0, stolen)]
    lines = [f"cpu  {' '.join(map(str, ticks))} 0 0\n"]
    lines += [f"cpu{number} {' '.join(str(tick // 2) for tick in ticks)} 0 0\n" for number in range(2)]
    return Reading(ns=round(seconds * 1e9), stat="".join(lines))


def offered(
    busy: float,
    packets: int = 40_000,
    size: int = 64,
    rate: int = 10_000,
    idle: float = 0.0,
    after: float | None = None,
    stolen: float = 0.0,
    others: float | None = 0.0,
) -> Offered:
    """Return four seconds of packets; ``idle`` and ``after`` are processors that are busy without them.

    One second of the four is a single window, the other three another, which is alike for each packet.
    """
    late = idle if after is None else after
    return Offered(
        size=size,
        rate=rate,
        sent=packets,
        packets=[packets // 4, packets - packets // 4],
        idle=((reading(0), reading(1, idle)), (reading(6, 3), reading(7, 3 + late))),
        busy=[reading(2, 1), reading(3, 1 + busy / 4, stolen / 4), reading(6, 1 + busy, stolen)],
        others_s=others,
    )


def cost(*several: Offered, backend: str = "vxlan", number: int = 1) -> Cost:
    return Cost(backend=backend, round=number, offered=list(several))


def throughput(number: int, others: float | None = 0.0, **rates: Sequence[float]) -> Throughput:
    """Return a round of these flows, Gbit/s; an underscore in a backend's name is a hyphen."""
    beside = Meanwhile(readings=(reading(0), reading(1)), others_s=others)
    flows = [
        Flow(backend=name.replace("_", "-"), bits_per_second=rate * 1e9, beside=beside)
        for name, values in rates.items()
        for rate in values
    ]
    return Throughput(round=number, flows=flows)


def exchanges(*milliseconds: float | None, backend: str = "vxlan") -> Exchanges:
    """Return first exchanges with nodes that took so long; None: they did not end."""
    made = [
        Exchange(kind="node", to=f"node-{number}-pod", ns=None if took is None else round(took * MS))
        for number, took in enumerate(milliseconds)
    ]
    return Exchanges(backend=backend, round=1, exchanges=made)


def nodes(
    runs: Sequence[Sequence[Run]],
    events: Sequence[Event],
    changes: Sequence[tuple[int, int, str, str, str]] = (),
    backend: str = "vxlan",
    number: int = 4,
    late: Sequence[tuple[int, int]] = (),
    lost: bool = False,
    ended: int = 10 * SECOND,
) -> Nodes:
    """Return a cluster in which two nodes watch a third one."""
    return Nodes(
        backend=backend,
        nodes=number,
        up_s=1.5,
        rest=Entries(routes=3, neighbours=3, forwarding=3),
        talking=Entries(routes=3, neighbours=4, forwarding=3),
        daemons=[DaemonUse(name="a daemon", processes=4, bytes=8_000_000)],
        node="node-3",
        subnet="10.128.3.0/24",
        addresses=["10.200.0.14", "10.200.78.46"],
        watched=["node-1", "node-2"],
        events=list(events),
        streams=Streams(
            interval_ns=MS,
            begun_ns=0,
            ended_ns=ended,
            rounds=ended // MS,
            late=list(late),
            pairs=[("node-1", "node-3"), ("node-2", "node-3")][: len(runs)],
            runs=[list(each) for each in runs],
            errors=[[] for _ in runs],
        ),
        changes=list(changes),
        changes_lost=lost,
    )
