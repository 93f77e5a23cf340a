"""What flows got, held against what they were promised: in between, too little, or too much.

Too little may be the machine's fault, and then proves nothing. Too much never is: a machine that is short of
time carries less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bench.analysis import ceilings
from bench.analysis.summary import FlowSummary
from bench.studies.promise.check import Found, Judgement, Number, Ran, Short, together
from testbed.scenario.units import format_bps, format_share, unit_for

# Of what is expected. Nobody promises the last percent. The most is what any run is judged by.
LEAST, MOST = 0.9, ceilings.MOST


class Band(NamedTuple):
    """Which share of what is expected counts as kept."""

    least: float = LEAST
    most: float = MOST


KEPT = Band()


class Got(NamedTuple):
    """One flow in one repetition."""

    flow: str
    expected_bps: float  # payload
    observed_bps: float


def got(ran: Ran, flow: str, repetition: int, expected_bps: float | None = None) -> Got | None:
    """Return the mean of a flow's judged part; None if there is none.

    ``expected_bps`` is what it shall get, if that does not follow from its sender's promise.
    """
    found = ran.flow(flow)
    expected = expected_bps or (found.expected_goodput_bps if found else None)
    measured = _mean(found, repetition) if found else None
    return None if measured is None or expected is None else Got(flow, expected, measured)


def _mean(flow: FlowSummary, repetition: int) -> float | None:
    """Return the mean over all phases of a repetition, by their samples."""
    parts = [
        one for phase in flow.phases.values() for one in phase.repetitions if one.repetition == repetition
    ]
    samples = sum(one.samples for one in parts)
    return sum(one.mean_bps * one.samples for one in parts) / samples if samples else None


def judge(
    runs: Mapping[str, Ran],
    flows: Sequence[tuple[str, str, int]],
    band: Band = KEPT,
    expected_bps: float | None = None,
) -> Judgement:
    """Return whether flows got what they shall: each a run's name, the flow's label, and the repetition.

    ``expected_bps`` is what each of them shall get, if that does not follow from its sender's promise.
    """
    found: list[tuple[Found, str]] = []
    numbers: list[Number] = []
    short: list[Short] = []
    for run, flow, repetition in flows:
        ran = runs[run]
        one = got(ran, flow, repetition, expected_bps)
        if one is None:
            found.append(("invalid", f"{flow}: {_doubt(ran, flow, repetition) or 'nothing was measured'}"))
            continue
        least, most = (round(share * one.expected_bps, 1) for share in band)
        numbers.append(Number(one.flow, round(one.observed_bps, 1), "bit/s", least, most))
        found.append(_state(ran, one, repetition, band))
        if found[-1][0] == "violated":
            short.extend(_outside(ran, run, one, repetition, band))
    return together(found, numbers, short)


def _state(ran: Ran, one: Got, repetition: int, band: Band) -> tuple[Found, str]:
    share = one.observed_bps / one.expected_bps
    unit = unit_for([one.expected_bps])
    words = (
        f"{one.flow}: {format_bps(one.observed_bps, unit)}, {format_share(share)} of the expected "
        f"{format_bps(one.expected_bps, unit)}"
    )
    if share > band.most:
        return "violated", words
    short = share < band.least
    doubt = _doubt(ran, one.flow, repetition, but=() if short else ("machine",))
    if doubt:
        return "invalid", f"{words}; {doubt}"
    return "violated" if short else "held", words


def _doubt(ran: Ran, flow: str, repetition: int, but: Sequence[str] = ()) -> str | None:
    """Return what speaks against a run, or against what it says of a flow in one repetition.

    But what is of some kinds: a busy machine excuses too little, and says nothing against enough.
    """
    return next(
        (
            cause.text
            for cause in ran.summary.causes
            if cause.kind not in ("promise", *but)
            and cause.flow in (None, flow)
            and cause.repetition in (None, repetition)
        ),
        None,
    )


def _outside(ran: Ran, run: str, one: Got, repetition: int, band: Band) -> list[Short]:
    """Return the stretches in which a flow's samples were outside, neighbours joined."""
    least, most = (share * one.expected_bps for share in band)
    stretches: list[Short] = []
    for row in ran.warm(one.flow, repetition).itertuples():
        if least <= row.bits_per_second <= most:
            continue
        if stretches and abs(stretches[-1].end_s - row.start_s) < ran.scenario.measurement.interval / 2:
            begun = stretches.pop().start_s
        else:
            begun = float(row.start_s)
        stretches.append(Short(run, one.flow, repetition, begun, float(row.end_s)))
    return stretches
