"""What a pod sends to a service goes by its own class and past its guard, wherever the endpoint is.

The services' proxy is the real one; pods are kept out of connection tracking, as a testbed keeps them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from testbed import resources
from tests.system.edge.test_service_proxy import BRIDGED, SERVE
from tests.system.plugin.conftest import Node, network
from tests.system.plugin.uplinks import Pair, chain, ledger, on_uplink
from tests.waiting import until

SERVICE = "10.96.0.10"
REMOTE = "172.16.2.77"  # a pod of the other node
ENDPOINTS = {"A-1": "172.16.1.2", "A-2": "172.16.1.3", "remote": REMOTE}
BYTES = 100_000
NOISE = 6_000  # acknowledgements, ARP and the like
PROMISED = "c0de:10"  # A-1's class
UNTRACKED = "ip saddr { 172.16.1.0/24, 172.16.2.0/24 } notrack accept\n"
# Sends so much to a port, and says who took it.
SEND = f"""
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as connection:
    name = connection.recv(99).decode()
    connection.sendall(bytes({BYTES}))
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(9999):
        pass
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
    datagrams.settimeout(20)
    datagrams.sendto(b"who?", (sys.argv[1], int(sys.argv[3])))
    assert datagrams.recvfrom(99) == (name.encode(), (sys.argv[1], int(sys.argv[3])))
print(name)
"""


class Scene:
    """A node with A-1, which has a promise, and A-2; a server in each, and in the other node; a proxy."""

    def __init__(self, node: Node, stack: ExitStack) -> None:
        self.pair, self.node = Pair(node), node
        self.pair.bring_up({"A-1": on_uplink("100M"), "A-2": on_uplink()})
        self.pair.on("two", "ip", "address", "add", f"{REMOTE}/32", "dev", "lo")
        answers = f"ip route change 172.16.1.0/24 via 172.16.1.0 dev flannel.1 onlink src {REMOTE}"
        self.pair.on("two", *answers.split())
        hooks = "".join(
            f"chain {hook} {{ type filter hook {hook} priority raw;\n{UNTRACKED} }}\n"
            for hook in ("prerouting", "output")
        )
        node.run("nft", "-f", "-", stdin=f"table ip containers {{\n{hooks} }}\n")
        for name in ENDPOINTS:
            within = "two" if name == "remote" else name
            enter = ["nsenter", f"--net=/run/netns/{within}", "/usr/bin/python3", "-ISc", SERVE, name]
            served = stack.enter_context(node.running(*enter)).stdout
            assert served is not None
            assert served.readline() == "ready\n"
        self.serve("remote")
        command = ["services-proxy", "--cluster", "a", "--services", "10.96.0.0/16", "--node", "one"]
        command += ["--pods", "172.16.1.0/24", "--file", "/run/services.json"]
        stack.enter_context(node.running("/usr/bin/python3", "-IS", resources.EDGE, *command))
        until(lambda: "table ip services-a" in self.rules())

    def rules(self) -> str:
        return self.node.run("nft", "list", "ruleset")

    def serve(self, endpoint: str) -> None:
        """Let the service have this endpoint."""
        text = json.dumps({"kind": "List", "items": objects(ENDPOINTS[endpoint])})
        self.node.run(
            "sh", "-c", "cat >/run/services.new; mv /run/services.new /run/services.json", stdin=text
        )

    def wait_for(self, endpoint: str) -> None:
        until(lambda: f": {ENDPOINTS[endpoint]} . 8080" in self.rules())

    def be_bridged(self, bridged: str) -> None:
        if self.node.run("sh", "-c", f"cat {BRIDGED} 2>/dev/null || true") == "":
            if bridged == "1":
                pytest.skip("there is no br_netfilter")
            return
        self.node.run("tee", BRIDGED, stdin=bridged)
        until(lambda: ("ip daddr 172.16.1.0/24 masquerade" in self.rules()) == (bridged == "0"))

    def send(self, to: str, ports: tuple[int, int]) -> tuple[str, dict[str, int]]:
        """Who took what A-1 sent, and the bytes by which classes of the uplink."""
        said: list[str] = []
        command = ["/usr/bin/python3", "-ISc", SEND, to, *map(str, ports)]
        sent = self.pair.sent(lambda: said.append(self.node.in_pod("A-1", *command).strip()))
        return said[0], {name: count for name, count in sent.items() if count > NOISE}


def objects(endpoint: str) -> list[Any]:
    """A service of TCP and UDP, with its one endpoint."""
    ports = [{"name": "web", "protocol": "TCP", "port": 80}, {"name": "names", "protocol": "UDP", "port": 53}]
    metadata = {"name": "web", "namespace": "default"}
    return [
        {"kind": "Service", "metadata": metadata, "spec": {"clusterIP": SERVICE, "ports": ports}},
        {
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": "web"}},
            "addressType": "IPv4",
            "ports": [{**ports[0], "port": 8080}, {**ports[1], "port": 8053}],
            "endpoints": [{"addresses": [endpoint], "conditions": {"ready": True}}],
        },
    ]


@pytest.fixture(scope="module")
def scene(plugin: Path) -> Iterator[Scene]:
    node = Node(plugin)
    try:
        with ExitStack() as stack:
            yield Scene(node, stack)
    finally:
        node.close()


@pytest.mark.parametrize("bridged", ["1", "0"])
@pytest.mark.parametrize("endpoint", ["remote", "A-2", "A-1"])
@pytest.mark.long(one_in=4)
def test_what_goes_to_a_service_is_counted_as_what_goes_to_its_endpoint(
    scene: Scene, endpoint: str, bridged: str
) -> None:
    scene.be_bridged(bridged)
    scene.serve(endpoint)
    scene.wait_for(endpoint)
    who, sent = scene.send(SERVICE, (80, 53))
    assert who == endpoint
    if endpoint == "remote":
        _, directly = scene.send(REMOTE, (8080, 8053))
        assert list(sent) == list(directly) == [PROMISED]
        assert BYTES < sent[PROMISED] < 1.2 * BYTES
        assert sent[PROMISED] == pytest.approx(directly[PROMISED], rel=0.05)  # acknowledgements vary
    else:
        assert sent == {}  # it does not leave the node
    assert [one["dropped"] for one in ledger(scene.node)["attachments"]] == [0, 0]


def test_a_port_of_the_version_before_gets_hairpin_mode_by_a_repair(node: Node) -> None:
    node.add_pod_namespace("A-1")
    configuration = network()
    result = node.call("ADD", "A-1", configuration)
    (port,) = node.veths()
    assert hairpin(node, port)
    node.run("bridge", "link", "set", "dev", port, "hairpin", "off")
    checked = {**configuration, "prevResult": result}
    assert node.call("CHECK", "A-1", checked) == node.call("STATUS", "", configuration) == {}
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert hairpin(node, port)


def test_what_comes_back_to_a_pod_is_no_conflict(node: Node) -> None:
    """Of what it says to all: that it has its IPv4 address, and whether another has its IPv6 address."""
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", network())
    node.in_pod("A-1", "/usr/bin/python3", "-ISc", ANNOUNCED)
    assert node.show("ip", "-j", "neigh", pod="A-1") == []
    assert [one["dropped"] for one in ledger(node)["attachments"]] == [0]
    node.in_pod("A-1", "tee", "/proc/sys/net/ipv6/neigh/eth0/retrans_time_ms", stdin="10")
    for state in ("down", "up"):
        node.in_pod("A-1", *f"ip link set eth0 {state} addrgenmode eui64".split())
    until(lambda: "tentative" not in node.in_pod("A-1", "ip", "-6", "addr", "show", "dev", "eth0"))
    (link,) = node.show("ip", "-j", "-6", "addr", "show", "dev", "eth0", pod="A-1")
    assert [one.get("dadfailed", False) for one in link["addr_info"]] == [False]


# A gratuitous request, and the wait until it is back.
ANNOUNCED = """
import socket
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806))
link.bind(("eth0", 0x0806))
link.settimeout(20)
own, address = link.getsockname()[4], socket.inet_aton("172.16.1.2")
head = bytes.fromhex("ffffffffffff") + own + bytes.fromhex("08060001080006040001")
link.send(head + own + address + bytes(6) + address)
assert link.recv(99).startswith(head)
"""


def test_the_mode_of_anothers_port_is_its_own_to_choose(node: Node) -> None:
    Pair(node)
    node.add_pod_namespace("A-1")
    _, previous, configuration = chain(node, "bridge")
    assert "code" not in node.call("ADD", "A-1", configuration)
    port = next(one["name"] for one in previous["interfaces"] if one["name"].startswith("veth"))
    assert not hairpin(node, port)
    node.run(node.plugin, "reconcile")
    assert not hairpin(node, port)


def hairpin(node: Node, port: str) -> bool:
    (link,) = node.show("ip", "-j", "-d", "link", "show", "dev", port)
    return bool(link["linkinfo"]["info_slave_data"]["hairpin"])
