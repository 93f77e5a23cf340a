"""The numbers of a night that are followed from night to night, each under a name: ``contmec/up``.

Of the flows these are the guaranteed ones: what a disturbance gets is what the machine has left.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from bench.studies.nightly.night import Night, ScenarioNight
from testbed.scenario.units import format_bps, unit_for

CALIBRATION = "calibration"
RATE = "bit/s"


@dataclass(frozen=True)
class Kind:
    """What a number is."""

    unit: str
    bigger_is_better: bool


KINDS = {
    "mean": Kind(RATE, True),
    "attainment": Kind("share", True),
    "retransmissions": Kind("segments", False),
    CALIBRATION: Kind(RATE, True),
    "add": Kind("s", False),
    "up": Kind("s", False),
    "down": Kind("s", False),
}


OF_PHASES = {"mean", "attainment"}  # of each flow in each phase


def kind_of(metric: str) -> Kind:
    """Return what a metric is."""
    return KINDS[metric.rpartition("/")[2]]


def is_rate_of_a_flow(metric: str) -> bool:
    """Tell whether a metric is what a guaranteed flow got."""
    return metric.endswith("/mean")


def owner(metric: str) -> str:
    """Return whose a metric is: ``contmec/(1) A-1 -> A-4`` of a flow, ``contmec`` of its scenario."""
    whose, _, kind = metric.rpartition("/")
    return whose.rpartition("/")[0] if kind in OF_PHASES else whose


def title(metric: str) -> str:
    """Return what a metric is called in a table: a flow's mean by scenario, flow and phase."""
    if not is_rate_of_a_flow(metric):
        return metric
    scenario, _, rest = metric.removesuffix("/mean").partition("/")
    flow, _, phase = rest.rpartition("/")
    return f"{scenario}: {flow}, {phase}"


def shown(metric: str, *values: float | None) -> list[str]:
    """Return values of a metric with their unit, which is the same for all; a dash for none."""
    unit, of_rates = kind_of(metric).unit, unit_for(values)

    def text(value: float) -> str:
        return format_bps(value, of_rates) if unit == RATE else f"{value:.4g} {unit}"

    return ["–" if value is None else text(value) for value in values]


def pattern(names: Iterable[str]) -> str:
    """Return a glob that matches metrics: what they begin and end with alike, and ``*`` for what differs."""
    parts = [name.split("/") for name in dict.fromkeys(names)]
    if len(parts) == 1:
        return glob.escape("/".join(parts[0]))
    least = min(map(len, parts)) - 1  # of each one part at least is left to the asterisk
    begin = _alike(parts)[:least]
    end = _alike([part[::-1] for part in parts])[: least - len(begin)][::-1]
    return "/".join([*map(glob.escape, begin), "*", *map(glob.escape, end)])


def calibration_of(metric: str) -> str:
    """Return the metric of what the same scenario's paths carried without shaping."""
    return f"{metric.partition('/')[0]}/{CALIBRATION}"


def values(night: Night) -> dict[str, float]:
    """Return every number of a night, by its name; whatever did not speak for itself has none."""
    return {
        f"{scenario}/{name}": float(value)
        for scenario, one in night.scenarios.items()
        if one.measured
        for name, value in _of(one)
        if value is not None
    }


def series(nights: Sequence[Night]) -> Mapping[str, dict[int, float]]:
    """Return each metric's values by their night's index; those of the last setting of each scenario alone.

    A scenario whose guarantees, enforcement or nodes were others was another experiment.
    """
    latest = {name: one.setting for night in nights for name, one in night.scenarios.items() if one.measured}
    found: dict[str, dict[int, float]] = {}
    for index, night in enumerate(nights):
        same = {
            name: one for name, one in night.scenarios.items() if one.setting == latest.get(name, one.setting)
        }
        for metric, value in values(night.model_copy(update={"scenarios": same})).items():
            found.setdefault(metric, {})[index] = value
    return found


def _alike(parts: Iterable[list[str]]) -> list[str]:
    """Return what all begin with."""
    return [each[0] for each in takewhile(lambda each: len(set(each)) == 1, zip(*parts, strict=False))]


def _of(one: ScenarioNight) -> Iterator[tuple[str, float | None]]:
    for name, flow in one.flows.items():
        if flow.guarantee_bps is None:
            continue
        yield f"{name}/retransmissions", flow.retransmissions
        for phase, seen in flow.phases.items():
            yield f"{name}/{phase}/mean", seen.mean_bps
            yield f"{name}/{phase}/attainment", seen.attainment
    yield CALIBRATION, one.calibration_bps
    yield "add", one.add_s
    yield "up", one.up_s
    yield "down", one.down_s
