"""What a scenario promises: how much at one time, whether that has room, and to what answers its flows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.generators import guaranteed
from testbed.scenario import Scenario, Traffic, enforcements, links
from testbed.scenario.goodput import expected_goodput_of
from testbed.scenario.units import format_rate, format_share

# A promise above this share of what the unshaped paths carried leaves the machine no room for the
# disturbance and for TCP's own ups and downs; VXLAN alone costs that much on fast links (flannel-io#1816).
PROMISE_LIMIT = 0.8
# What reaches this share of the underlay's own rate was limited by the underlay - which is part of the
# experiment - and not by the machine. Encapsulation and TCP take 8 % of it.
UNDERLAY_FILLED = 0.8
# Of a guarantee. One acknowledgement for two segments of 1,500 bytes takes 140 bytes of a wire with VXLAN,
# 4.6 % of theirs; receivers that put segments together send fewer, and not each is needed.
LEAST_ANSWERS = 0.02
ACKNOWLEDGEMENTS = "acknowledgements"  # begins each note of them


@dataclass(frozen=True)
class Promise:
    """What a scenario promises at one time, bits per second."""

    flows: Sequence[Traffic]  # that can be held against a guarantee
    most_bps: float
    goodputs: Mapping[str, float]  # that each guaranteed flow must have when that is; 0 if it is off then
    full_bps: float  # from which on the guaranteed flows together have filled the links
    notes: Sequence[str]  # what else is to be known of it, in words

    def fits(self, reached_bps: float, scale: float = 1.0) -> bool:
        """Tell whether a share of it is far enough from what its paths reached without shaping."""
        return self.most_bps * scale <= PROMISE_LIMIT * reached_bps or reached_bps >= self.full_bps


def of(scenario: Scenario) -> Promise:
    """Return what a scenario promises. Raises LookupError for an unknown generator."""
    flows = guaranteed(scenario)
    rates = {flow.label: float(scenario.guarantee_of(flow) or 0) for flow in flows}
    expected = {flow.label: expected_goodput_of(scenario, flow) or 0.0 for flow in flows}
    when = max((flow.start for flow in flows), key=lambda moment: _sum(flows, expected, moment), default=0.0)
    return Promise(
        flows,
        most_bps=max((_sum(flows, rates, moment.start) for moment in flows), default=0.0),
        goodputs={flow.label: expected[flow.label] * (flow.start <= when < flow.end) for flow in flows},
        full_bps=full_bps(scenario, flows),
        notes=list(_acknowledgements(scenario, flows)),
    )


def full_bps(scenario: Scenario, transfers: Iterable[Traffic]) -> float:
    """Return from which rate on transfers that are made together were limited by the links."""
    return UNDERLAY_FILLED * links.most(scenario, map(scenario.nodes_of, transfers))


def _sum(flows: Sequence[Traffic], rates: Mapping[str, float], moment: float) -> float:
    return math.fsum(rates[flow.label] for flow in flows if flow.start <= moment < flow.end)


def _acknowledgements(scenario: Scenario, guaranteed: Iterable[Traffic]) -> Iterator[str]:
    """Yield which guaranteed flows' acknowledgements are promised too, with how much, and which are not.

    A promise is kept where its sender's packets leave. What answers them leaves by the receiver's link, and
    waits there like anything without a promise: where all of that link is promised to others, the flow is
    lost. It is a remark: whether it mattered, the flow's rate tells.
    """
    kind = enforcements.of(scenario)
    if not kind.promises:
        return
    flows = [one for one in guaranteed if one.protocol == "tcp" and len(set(scenario.nodes_of(one))) == 2]
    enough = [flow for flow in flows if kind.admits_answers and _share(scenario, flow) >= LEAST_ANSWERS]
    for those, are in ((enough, "are"), ([flow for flow in flows if flow not in enough], "are not")):
        if those:
            listed = ", ".join(f"{flow.label} ({_said(scenario, flow)})" for flow in those)
            yield f"{ACKNOWLEDGEMENTS} {are} admitted at the receiver: {listed}"


def _answers(scenario: Scenario, flow: Traffic) -> int:
    pod = scenario.pods.get(scenario.receivers_of(flow)[0])
    return pod.answered if pod else 0


def _share(scenario: Scenario, flow: Traffic) -> float:
    return _answers(scenario, flow) / (scenario.guarantee_of(flow) or 1)


def _said(scenario: Scenario, flow: Traffic) -> str:
    given, rate = _answers(scenario, flow), format_rate(scenario.guarantee_of(flow) or 0)
    return (
        f"{format_rate(given)} of {rate}, {format_share(_share(scenario, flow))}"
        if given
        else f"none of {rate}"
    )
