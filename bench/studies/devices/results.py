"""What the files in ``measured/`` amount to; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from bench.studies.devices.index import Measured
from bench.studies.devices.records import Exchanged, Round, Visit
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
    visits = [(one.round, {visit.way: visit for visit in one.visits}) for one in rounds]
    return [_measured(way, visits) for way in NAMES if any(way in one for _, one in visits)]


def _measured(way: str, rounds: Sequence[tuple[int, dict[str, Visit]]]) -> Measured:
    own = [(number, one[way]) for number, one in rounds if way in one]

    def spread(value: Value) -> Spread | None:
        return Spread.of(found for _, one in own if (found := value(one)) is not None)

    def of(other: str, value: Value) -> Spread | None:
        """Return the values as shares of another way's, round by round."""
        pairs = [(value(one[way]), value(one[other])) for _, one in rounds if way in one and other in one]
        return Spread.of(mine / theirs for mine, theirs in pairs if mine is not None and theirs)

    def times(percentile: Callable[[Exchanged], float | None]) -> dict[str, Spread]:
        found = {protocol: spread(partial(_exchanged, protocol, percentile)) for protocol in ("tcp", "udp")}
        return {protocol: one for protocol, one in found.items() if one is not None}

    exchanged = [one for _, visit in own for one in visit.exchanged]
    return Measured(
        way=way,
        p50_s=times(lambda one: one.took.p50_s),
        p99_s=times(lambda one: one.took.p99_s),
        lost=sum(sum(one.lost.values()) for one in exchanged),
        exchanges=sum(one.count for one in exchanged),
        bits_per_second=spread(_rate),
        per_gigabyte_s=spread(per_gigabyte),
        per_packet_ns=spread(_per_packet),
        p50_of_direct=of(DIRECT, partial(_exchanged, "tcp", lambda one: one.took.p50_s)),
        rate_of_direct=of(DIRECT, _rate),
        cost_of_relay=of(RELAY, per_gigabyte),
        invalid=[f"round {number}: {words}" for number, one in own for words in faults(one)],
    )


def _exchanged(protocol: str, percentile: Callable[[Exchanged], float | None], visit: Visit) -> float | None:
    """Return a percentile of the exchanges by a protocol, seconds; None: they were lost, or are invalid."""
    (one,) = (each for each in visit.exchanged if each.protocol == protocol)
    return None if _late(one) else percentile(one)


def _rate(visit: Visit) -> float | None:
    flow = visit.flow
    return None if any(neighbours(flow.beside)) else flow.bytes * 8 / flow.seconds


def per_gigabyte(visit: Visit) -> float | None:
    """Return the processors' time for 10^9 bytes, in seconds of one processor; None if the flow is invalid.

    All that was busy while the flow was under way counts, both of its ends with it.
    """
    flow = visit.flow
    if any(neighbours(flow.beside)):
        return None
    return spent(*flow.beside.readings).busy_s / flow.bytes * GIGABYTE


def _per_packet(visit: Visit) -> float | None:
    return None if any(packet_faults(visit.offered)) else per_packet_ns(visit.offered)


def _late(one: Exchanged) -> float | None:
    return too_late(Late(one.late_p99_s, one.late_s), one.took)


def faults(visit: Visit) -> Iterator[str]:
    """Yield, in words, why the machine was not as it should be: each is about one number of the visit."""
    for one in visit.exchanged:
        if late := _late(one):
            yield f"{one.protocol}: the generator was {late * 1000:.1f} ms late"
    yield from (f"the flow: {words}" for words in neighbours(visit.flow.beside))
    yield from packet_faults(visit.offered)
