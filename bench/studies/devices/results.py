"""What the files in ``measured/`` amount to; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from bench.studies.devices.index import Measured
from bench.studies.devices.records import Exchanged, Flow, Round, Visit
from bench.studies.devices.ways import DIRECT, NAMES, RELAY
from bench.studies.machine import neighbours, spent
from bench.studies.packets import faults as packet_faults
from bench.studies.packets import per_packet_ns
from bench.studies.study import Spread
from bench.studies.timed import Late, too_late

GIGABYTE = 1e9

Value = Callable[[Visit], float | None]


def summed_up(rounds: Iterable[Round]) -> list[Measured]:
    """Return what was measured of each way."""
    valid: dict[int, dict[str, Visit]] = {}
    invalid: dict[str, list[str]] = {}
    every: dict[str, list[Visit]] = {}
    for one in rounds:
        for visit in one.visits:
            every.setdefault(visit.way, []).append(visit)
            words = [f"round {one.round}: {word}" for word in faults(visit)]
            invalid.setdefault(visit.way, []).extend(words)
            if not words:
                valid.setdefault(one.round, {})[visit.way] = visit
    return [_measured(way, every[way], [*valid.values()], invalid[way]) for way in NAMES if way in every]


def _measured(
    way: str, every: Sequence[Visit], rounds: Sequence[dict[str, Visit]], invalid: list[str]
) -> Measured:
    own = [one[way] for one in rounds if way in one]

    def of(other: str, value: Value) -> Spread | None:
        """Return the values as shares of another way's, round by round."""
        pairs = [(value(one[way]), value(one[other])) for one in rounds if way in one and other in one]
        return Spread.of(mine / theirs for mine, theirs in pairs if mine is not None and theirs)

    return Measured(
        way=way,
        p50_s=_percentiles(own, lambda one: one.took.p50_s),
        p99_s=_percentiles(own, lambda one: one.took.p99_s),
        lost=sum(sum(one.lost.values()) for visit in every for one in visit.exchanged),
        exchanges=sum(one.count for visit in every for one in visit.exchanged),
        bits_per_second=Spread.of(_rate(one) for one in own),
        per_gigabyte_s=Spread.of(per_gigabyte(one.flow) for one in own),
        per_packet_ns=Spread.of(per_packet_ns(one.offered) for one in own),
        p50_of_direct=of(DIRECT, p50),
        rate_of_direct=of(DIRECT, _rate),
        cost_of_relay=of(RELAY, lambda one: per_gigabyte(one.flow)),
        invalid=invalid,
    )


def _percentiles(visits: Sequence[Visit], which: Callable[[Exchanged], float | None]) -> dict[str, Spread]:
    found: dict[str, list[float]] = {}
    for visit in visits:
        for one in visit.exchanged:
            if (value := which(one)) is not None:
                found.setdefault(one.protocol, []).append(value)
    return {protocol: spread for protocol, values in found.items() if (spread := Spread.of(values))}


def p50(visit: Visit) -> float | None:
    """Return the median of a visit's new exchanges by TCP, seconds."""
    return next((one.took.p50_s for one in visit.exchanged if one.protocol == "tcp"), None)


def _rate(visit: Visit) -> float:
    return visit.flow.bytes * 8 / visit.flow.seconds


def per_gigabyte(flow: Flow) -> float:
    """Return the processors' time for 10^9 bytes, in seconds of one processor.

    All that was busy while the flow was under way counts, both of its ends with it.
    """
    return spent(*flow.beside.readings).busy_s / flow.bytes * GIGABYTE


def faults(visit: Visit) -> Iterator[str]:
    """Yield, in words, why the machine was not as it should be."""
    for one in visit.exchanged:
        if late := too_late(Late(one.late_p99_s, one.late_s), one.took):
            yield f"{one.protocol}: the generator was {late * 1000:.1f} ms late"
    yield from (f"the flow: {words}" for words in neighbours(visit.flow.beside))
    yield from packet_faults(visit.offered)
