"""How much a scenario promises at one time, and whether paths that carry so much unshaped leave it room."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.generators import guaranteed
from testbed.scenario import Scenario, Traffic, links
from testbed.scenario.goodput import expected_goodput_of

# A promise above this share of what the unshaped paths carried leaves the machine no room for the
# disturbance and for TCP's own ups and downs; VXLAN alone costs that much on fast links (flannel-io#1816).
PROMISE_LIMIT = 0.8
# What reaches this share of the underlay's own rate was limited by the underlay - which is part of the
# experiment - and not by the machine. Encapsulation and TCP take 8 % of it.
UNDERLAY_FILLED = 0.8


@dataclass(frozen=True)
class Promise:
    """What a scenario promises at one time, bits per second."""

    most_bps: float
    goodputs: Mapping[str, float]  # that each guaranteed flow must have when that is; 0 if it is off then
    full_bps: float  # from which on the guaranteed flows together have filled the links

    def fits(self, reached_bps: float, scale: float = 1.0) -> bool:
        """Tell whether a share of it is far enough from what its paths reached without shaping."""
        return self.most_bps * scale <= PROMISE_LIMIT * reached_bps or reached_bps >= self.full_bps


def of(scenario: Scenario) -> Promise:
    """Return what a scenario promises."""
    flows = guaranteed(scenario)
    rates = {flow.label: float(scenario.guarantee_of(flow) or 0) for flow in flows}
    expected = {flow.label: expected_goodput_of(scenario, flow) or 0.0 for flow in flows}
    when = max((flow.start for flow in flows), key=lambda moment: _sum(flows, expected, moment), default=0.0)
    return Promise(
        most_bps=max((_sum(flows, rates, moment.start) for moment in flows), default=0.0),
        goodputs={flow.label: expected[flow.label] * (flow.start <= when < flow.end) for flow in flows},
        full_bps=full_bps(scenario, flows),
    )


def full_bps(scenario: Scenario, transfers: Iterable[Traffic]) -> float:
    """Return from which rate on transfers that are made together were limited by the links."""
    return UNDERLAY_FILLED * links.most(scenario, transfers)


def _sum(flows: Sequence[Traffic], rates: Mapping[str, float], moment: float) -> float:
    return math.fsum(rates[flow.label] for flow in flows if flow.start <= moment < flow.end)
