"""Ways to devices on real Kubernetes: two clusters by one gateway, proxy pods by their APIs, what is left."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.measurement import transfers
from bench.measurement.plan import plan
from edge.devices.rendering import TO_DEVICE
from testbed.kubernetes import proxies
from testbed.kubernetes.client import Client
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests.e2e.conftest import ledger, lent, until
from tests.system.testbed.connected import (
    GATEWAY,
    made,
    nobody_else_does,
    the_camera_begins_nothing,
    the_clusters_reach_the_camera,
    two_gateways_lead_to_the_lamp,
)

pytestmark = pytest.mark.by_turns
# The device's own servers do not listen where a flow goes.
SENT = (
    "devices.camera.components.stream={TCP: [7000]}",
    "connections.cam.components=[video, settings, stream]",
    "flows=[{from: A-1, to: cam, component: stream, duration: 1}]",
)


@pytest.fixture(scope="module")
def station() -> Iterator[Testbed]:
    """The first cluster's way is translated and has a promise, the second one's is relayed."""
    if lacking := [*packages.missing("socat"), *packages.missing("dnsmasq-base")]:
        pytest.skip("; ".join(lacking))
    with lent(made("translate", "relay", *SENT, "enforcement=node", orchestrator="kubernetes")) as testbed:
        yield testbed


def test_clusters_reach_devices_by_one_gateway_and_leave_nothing(station: Testbed, tmp_path: Path) -> None:
    assert station.check() == []
    the_clusters_reach_the_camera(station, lambda pod, name: address_of(station, pod, name))
    nobody_else_does(station)
    the_camera_begins_nothing(station)
    what_is_sent_arrives(station, tmp_path)
    who_is_promised_too_much_waits_and_is_told_why(station)
    one_that_is_made_anew_leads_there(station)
    two_gateways_lead_to_the_lamp(station, lambda pod, name: address_of(station, pod, name))
    nothing_is_left_of_what_went(station)


def address_of(station: Testbed, pod: str, name: str) -> str:
    """What a pod is told of a service's name."""
    return station.pods[pod].run(["getent", "hosts", name]).stdout.split()[0]


def what_is_sent_arrives(station: Testbed, reports: Path) -> None:
    before = received(station)
    done = transfers.run(plan(station, station.scenario.flows, 0.1), reports, lambda _seconds, _rates: None)
    assert [one.error for one in done.transfers.values()] == [None]
    assert received(station) - before > 100_000


def received(station: Testbed) -> int:
    """How many bytes the camera has got."""
    camera = station.provider.devices["camera"].node
    (shown,) = camera.run(["ip", "-j", "-s", "link", "show", "eth0"]).json()
    return int(shown["stats64"]["rx"]["bytes"])


def who_is_promised_too_much_waits_and_is_told_why(station: Testbed) -> None:
    """Cluster b is told of what cluster a holds of the segment's link."""
    client = next(one for one in station.clients if one.cluster == "b")
    much = proxies.pod(station.addressing, station.enforcement, "dop-other-1")
    much["metadata"]["name"] = "much"
    much["metadata"]["annotations"][TO_DEVICE] = "90M"
    client.apply([much])
    until(lambda: "no room for a guarantee of 90 Mbit/s on eth1" in events(client), every=0.2)
    assert "default/dop-cam-1" in events(client)
    client.run("delete", "pod", "much", "--wait=false")


def events(client: Client) -> str:
    found = client.get("events", "--field-selector=involvedObject.name=much")["items"]
    return "\n".join(event["message"] for event in found)


def one_that_is_made_anew_leads_there(station: Testbed) -> None:
    station.remove("dop-cam-1")
    assert promised(station) == []
    station.add("dop-cam-1")
    assert promised(station) == ["default/dop-cam-1"]
    until(lambda: station.check() == [], lambda: "\n".join(station.check()))
    the_clusters_reach_the_camera(station, lambda pod, name: address_of(station, pod, name))


def promised(station: Testbed) -> list[str]:
    """Who has promises on the segment's link."""
    held = ledger(station.nodes[GATEWAY])
    return [one["pod"] for one in held if one["interface"] == "net1" and one["guarantee"]]


def nothing_is_left_of_what_went(station: Testbed) -> None:
    gateway = station.nodes[GATEWAY]
    for name in [*station.pods]:
        station.remove(name)
    until(lambda: ledger(gateway) == [], lambda: str(ledger(gateway)), every=0.2)
    shown = gateway.run(["find", "/run/concorde-networks/attached", "-type", "f", "-name", "*.json"])
    assert shown.stdout == ""
    tables = gateway.run(["nft", "list", "tables"]).stdout
    assert "table ip concorde-networks" not in tables
    links = {one["ifname"] for one in gateway.run(["ip", "-j", "link"]).json()}
    assert not [name for name in links if name.startswith("veth")]
