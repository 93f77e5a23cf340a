"""Are the acknowledgements of promised flows promised, too?

A promise is kept where its sender's packets leave. What answers them leaves by the receiver's link, and waits
there like anything without a promise: where all of that link is promised to others, the flow is lost. So of
each promised flow is said what its receiver was promised for them. It is a remark: whether it mattered, the
flow's rate tells.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.generators import guaranteed
from testbed.scenario import Scenario, Traffic, enforcements
from testbed.scenario.quantities import format_rate
from testbed.scenario.units import format_share

# Of a guarantee. One acknowledgement for two segments of 1,500 bytes takes 140 bytes of a wire with VXLAN,
# 4.6 % of theirs; receivers that put segments together send fewer, and not each is needed.
LEAST = 0.02
BEGINS = "acknowledgements"  # of each note


def notes(scenario: Scenario) -> Iterator[str]:
    """Yield which promised flows' answers are admitted where they are sent, with how much, and which not."""
    kind = enforcements.of(scenario)
    if not kind.promises:
        return
    flows = [
        flow
        for flow in guaranteed(scenario)
        if flow.protocol == "tcp" and scenario.node_of(flow.source) != scenario.node_of(flow.destination)
    ]
    enough = [flow for flow in flows if kind.admits_answers and _share(scenario, flow) >= LEAST]
    for those, are in ((enough, "are"), ([flow for flow in flows if flow not in enough], "are not")):
        if those:
            listed = ", ".join(f"{flow.label} ({_said(scenario, flow)})" for flow in those)
            yield f"{BEGINS} {are} admitted at the receiver: {listed}"


def _answers(scenario: Scenario, flow: Traffic) -> int:
    pod = scenario.pods.get(flow.destination)
    return (pod.answers or 0) if pod else 0


def _share(scenario: Scenario, flow: Traffic) -> float:
    return _answers(scenario, flow) / (scenario.guarantee_of(flow) or 1)


def _said(scenario: Scenario, flow: Traffic) -> str:
    given, rate = _answers(scenario, flow), format_rate(scenario.guarantee_of(flow) or 0)
    return (
        f"{format_rate(given)} of {rate}, {format_share(_share(scenario, flow))}"
        if given
        else f"none of {rate}"
    )
