"""Did a pod send more, in the long run, than its network claims to let it?

A ceiling that is exceeded is never the machine's fault: one that is short of time carries less. All that a
flow sends counts, from its beginning on: what a bucket has saved up before is sent too. The 84 ms of the rate
that are allowed (``testbed.enforcements.enforcement``) are 4 % of two seconds; a burst of 2^32 - 1 bits, as
the one that containerd tells (kubernetes/kubernetes#90839), is a ceiling that is not there, however fast it
is gone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from bench.analysis import samples
from bench.observations.causes import Cause
from bench.recording.records import RunRecord
from testbed.scenario import Scenario, enforcements
from testbed.scenario.goodput import goodput_of
from testbed.scenario.units import format_bps, format_share, unit_for

if TYPE_CHECKING:
    from bench.analysis.samples import Received, Tables

# Of what a ceiling leaves. Calico and Antrea allow their own tests 20 and 10 %.
MOST = 1.05
# Two seconds, of which the samples may lack some: in less, the bursts that are allowed are more than the 5 %.
LONG_RUN_S = 1.9


def exceeds(observed_bps: float, allowed_bps: float) -> bool:
    """Tell whether a long-run rate is above what a ceiling leaves; both in bits per second alike."""
    return observed_bps > MOST * allowed_bps


def causes(tables: Tables, scenario: Scenario, record: RunRecord) -> Iterator[Cause]:
    """Yield each pod that exceeded its ceiling, repetition by repetition; what receivers got is counted."""
    for pod, ceiling in _claimed(scenario).items():
        flows = [traffic for traffic in scenario.traffic if traffic.source == pod]
        for number in range(len(record.repetitions)):
            received = samples.received(tables, flows, number)
            if cause := _judge(pod, ceiling, number, received, scenario, len(record.repetitions)):
                yield cause


def _claimed(scenario: Scenario) -> dict[str, int]:
    """Return the pods for whose sending a ceiling is claimed, with its rate, bits per second."""
    kind = enforcements.of(scenario)
    rates = {name: kind.ceiling_of(pod) for name, pod in scenario.pods.items()}
    return {name: rate for name, rate in rates.items() if rate is not None}


def _judge(
    pod: str,
    ceiling: int,
    number: int,
    received: Received,
    scenario: Scenario,
    repetitions: int,
) -> Cause | None:
    seconds = _covered((float(table["start_s"].min()), float(table["end_s"].max())) for _, table in received)
    if seconds < LONG_RUN_S:
        return None
    rates = {}  # of each flow that sent, bits per second over that time, and its share of the ceiling
    for flow, table in received:
        bits = float((table["bits_per_second"] * (table["end_s"] - table["start_s"])).sum())
        if bits:
            rates[flow.label] = (bits / seconds, bits / seconds / goodput_of(scenario, flow, ceiling))
    share = math.fsum(share for _, share in rates.values())
    if not exceeds(share, 1.0):
        return None
    most = max(rates, key=lambda label: rates[label][1])
    observed = math.fsum(rate for rate, _ in rates.values())
    others = f" and {len(rates) - 1} more" if len(rates) > 1 else ""
    which = f", repetition-{number}" if repetitions > 1 else ""
    text = f"{most}{others}{which}: {_text(pod, ceiling, seconds, observed, share, scenario)}"
    return Cause(
        kind="promise",
        text=text,
        flow=most,
        repetition=number,
        observed=observed,
        required=MOST * observed / share,
        topics=("ceiling",),
    )


def _text(pod: str, ceiling: int, seconds: float, observed: float, share: float, scenario: Scenario) -> str:
    """Return how much was observed, and that it is more than a ceiling leaves."""
    allowed = observed / share
    unit = unit_for([allowed])
    warm_up = ", warm-up included," if scenario.measurement.warm_up else ""  # which no other number counts
    return (
        f"{format_bps(observed, unit)} over {seconds:.0f} s{warm_up} is "
        f"{format_share(share)} of the {format_bps(allowed, unit)} that the ceiling of {pod}, "
        f"{format_bps(ceiling, unit)}, leaves (at most {format_share(MOST)})"
    )


def _covered(spans: Iterable[tuple[float, float]]) -> float:
    """Return how many seconds lie within any of some spans."""
    ordered = sorted(spans)
    edges = sorted({moment for span in ordered for moment in span})
    return math.fsum(
        after - before
        for before, after in pairwise(edges)
        if any(start <= before and after <= end for start, end in ordered)
    )
