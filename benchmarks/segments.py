"""Whether promises on a segment's link and on the node's own are kept while both are flooded, at a gateway.

Pods of two clusters are promised 20 and 60 of a segment of 100 Mbit/s, two others 30 and 40 of an uplink of
100, and on each link one more, without a promise, sends three times what it carries. A run is held if each
gets 0.95 of what its promise is worth to TCP. Needs root or user namespaces, iperf3, and an idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.system.plugin.conftest import GUARANTEE, Document, Node, network  # noqa: E402
from tests.system.plugin.runtimes import ANNOTATIONS  # noqa: E402
from tests.system.plugin.segment_lab import DEVICE, FAR, GATEWAY, HERE, Lab, others  # noqa: E402

RUNS, SECONDS = 10, 4
HELD = 0.95
PAYLOAD = 1448 / 1514  # of a full frame
# What is there behind a switch with a slow port.
SWITCH = """\
-n {place} link set eth0 netns switch name {place}
-n switch link add lan-{place} type bridge
-n switch link set {place} master lan-{place} up
-n switch link set lan-{place} up
-n switch link add slow-{place} master lan-{place} type veth peer name eth0 netns {place}
-n switch link set slow-{place} up
-n {place} addr add {address}/24 dev eth0
-n {place} link set eth0 up
-n {place} route add default via {gateway}
"""
PORT = "qdisc add dev slow-{place} root tbf rate 100mbit burst 16kb limit 128kb\n"


FLOOD = "--udp --bitrate 300M --length 1400"


class Pod(NamedTuple):
    """Who sends; the promise is in Mbit/s of layer 2, and 0 for who floods."""

    name: str
    cluster: str
    promise: int = 0


class Link(NamedTuple):
    """A link of the node, what is there, and who sends by it."""

    uplink: str
    place: str
    address: str
    gateway: str
    pods: tuple[Pod, ...]


SEGMENT = Link("eth1", "device", DEVICE, GATEWAY, (Pod("A-1", "a", 20), Pod("B-1", "b", 60), Pod("A-2", "a")))
MAIN = Link("eth2", "far", FAR, HERE, (Pod("A-3", "a", 30), Pod("B-3", "b", 40), Pod("A-4", "a")))
LINKS = (SEGMENT, MAIN)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as output:
        subprocess.run([sys.executable, ROOT / "plugin/build.py", "--output", output], check=True)
        plugin = Path(output) / "concorde"
        for enforcement, kept in (("node", 9), ("none", 0)):
            held = sum(run(plugin, enforcement) for _ in range(RUNS))
            goal = f"at least {kept}" if kept else "none"
            print(f"{enforcement}: held in {held} of {RUNS} runs (goal: {goal})")


def run(plugin: Path, enforcement: str) -> bool:
    """One run, printed; whether it was held."""
    node = Node(plugin)
    try:
        got = rates(gateway(node, enforcement))
    finally:
        node.close()
    print(enforcement, ", ".join(f"{pod} {rate:.2f} Mbit/s" for pod, rate in got.items()), flush=True)
    promised = {pod.name: pod.promise for link in LINKS for pod in link.pods if pod.promise}
    return all(got[name] >= HELD * PAYLOAD * promise for name, promise in promised.items())


def gateway(node: Node, enforcement: str) -> Lab:
    """The gateway with its pods, and both links."""
    lab = Lab(node)
    node.run("ip", "netns", "add", "switch")
    for link in LINKS:
        for line in SWITCH.format(**link._asdict()).splitlines():
            node.run("ip", *line.split())
        node.in_pod("switch", "tc", "-batch", "-", stdin=PORT.format(place=link.place))
    for number, cluster in enumerate("ab"):
        own = {**kept(enforcement, SEGMENT), "bridge": f"dev-{cluster}"}
        lab.define(plant(cluster), network(plant(cluster), 64 + number, **own))
    for pod in SEGMENT.pods:
        lab.others(pod.name)
        promises = {f"{GUARANTEE}.net1": f"{pod.promise}M"} if pod.promise else {}
        asked = plant(pod.cluster), others(pod.name)
        attached(lab.call("ADD", pod.name, *asked, promises=promises, cluster=pod.cluster))
        by = f"172.{64 + 'ab'.index(pod.cluster)}.1.1"
        node.in_pod(pod.name, *f"ip route add {DEVICE} via {by} dev net1".split())
    for pod in MAIN.pods:
        node.add_pod_namespace(pod.name)
        given = {ANNOTATIONS: {GUARANTEE: f"{pod.promise}M"}} if pod.promise else {}
        own = network(f"cluster-{pod.cluster}", 18 + "ab".index(pod.cluster), **kept(enforcement, MAIN))
        attached(node.call("ADD", pod.name, {**own, "runtimeConfig": given}))
    return lab


def plant(cluster: str) -> str:
    """The definition of the segment that a cluster has."""
    return f"plant-{cluster}"


def kept(enforcement: str, link: Link) -> Document:
    """How promises on a link are kept, as a network says it."""
    keys = {"uplink": link.uplink, "capacity": "99M", "encapsulation": 0, "controlPorts": []}
    return {"enforcement": enforcement, "mtu": 1500, "capabilities": {ANNOTATIONS: True}, **keys}


def attached(answer: Document) -> None:
    """See that a pod was."""
    assert "code" not in answer, answer


def rates(lab: Lab) -> Mapping[str, float]:
    """What came of each promised pod (Mbit/s of payload) while the third of its link flooded it."""
    senders = [(pod, link, 5200 + at) for link in LINKS for at, pod in enumerate(link.pods)]
    for _, link, port in senders:
        lab.node.in_pod(link.place, *f"iperf3 --server --daemon --one-off --port {port}".split())
    flooding = [sender for sender in senders if not sender[0].promise]
    floods = [started(lab, *sender, FLOOD, SECONDS + 3) for sender in flooding]
    flows = {pod.name: started(lab, pod, link, port, "--json") for pod, link, port in senders if pod.promise}
    ends: dict[str, Any] = {name: json.loads(flow.communicate()[0])["end"] for name, flow in flows.items()}
    for flood in floods:
        flood.communicate()
    return {name: end["sum_received"]["bits_per_second"] / 1e6 for name, end in ends.items()}


def started(
    lab: Lab, pod: Pod, link: Link, port: int, options: str, seconds: int = SECONDS
) -> subprocess.Popen[str]:
    """Start a flow over a link."""
    flow = f"iperf3 --client {link.address} --port {port} --time {seconds} {options}".split()
    argv = lab.node.argv("nsenter", f"--net=/run/netns/{pod.name}", *flow)
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


if __name__ == "__main__":
    main()
