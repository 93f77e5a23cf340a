"""Is one run better than another, worse, or the same?

The repetition is the unit: means of repetitions are compared, by Welch's interval, as shares of the expected
goodput. What one run is measured by is what the other was promised, so that a promise that was made smaller
is no excuse; only a scale that all rates have in common is taken out. *same* is a statement too, and needs
an interval as small as the least difference that matters (``thresholds.effect``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bench.analysis import statistics
from bench.analysis.summary import PhaseSummary, Summary
from bench.recording.records import Entry
from testbed.scenario import Scenario, Traffic
from testbed.scenario.faults import render_path
from testbed.scenario.goodput import expected_goodput_of

Finding = Literal["same", "better", "worse", "cannot tell"]

FEWEST_REPETITIONS = 3


@dataclass(frozen=True)
class Run:
    """One recording, as far as it is compared."""

    scenario: Scenario
    summary: Summary
    machine: dict[str, Any]  # what makes it this machine; empty: not known
    commit: str


class Row(Entry):
    """One flow in one phase: shares of the goodput that is expected."""

    flow: str
    phase: str
    repetitions: tuple[int, int]  # of the one run, and of the other
    shares: tuple[float | None, float | None]  # means over the repetitions; null: not measured
    difference: float | None  # the other less the one
    low: float | None  # of its interval; null: too few repetitions for one
    high: float | None
    level: float = statistics.LEVEL
    effect: float  # the least difference that matters
    finding: Finding
    reason: str | None = None  # why it cannot be told, where that is not the interval


class Comparison(Entry):
    """Two runs."""

    name: str  # which of several; empty: there is but one
    runs: tuple[str, str]
    enforcements: tuple[str, str]
    commits: tuple[str, str]
    verdicts: tuple[str, str]
    scale: float  # of the other's rates, to those of the one
    rates: list[str]  # that differ from that scale, in words
    machines: list[str]  # in what the machines differ, in words
    rows: list[Row]

    @property
    def finding(self) -> Finding:
        """All of it in a word."""
        return worst(row.finding for row in self.rows)


def worst(findings: Iterable[Finding]) -> Finding:
    """Return *worse* if anything is, else *cannot tell*, else *better*, else *same*."""
    found = set(findings) or {"cannot tell"}
    order: Sequence[Finding] = ("worse", "cannot tell", "better", "same")
    return next(finding for finding in order if finding in found)


def compare(one: Run, other: Run, name: str = "", across_machines: bool = False) -> Comparison:
    """Compare a run with another. Raises LookupError if they are not of the same experiment."""
    if different := list(_differences(_essence(one.scenario), _essence(other.scenario))):
        where = f"{name}: " if name else ""
        raise LookupError(
            f"{where}{one.summary.run_id} and {other.summary.run_id} are different experiments: "
            + "; ".join(different[:5])
        )
    scale = _scale(one.scenario, other.scenario)
    machines = _other_machine(one, other)
    reason = "another machine (--across-machines compares all the same)"
    return Comparison(
        name=name,
        runs=(one.summary.run_id, other.summary.run_id),
        enforcements=(one.summary.enforcement, other.summary.enforcement),
        commits=(one.commit, other.commit),
        verdicts=(one.summary.verdict, other.summary.verdict),
        scale=scale,
        rates=_rates(one.scenario, other.scenario, scale),
        machines=machines,
        rows=list(_rows(one, other, scale, reason if machines and not across_machines else None)),
    )


def _rows(one: Run, other: Run, scale: float, doubt: str | None) -> Iterator[Row]:
    goodputs = expected(one, other, scale)
    flows = {flow.name: flow for flow in other.summary.flows}
    for flow in one.summary.flows:
        if flow.role != "guaranteed":
            continue
        others = flows[flow.name].phases
        for phase in dict.fromkeys([*flow.phases, *others]):
            first, second = goodputs[flow.name]
            sides = _shares(flow.phases.get(phase), first), _shares(others.get(phase), second)
            yield _row(flow.name, phase, *sides, one.scenario.thresholds.effect, doubt)


def expected(one: Run, other: Run, scale: float) -> dict[str, tuple[float, float]]:
    """Return the goodput that is expected of each guaranteed flow in both runs, bits per second."""
    promised = one.scenario.scaled(scale).model_copy(update={"enforcement": other.scenario.enforcement})
    return {
        flow.name: (_expected(one.scenario, flow.name), _expected(promised, flow.name))
        for flow in one.summary.flows
        if flow.role == "guaranteed"
    }


def _row(
    flow: str, phase: str, one: list[float], other: list[float], effect: float, doubt: str | None
) -> Row:
    few = f"fewer than {FEWEST_REPETITIONS} repetitions"
    finding: Finding = "cannot tell"
    reason, difference, low, high = None, None, None, None
    if one and other:
        difference = _mean(other) - _mean(one)
    if min(len(one), len(other)) >= 2:
        (low, high) = statistics.welch(one, other).interval
    if min(len(one), len(other)) < FEWEST_REPETITIONS:
        reason = few if one and other else "not measured in both"
    elif doubt:
        reason = doubt
    elif difference is not None and low is not None and high is not None:
        finding = judge(difference, low, high, effect)
    return Row(
        flow=flow,
        phase=phase,
        repetitions=(len(one), len(other)),
        shares=(_rounded(_mean(one) if one else None), _rounded(_mean(other) if other else None)),
        difference=_rounded(difference),
        low=_rounded(low),
        high=_rounded(high),
        effect=effect,
        finding=finding,
        reason=reason,
    )


def judge(difference: float, low: float, high: float, effect: float) -> Finding:
    """Return what a difference is, from its interval and the least that matters."""
    if -effect <= low and high <= effect:
        return "same"
    if (low > 0 or high < 0) and abs(difference) >= effect:
        return "better" if difference > 0 else "worse"
    return "cannot tell"


def _shares(phase: PhaseSummary | None, expected: float) -> list[float]:
    return [] if phase is None else [repetition.mean_bps / expected for repetition in phase.repetitions]


def _expected(scenario: Scenario, label: str) -> float:
    expected = expected_goodput_of(scenario, next(flow for flow in scenario.flows if flow.label == label))
    if expected is None:
        raise LookupError(f"{label} has no guarantee")
    return expected


def _essence(scenario: Scenario) -> Any:
    """Return what two scenarios have to agree in: all but rates, enforcement, words, and how often."""
    same = scenario.scaled(0).model_copy(
        update={
            "title": "",
            "enforcement": "none",
            "measurement": scenario.measurement.model_copy(update={"repetitions": 1}),
        }
    )
    return same.model_dump(mode="json", by_alias=True)


def _differences(one: Any, other: Any, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Yield where two pieces of data differ, and how."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in dict.fromkeys([*one, *other]):
            yield from _differences(one.get(key), other.get(key), (*path, key))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (part, others) in enumerate(zip(one, other, strict=True)):
            yield from _differences(part, others, (*path, index))
    elif one != other:
        yield f"{render_path(path)} is {_said(one)} and {_said(other)}"


def _said(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return f"{len(value)} entries"
    return "not given" if value is None else str(value)


def _scale(one: Scenario, other: Scenario) -> float:
    """Return what most rates of the one are multiplied by in the other; of several, what is nearest 1."""
    rates, others = dict(_all_rates(one)), dict(_all_rates(other))
    factors = Counter(round(others[path] / rate, 6) for path, rate in rates.items())
    return min(factors, key=lambda factor: (-factors[factor], abs(factor - 1)), default=1.0)


def _rates(one: Scenario, other: Scenario, scale: float) -> list[str]:
    others = dict(_all_rates(other))
    return [
        f"{path} is {others[path] / (rate * scale):.4g} of what it was"
        for path, rate in _all_rates(one)
        if abs(others[path] / (rate * scale) - 1) > 1e-4  # scaled rates are whole bits per second
    ]


def _all_rates(scenario: Scenario) -> Iterator[tuple[str, int]]:
    def known(path: str, rate: int | None) -> Iterator[tuple[str, int]]:
        if rate is not None:
            yield path, rate

    yield from known("underlay.rate", scenario.underlay.rate)
    for name, zone in scenario.zones.items():
        yield from known(f"zones.{name}.rate", zone.rate)
    for name, node in scenario.nodes.items():
        yield from known(f"nodes.{name}.rate", node.rate)
    for name, pod in scenario.pods.items():
        yield from known(f"pods.{name}.guarantee", pod.guarantee)
        yield from known(f"pods.{name}.ingress", pod.ingress)
        yield from known(f"pods.{name}.ceiling", pod.ceiling)
    parts: dict[str, Sequence[Traffic]] = {"flows": scenario.flows, "disturbances": scenario.disturbances}
    for part, traffic in parts.items():
        for index, each in enumerate(traffic):
            yield from known(f"{part}[{index}].rate", each.rate)


def _other_machine(one: Run, other: Run) -> list[str]:
    if not one.machine or not other.machine:
        return ["the machine is not known"]
    known = one.machine.keys() & other.machine.keys()  # earlier recordings have less
    return [
        difference
        for name in one.machine
        if name in known
        for difference in _differences(one.machine[name], other.machine[name], (name,))
    ]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)
