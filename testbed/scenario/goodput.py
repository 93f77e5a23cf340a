"""Which goodput a promise must give a flow of a scenario."""

from __future__ import annotations

from testbed.scenario import enforcements, networks
from testbed.scenario.frames import expected_goodput, packet_bytes
from testbed.scenario.model import Scenario, Traffic


def expected_goodput_of(scenario: Scenario, flow: Traffic) -> float | None:
    """Return the goodput a flow's receiver must see, bits per second; None for one without a guarantee.

    A flow that offers less than its guarantee can only get what it offers (iperf3's ``-b`` counts payload).
    """
    guarantee = scenario.guarantee_of(flow)
    if guarantee is None:
        return None
    mtu, overhead = networks.path_of(scenario, flow.source)
    kind = enforcements.of(scenario)
    counted = overhead if kind.counts_overhead else 0
    count = "payload" if kind.counts == "payload" else scenario.count
    if flow.size is not None:
        mtu = packet_bytes(flow.size)
    goodput = expected_goodput(guarantee, mtu, flow.protocol, count, counted)
    return goodput if flow.rate is None else min(float(flow.rate), goodput)
