"""Ways from clusters to devices, for real: what leads there, what does not, and what a device can begin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.supplies import packages
from testbed.testbed import Testbed
from tests import verbs
from tests.system.testbed.connected import (
    GATEWAY,
    made,
    nobody_else_does,
    the_camera_begins_nothing,
    the_clusters_reach_the_camera,
    two_gateways_lead_to_the_lamp,
)

CASES = [
    "translate-vxlan",
    pytest.param("relay-host-gw", marks=pytest.mark.long(one_in=0)),
    pytest.param("relay-vxlan", marks=pytest.mark.long(one_in=0)),
    pytest.param("translate-host-gw", marks=pytest.mark.long(one_in=0)),
    pytest.param("translate-bgp", marks=pytest.mark.long(one_in=0)),
]


@pytest.fixture(params=CASES)
def testbed(request: pytest.FixtureRequest) -> Iterator[Testbed]:
    mode, _, backend = request.param.partition("-")
    lacking = [*packages.missing("socat")] if mode == "relay" else []
    lacking += [*packages.missing("bird2")] if backend == "bgp" else []
    if lacking or list(packages.missing("dnsmasq-base")):
        pytest.skip("; ".join(lacking) or "names of services need dnsmasq: ./invokew programs.get")
    with made(mode, mode, f"clusters.a.backend={backend}").running() as up:
        yield up


@pytest.mark.usefixtures("untouched_host")
def test_a_connection_leads_its_cluster_to_a_device_and_nobody_anywhere_else(testbed: Testbed) -> None:
    assert testbed.check() == []
    the_clusters_reach_the_camera(testbed)
    nobody_else_does(testbed)
    the_camera_begins_nothing(testbed)
    (link,) = testbed.pods["dop-cam-1"].run(["ip", "-j", "address", "show", "net1"]).json()
    testbed.remove("dop-cam-1")
    left = testbed.nodes[GATEWAY].run(["nft", "list", "table", "ip", "concorde-networks"]).stdout
    assert f". {link['addr_info'][0]['local']} ." not in left
    testbed.add("dop-cam-1")
    the_clusters_reach_the_camera(testbed)
    two_gateways_lead_to_the_lamp(testbed)


@pytest.mark.long(one_in=0)
def test_flows_and_requests_go_to_a_device(tmp_path: Path) -> None:
    """What arrives there is seen; how much that is, no test beside others says."""
    sent = (
        "flows=[{from: A-1, to: cam, component: video, duration: 3}]",
        "requests=[{from: A-2, to: cam, rate: 20, duration: 3, protocol: udp}]",
    )
    changes = [word for one in sent for word in ("--set", one)]
    run = verbs.run("bench", "examples/devices", *changes, "--reports", str(tmp_path))
    assert "A-1 -> cam" in run.stdout, run.stderr
    assert "A-2 -> cam" in run.stdout, run.stderr
    (summary,) = tmp_path.rglob("summary.json")
    (flow,) = json.loads(summary.read_text())["flows"]
    assert flow["guarantee_bps"] == 20_000_000
