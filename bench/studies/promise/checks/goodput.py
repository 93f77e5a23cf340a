"""What flows got, held against what they were promised: in between, too little, or too much.

Too little may be the machine's fault, and then proves nothing. Too much never is: a machine that is short of
time carries less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.analysis import ceilings
from bench.analysis.summary import FlowSummary
from bench.observations.causes import Cause
from bench.studies.promise.check import Found, Judgement, Number, Ran, Short
from testbed.scenario.units import format_bps, format_share, unit_for

# Of what is expected. Nobody promises the last percent. The most is what any run is judged by.
LEAST, MOST = 0.9, ceilings.MOST


@dataclass(frozen=True)
class Band:
    """Which share of what is expected counts as kept."""

    least: float | None = LEAST
    most: float | None = MOST


@dataclass(frozen=True)
class Got:
    """One flow in one repetition."""

    flow: str
    expected_bps: float  # payload
    observed_bps: float


def got(ran: Ran, flow: str, repetition: int, expected_bps: float | None = None) -> Got | None:
    """Return the mean of a flow's judged part; None if there is none.

    ``expected_bps`` is what it shall get, if that does not follow from its sender's promise.
    """
    found = next((one for one in ran.summary.flows if one.name == flow), None)
    expected = expected_bps or (found.expected_goodput_bps if found else None)
    if found is None or expected is None:
        return None
    measured = _mean(found, repetition)
    return None if measured is None else Got(flow, expected, measured)


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
    band: Band | None = None,
    expected_bps: float | None = None,
) -> Judgement:
    """Return whether flows got what they shall: each a run's name, the flow's label, and the repetition.

    ``expected_bps`` is what each of them shall get, if that does not follow from its sender's promise.
    """
    band = band or Band()
    found: list[tuple[Found, str]] = []
    numbers: list[Number] = []
    short: list[Short] = []
    for run, flow, repetition in flows:
        ran = runs[run]
        if ran.recording is None:
            found.append(("invalid", f"not run: {ran.reason}"))
            continue
        one = got(ran, flow, repetition, expected_bps)
        if one is None:
            found.append(("invalid", f"{flow}: {_why(ran, flow, repetition) or 'nothing was measured'}"))
            continue
        numbers.append(_number(one, band))
        state, words = _state(ran, one, repetition, band)
        found.append((state, words))
        if state == "violated":
            short.extend(_outside(ran, run, one, repetition, band))
    state = worst([state for state, _ in found])
    told = [words for each, words in found if each == state]
    return Judgement(state, "; ".join(told), numbers, short)


def worst(found: Sequence[Found]) -> Found:
    """Return what several answers amount to: one that is violated decides, then one that is invalid."""
    return next((state for state in ("violated", "invalid") if state in found), "held")


def _number(one: Got, band: Band) -> Number:
    def share(of: float | None) -> float | None:
        return None if of is None else round(of * one.expected_bps, 1)

    return Number(one.flow, round(one.observed_bps, 1), "bit/s", share(band.least), share(band.most))


def _state(ran: Ran, one: Got, repetition: int, band: Band) -> tuple[Found, str]:
    share = one.observed_bps / one.expected_bps
    unit = unit_for([one.expected_bps])
    words = (
        f"{one.flow}: {format_bps(one.observed_bps, unit)}, {format_share(share)} of the expected "
        f"{format_bps(one.expected_bps, unit)}"
    )
    if band.most is not None and share > band.most:
        return "violated", words
    if band.least is not None and share < band.least:
        doubt = _why(ran, one.flow, repetition)
        return ("invalid", f"{words}; {doubt}") if doubt else ("violated", words)
    doubt = next(
        (cause.text for cause in _causes(ran, one.flow, repetition) if cause.kind != "machine"), None
    )
    return ("invalid", f"{words}; {doubt}") if doubt else ("held", words)


def _why(ran: Ran, flow: str, repetition: int) -> str | None:
    """Return why what a flow lacks may be nobody's fault but the machine's, or the measurement's."""
    return next((cause.text for cause in _causes(ran, flow, repetition)), None)


def _causes(ran: Ran, flow: str, repetition: int) -> list[Cause]:
    """Return what speaks against a run, or against what it says of a flow in one repetition."""
    return [
        cause
        for cause in ran.summary.causes
        if cause.kind != "promise" and cause.flow in (None, flow) and cause.repetition in (None, repetition)
    ]


def _outside(ran: Ran, run: str, one: Got, repetition: int, band: Band) -> list[Short]:
    """Return the stretches in which a flow's samples were outside, neighbours joined."""
    least = 0.0 if band.least is None else band.least * one.expected_bps
    most = float("inf") if band.most is None else band.most * one.expected_bps
    warm = ran.scenario.measurement.warm_up
    table = ran.samples
    mine = table[(table["flow"] == one.flow) & (table["repetition"] == repetition)]
    mine = mine[mine["source"] == "receiver"]
    mine = mine[mine["start_s"] >= mine["start_s"].min() + warm]
    stretches: list[Short] = []
    for row in mine.itertuples():
        if least <= row.bits_per_second <= most:
            continue
        if stretches and abs(stretches[-1].end_s - row.start_s) < ran.scenario.measurement.interval / 2:
            begun = stretches.pop().start_s
        else:
            begun = float(row.start_s)
        stretches.append(Short(run, one.flow, repetition, begun, float(row.end_s)))
    return stretches
