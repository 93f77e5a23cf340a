"""Rounds of the study of devices whose numbers are known."""

from __future__ import annotations

from collections.abc import Mapping

from bench.recording.records import Took
from bench.studies.devices.records import Exchanged, Flow, Round, Visit
from bench.studies.devices.ways import WAYS
from bench.studies.machine import Meanwhile, Reading
from bench.studies.packets import Offered

FLOW_S = 2.0
# Of each way: the median of its exchanges (ms), what a flow carries (Gbit/s), and how many of two processors
# it keeps busy meanwhile.
COSTS: Mapping[str, tuple[float, float, float]] = {
    "gateway": (0.2, 8.0, 1.0),
    "direct": (0.25, 8.0, 1.0),
    "host": (0.5, 4.0, 2.0),
    "translate": (0.26, 7.6, 1.1),
    "relay": (0.5, 2.0, 2.0),
    "translate-far": (0.3, 4.0, 1.2),
    "relay-far": (0.6, 2.0, 2.0),
}


def reading(seconds: float, busy_s: float) -> Reading:
    """Return a moment of a machine of two processors that were busy for so many seconds by then."""
    idle = 2 * seconds - busy_s
    lines = [f"cpu {busy_s * 100:.0f} 0 0 {idle * 100:.0f} 0 0 0 0 0 0\n"]
    lines += [f"cpu{n} {busy_s * 50:.0f} 0 0 {idle * 50:.0f} 0 0 0 0 0 0\n" for n in range(2)]
    return Reading(ns=round(seconds * 1e9), stat="".join(lines))


def offered(busy: float) -> Offered:
    """Return 20,000 packets a second for 2 s, for which so many processors were busy."""
    moments = [reading(1 + second, busy * second) for second in range(3)]
    idle = (reading(0, 0), reading(1, 0))
    return Offered(
        size=1400,
        rate=20_000,
        sent=40_000,
        packets=[20_000] * 2,
        idle=(idle, idle),
        busy=moments,
        others_s=0.0,
    )


def visit(way: str, slower: float = 1.0, others_s: float = 0.0, late_s: float = 0.0001) -> Visit:
    """Return a visit of a way; times are longer, and rates lower, by a factor."""
    p50_ms, gigabits, busy = COSTS[way]
    p50 = p50_ms * slower / 1000
    took = Took(p50_s=p50, p99_s=2 * p50, max_s=3 * p50)
    exchanged = [
        Exchanged(protocol=protocol, count=400, lost={}, took=took, late_p99_s=late_s)
        for protocol in ("tcp", "udp")
    ]
    beside = Meanwhile(readings=(reading(0, 0), reading(FLOW_S, FLOW_S * busy)), others_s=others_s)
    flow = Flow(bytes=round(gigabits * 1e9 / 8 * FLOW_S / slower), seconds=FLOW_S, beside=beside)
    return Visit(way=way, exchanged=exchanged, flow=flow, offered=offered(busy))


def rounds() -> list[Round]:
    """Return three rounds of all ways; the machine is slower from one to the next."""
    return [
        Round(round=number, visits=[visit(one.name, 1 + number / 10) for one in reversed(WAYS)])
        for number in (1, 2, 3)
    ]
