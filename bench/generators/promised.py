"""How much a scenario promises at one time, and whether paths that carry so much unshaped leave it room."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from bench.generators import guaranteed
from testbed.scenario import Scenario, Traffic, links
from testbed.scenario.goodput import expected_goodput_of

# A promise above this share of what the unshaped paths carried leaves the machine no room for the
# disturbance and for TCP's own ups and downs; VXLAN alone costs that much on fast links (flannel-io#1816).
PROMISE_LIMIT = 0.8
# What reaches this share of the underlay's own rate was limited by the underlay - which is part of the
# experiment - and not by the machine. Encapsulation and TCP take 8 % of it.
UNDERLAY_FILLED = 0.8


def most(scenario: Scenario) -> float:
    """Return the most that is promised at one time, bits per second."""
    rates = {flow.label: scenario.guarantee_of(flow) or 0 for flow in guaranteed(scenario)}
    return max((_sum(scenario, rates, moment.start) for moment in scenario.flows), default=0.0)


def goodputs(scenario: Scenario) -> dict[str, float]:
    """Return what each guaranteed flow must have when most is promised, bits per second; 0 if it is off."""
    expected = {flow.label: expected_goodput_of(scenario, flow) or 0.0 for flow in guaranteed(scenario)}
    starts = [flow.start for flow in guaranteed(scenario)]
    when = max(starts, key=lambda moment: _sum(scenario, expected, moment))
    return {
        flow.label: expected[flow.label] * (flow.start <= when < flow.end) for flow in guaranteed(scenario)
    }


def fit(promised_bps: float, scenario: Scenario, reached_bps: float) -> bool:
    """Tell whether a promise is far enough from what its paths reached without shaping."""
    return promised_bps <= PROMISE_LIMIT * reached_bps or filled(scenario, guaranteed(scenario), reached_bps)


def filled(scenario: Scenario, transfers: Iterable[Traffic], reached_bps: float) -> bool:
    """Tell whether the links were what limited transfers that reached so much together."""
    return reached_bps >= UNDERLAY_FILLED * links.most(scenario, transfers)


def _sum(scenario: Scenario, rates: Mapping[str, float], moment: float) -> float:
    on = (flow for flow in guaranteed(scenario) if flow.start <= moment < flow.end)
    return math.fsum(rates[flow.label] for flow in on)
