"""The numbers of a night that are followed from night to night, each under a name: ``contmec/up``.

Of the flows these are the guaranteed ones: what a disturbance gets is what the machine has left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.studies.nightly.night import Night, ScenarioNight

CALIBRATION = "calibration"


@dataclass(frozen=True)
class Kind:
    """What a number is."""

    unit: str
    bigger_is_better: bool


KINDS = {
    "mean": Kind("bit/s", True),
    "attainment": Kind("share", True),
    "retransmissions": Kind("segments", False),
    CALIBRATION: Kind("bit/s", True),
    "add": Kind("s", False),
    "up": Kind("s", False),
    "down": Kind("s", False),
}


def kind_of(metric: str) -> Kind:
    """Return what a metric is."""
    return KINDS[metric.rpartition("/")[2]]


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
