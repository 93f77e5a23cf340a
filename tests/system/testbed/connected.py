"""Two clusters with ways to the same camera, whoever runs their pods: what leads there, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from testbed.access.place import Place
from testbed.assembly import assemble
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.paths import ROOT
from tests.system.testbed.knocking import PROGRAM, heard, knock
from tests.waiting import until

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
# A device with two gateways, and a proxy pod on each.
LAMP_GATEWAYS = ("worker-01", "worker-02")
LAMP = (
    "segments.yard={cidr: 172.30.18.0/24, nodes: {worker-01: eth3, worker-02: eth3}}",
    "devices.lamp={segment: yard, address: 172.30.18.20, "
    "components: {all: {TCP: [8554], UDP: [5004], HTTP: [8080]}}}",
    "connections.lamp={cluster: a, device: lamp, components: [all], replicas: 2}",
)
DECLARED = [f"{CAMERA}:{port}" for port in (8554, 5004, 8080)]
UNDECLARED = [f"{CAMERA}:9", "172.30.16.121:502", "172.30.16.1:22"]
# What a device has no business with: nodes, pods, proxies by both of their addresses, services.
OF_CLUSTERS = ["192.168.56.13:22", "192.168.56.12:22", "172.16.2.2:80", "172.16.1.2:80", "10.96.0.11:80"]
PROXIES = ["172.16.2.3:8554", "100.64.0.2:8554", "100.64.0.2:8000", "172.20.2.2:8554"]


def made(mode: str, other: str, *more: str, orchestrator: str = "cni") -> Testbed:
    """Return a testbed of two clusters with connections of two modes to one camera."""
    ways = [
        f"connections.cam.mode={mode}",
        f"connections.other={{cluster: b, device: camera, components: [video, settings], mode: {other}}}",
        "connections.door={cluster: a, device: door, components: [lock]}",
    ]
    return assemble(load(DEVICES, [*OTHER_CLUSTER, *ways, *LAMP, *more]), "netns", orchestrator)


def ask(place: Place, name: str) -> object:
    """Return what comes back of the camera's ports by a name."""
    return place.run([*PROGRAM, "ask", name, "8554", "5004", "8080"]).json()


def refused(place: Place, ends: list[str]) -> object:
    """Return which of these answer that nobody listens there: they are reached."""
    return place.run([*PROGRAM, "refused", *ends]).json()


def the_clusters_reach_the_camera(
    testbed: Testbed, found: Callable[[str, str], str] = lambda _pod, name: name
) -> None:
    """``found`` says by what a pod asks for a service."""
    pods = testbed.networks
    for pod, name in (("A-1", "dop-cam"), ("A-2", "dop-cam"), ("B-1", "dop-other")):
        assert ask(pods[pod], found(pod, name)) == ANSWERED, pod
    own = [f"{testbed.pods[name].address}:9" for name in ("A-1", "A-2", "dop-cam-1")]
    web = [f"{testbed.addressing.service('web')}:80"]
    for pod in ("A-1", "A-2", "dop-cam-1"):
        ends = [one for one in (*own, *web) if not one.startswith(f"{testbed.pods[pod].address}:")]
        assert refused(pods[pod], ends) == ends, pod


def two_gateways_lead_to_the_lamp(
    testbed: Testbed, found: Callable[[str, str], str] = lambda _pod, name: name
) -> None:
    """Each of its proxy pods does, and by its name the one that is left while the other is away."""
    answered = {**ANSWERED, "page": "lamp /state\n"}
    proxies = {name: testbed.pods[name] for name in ("dop-lamp-1", "dop-lamp-2")}
    assert [testbed.addressing.pods[name].node for name in proxies] == list(LAMP_GATEWAYS)
    pods = ("A-1", "A-2")
    for pod in pods:
        answers = [ask(testbed.networks[pod], proxy.address) for proxy in proxies.values()]
        assert answers == [answered, answered], pod
    for name, proxy in proxies.items():
        testbed.remove(name)
        until(partial(leads, testbed, proxy.address, to=False))
        for pod in pods:
            assert ask(testbed.networks[pod], found(pod, "dop-lamp")) == answered, (pod, name)
        testbed.add(name)
        until(partial(leads, testbed, testbed.pods[name].address))


def leads(testbed: Testbed, address: str, to: bool = True) -> bool:
    """Whether services of cluster a lead to an address on all of its workers, or on none."""
    listed = ["nft", "list", "map", "ip", "services-a", "endpoints"]
    each = (testbed.nodes[name].run(listed).stdout for name in LAMP_GATEWAYS)
    return all((f" : {address} . " in one) == to for one in each)


def nobody_else_does(testbed: Testbed) -> None:
    pods, gateway, node = testbed.networks, testbed.nodes[GATEWAY], testbed.nodes["worker-01"]
    camera, other = testbed.provider.devices["camera"].node, pods["A-2"]
    before = heard(camera)
    node.run(["ip", "route", "add", "172.30.16.0/24", "via", "192.168.56.13"])
    for place in (pods["A-1"], other, pods["B-1"], node):
        knock(gateway, place, [*DECLARED, *UNDECLARED])
    # Neither by a proxy pod, to other ports or as if it were a router.
    proxy = testbed.pods["dop-cam-1"].address
    other.run([*PROGRAM, "knock", f"{proxy}:9", f"{proxy}:502"])
    other.run(["ip", "route", "add", "172.30.16.0/24", "via", proxy, "onlink", "dev", "eth0"])
    other.run([*PROGRAM, "knock", *DECLARED, *UNDECLARED])
    assert refused(other, [f"{proxy}:9"]) == [f"{proxy}:9"]  # all before it has arrived there
    assert heard(camera) == before


def the_camera_begins_nothing(testbed: Testbed) -> None:
    camera = testbed.provider.devices["camera"].node
    camera.run(["ip", "route", "add", "default", "via", "172.30.16.1"])
    before = {name: heard(place) for name, place in testbed.networks.items()}
    knock(testbed.nodes[GATEWAY], camera, [*OF_CLUSTERS, *PROXIES])
    assert {name: heard(place) for name, place in testbed.networks.items()} == before
