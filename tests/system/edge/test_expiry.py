"""Neighbours expire while datagrams cross: none is lost. Run alone: packets wait, but not for a busy machine.

CONCORDE_OVERLAY_DATAGRAMS says how many datagrams, of which there are a thousand a second.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bench.observations.procfs import packets_dropped
from testbed.testbed import Testbed
from tests import cases
from tests.system.edge.test_first_packets import exchanged, missing

DATAGRAMS = cases.count("CONCORDE_OVERLAY_DATAGRAMS", 10_000, 100_000)
A_SECOND = 1000


def dropped() -> int:
    return packets_dropped(Path("/proc/net/softnet_stat").read_text(encoding="utf-8"))


@pytest.mark.alone
@pytest.mark.long(one_in=0, counted=True)
def test_no_datagram_is_lost_while_neighbours_expire(resolved: Callable[[str, str], Testbed]) -> None:
    """The kernel asks, gives up and asks again, for nobody confirms what is only forwarded."""
    testbed = resolved("ahead", "miss")
    source, destination = testbed.pods["A-1"], testbed.pods["A-3"]
    short = {"base_reachable_time_ms": 500, "delay_first_probe_time": 0, "ucast_solicit": 0}
    for node in ("minion01", "minion02"):
        for name, value in short.items():
            file = f"/proc/sys/net/ipv4/neigh/flannel.1/{name}"
            testbed.nodes[node].run(["tee", file], stdin=f"{value}\n")
    exchanged(source, destination, 1, 1)
    before = dropped()
    came, answered = exchanged(source, destination, DATAGRAMS, A_SECOND)
    lost = missing(came, DATAGRAMS), missing(answered, DATAGRAMS)
    if lost != ([], []) and (others := dropped() - before):
        pytest.skip(f"{lost} are lost, but processors had no room for {others} packets of anybody's")
    assert lost == ([], [])
    log = testbed.nodes["minion01"].run(["cat", "/run/overlay/a/resolver/log"]).stdout
    expiries = log.count(f"L3 miss: {destination.address}: at ") - 1
    assert expiries >= max(1, DATAGRAMS // 5000)
