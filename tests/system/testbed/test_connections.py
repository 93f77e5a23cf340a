"""Ways from clusters to devices, for real: what leads there, what does not, and what a device can begin."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.access.place import Place
from testbed.assembly import assemble
from testbed.scenario import load
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests import verbs
from tests.paths import ROOT
from tests.system.testbed.knocking import PROGRAM, heard, knock

DEVICES = ROOT / "scenarios" / "examples" / "devices.yaml"
ANSWERED = {"tcp": True, "udp": True, "page": "camera /state\n", "body": "set"}
GATEWAY, CAMERA = "worker-02", "172.30.16.120"
# Two clusters on both workers, each with a way to the camera. B-1 is where the gateway is not.
WORKERS = "workers: [worker-01, worker-02]"
OTHER_CLUSTER = (
    f"clusters.b={{master: master-01, {WORKERS}, pod_cidr: 172.20.0.0/16, flannel: {{vni: 2}}}}",
    "pods.B-1={cluster: b, node: worker-01}",
    "services={web: {cluster: a, pods: [A-1, A-2]}}",
)
DECLARED = [f"{CAMERA}:{port}" for port in (8554, 5004, 8080)]
UNDECLARED = [f"{CAMERA}:9", "172.30.16.121:502", "172.30.16.1:22"]
# What a device has no business with: nodes, pods, proxies by both of their addresses, services.
OF_CLUSTERS = ["192.168.56.13:22", "192.168.56.12:22", "172.16.2.2:80", "172.16.1.2:80", "10.96.0.11:80"]
PROXIES = ["172.16.2.3:8554", "100.64.0.2:8554", "100.64.0.2:8000", "172.20.2.2:8554"]


def made(mode: str, backend: str) -> Testbed:
    """Return a testbed of two clusters with connections of a mode to one camera."""
    ways = [
        f"connections.cam.mode={mode}",
        f"connections.other={{cluster: b, device: camera, components: [video, settings], mode: {mode}}}",
        "connections.door={cluster: a, device: door, components: [lock]}",
        f"clusters.a.backend={backend}",
    ]
    return assemble(load(DEVICES, [*OTHER_CLUSTER, *ways]), "netns", "cni")


def ask(place: Place, name: str) -> object:
    """Return what comes back of the camera's ports by a name."""
    return place.run([*PROGRAM, "ask", name, "8554", "5004", "8080"]).json()


def refused(place: Place, ends: list[str]) -> object:
    """Return which of these answer that nobody listens there: they are reached."""
    return place.run([*PROGRAM, "refused", *ends]).json()


def the_clusters_reach_the_camera(testbed: Testbed) -> None:
    pods = testbed.pods
    for pod, name in (("A-1", "dop-cam"), ("A-2", "dop-cam"), ("B-1", "dop-other")):
        assert ask(pods[pod], name) == ANSWERED, pod
    own = [f"{pods[name].address}:9" for name in ("A-1", "A-2", "dop-cam-1")]
    web = [f"{testbed.addressing.service('web')}:80"]
    for pod in ("A-1", "A-2", "dop-cam-1"):
        ends = [one for one in (*own, *web) if not one.startswith(f"{pods[pod].address}:")]
        assert refused(pods[pod], ends) == ends, pod


def nobody_else_does(testbed: Testbed) -> None:
    pods, gateway, node = testbed.pods, testbed.nodes[GATEWAY], testbed.nodes["worker-01"]
    camera, other = testbed.provider.devices["camera"].node, pods["A-2"]
    before = heard(camera)
    node.run(["ip", "route", "add", "172.30.16.0/24", "via", "192.168.56.13"])
    for place in (pods["A-1"], other, pods["B-1"], node):
        knock(gateway, place, [*DECLARED, *UNDECLARED])
    # Neither by a proxy pod, to other ports or as if it were a router.
    proxy = pods["dop-cam-1"].address
    other.run([*PROGRAM, "knock", f"{proxy}:9", f"{proxy}:502"])
    other.run(["ip", "route", "add", "172.30.16.0/24", "via", proxy, "onlink", "dev", "eth0"])
    other.run([*PROGRAM, "knock", *DECLARED, *UNDECLARED])
    assert refused(other, [f"{proxy}:9"]) == [f"{proxy}:9"]  # all before it has arrived there
    assert heard(camera) == before


def the_camera_begins_nothing(testbed: Testbed) -> None:
    camera = testbed.provider.devices["camera"].node
    camera.run(["ip", "route", "add", "default", "via", "172.30.16.1"])
    before = {name: heard(place) for name, place in testbed.pods.items()}
    knock(testbed.nodes[GATEWAY], camera, [*OF_CLUSTERS, *PROXIES])
    assert {name: heard(place) for name, place in testbed.pods.items()} == before


CASES = [
    "translate-vxlan",
    "relay-host-gw",
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
    with made(mode, backend).running() as up:
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
