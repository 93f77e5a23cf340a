"""Which goodput a promise must give a flow of a scenario."""

from __future__ import annotations

from testbed.scenario import enforcements, networks
from testbed.scenario.frames import (
    expected_goodput,
    frame_bytes,
    link_bytes,
    of_full_frames,
    packet_bytes,
    payload_bytes,
)
from testbed.scenario.model import Scenario, Traffic


def expected_goodput_of(scenario: Scenario, flow: Traffic) -> float | None:
    """Return the goodput a flow's receiver must see, bits per second; None for one without a guarantee.

    A flow that offers less than its guarantee can only get what it offers (iperf3's ``-b`` counts payload).
    """
    guarantee = scenario.guarantee_of(flow)
    if guarantee is None:
        return None
    goodput = goodput_of(scenario, flow, guarantee)
    if flow.size is not None and _is_kept_on_link(scenario, flow):
        goodput = min(goodput, _on_link(scenario, flow, guarantee, flow.size))
    return goodput if flow.rate is None else min(float(flow.rate), goodput)


def goodput_of(scenario: Scenario, flow: Traffic, rate: int) -> float:
    """Return the goodput that a rate of the sender's pod leaves a flow, bits per second.

    ``rate`` is in bits per second as the scenario and its enforcement count.
    """
    mtu, overhead = networks.path_of(scenario, flow.source)
    kind = enforcements.of(scenario)
    counted = overhead if kind.counts_overhead else 0
    count = "payload" if kind.counts == "payload" else scenario.count
    if flow.size is not None:
        mtu = packet_bytes(flow.size)
    return expected_goodput(rate, mtu, flow.protocol, count, counted)


def _is_kept_on_link(scenario: Scenario, flow: Traffic) -> bool:
    """Tell whether the promise is so much of a node's link, in frames as the pod sends full ones."""
    kind = enforcements.of(scenario)
    source, destination = scenario.nodes_of(flow)
    return source != destination and kind.shares_links and kind.counts == "layer2"


def _on_link(scenario: Scenario, flow: Traffic, rate: int, size: int) -> float:
    """Return the goodput of datagrams that take as much of the link as full frames of the promise do."""
    (mtu, overhead), more = networks.path_of(scenario, flow.source), scenario.underlay.frame_overhead
    counted = frame_bytes(mtu) if scenario.count == "layer2" else payload_bytes(mtu, "tcp")
    takes = rate * frame_bytes(mtu, overhead) / of_full_frames(counted, more)
    return takes * size / link_bytes(frame_bytes(packet_bytes(size), overhead), more)
