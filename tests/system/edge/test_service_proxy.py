"""What is sent to a service is answered by its endpoints: by a real proxy, in a node's namespaces.

The node has pods at a bridge of its own. Other pods are at another bridge, and so as far away as another
node's: what goes there is routed. As in a testbed, nothing that pods send is tracked (``notrack``).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from edge.services.annotations import AWARE_HINTS, ZONE_HINTS
from edge.services.rules import read
from testbed import resources
from testbed.access.components import Component
from testbed.access.place import InNamespace
from testbed.providers.netns.sandbox import Sandbox
from tests import cases
from tests.paths import ROOT
from tests.waiting import until

BRIDGED = "/proc/sys/net/bridge/bridge-nf-call-iptables"
PODS = {  # of this node, and of another
    "client": "10.61.0.2",
    "here-1": "10.61.0.3",
    "here-2": "10.61.0.4",
    "there-1": "10.62.0.2",
    "there-2": "10.62.0.3",
}
# More addresses of the client. A port that was closed is not used again for a minute, and a kernel with
# 14,116 of them - every second one - looks through all at each connection (net/ipv4/inet_hashtables.c).
MANY = [f"10.61.0.{100 + number}" for number in range(10)]
WEB, LONELY, EMPTY = "10.96.0.10", "10.96.0.11", "10.96.0.12"
SERVERS = ["here-1", "here-2", "there-1", "there-2"]
FREE_OF_TRACKING = """
table ip containers {
  chain raw-prerouting {
    type filter hook prerouting priority raw;
    ip saddr 10.61.0.0/24 notrack accept
    ip saddr 10.62.0.0/24 notrack accept
  }
  chain raw-output {
    type filter hook output priority raw;
    ip saddr 10.61.0.0/24 notrack accept
    ip saddr 10.62.0.0/24 notrack accept
  }
}
"""
# Says its name to whoever connects, and to each line and datagram.
SERVE = """
import socket, sys
from threading import Thread
name = sys.argv[1].encode()
listening = socket.create_server(("", 8080), backlog=512)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("", 8053))
def echo():
    while True:
        datagrams.sendto(name, datagrams.recvfrom(99)[1])
def converse(connection):
    with connection:
        connection.sendall(name)
        while connection.recv(99):
            connection.sendall(name)
Thread(target=echo, daemon=True).start()
print("ready", flush=True)
while True:
    Thread(target=converse, args=(listening.accept()[0],), daemon=True).start()
"""
# Connects so often, from some addresses in turn if there are any; says how often each server answered.
CONNECT = """
import collections, json, socket, sys
address, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sources = [(one, 0) for one in sys.argv[4:]] or [None]
found = collections.Counter()
for number in range(count):
    source = sources[number % len(sources)]
    try:
        with socket.create_connection((address, port), timeout=20, source_address=source) as connection:
            found[connection.recv(99).decode()] += 1
    except OSError as error:
        found[type(error).__name__] += 1
print(json.dumps(found))
"""
# Sends from each port of a range; says who answered which.
SEND = """
import json, socket, sys
address, port, first, last = sys.argv[1], *map(int, sys.argv[2:5])
found = {}
for source in range(first, last):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("", source))
        datagrams.connect((address, port))
        datagrams.settimeout(float(sys.argv[5]))
        try:
            datagrams.send(b"who?")
            found[source] = datagrams.recv(99).decode()
        except OSError as error:
            found[source] = type(error).__name__
print(json.dumps(found))
"""
# A connection that lasts: says who answers, now and once more when it is told.
TALK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=20) as connection:
    print(connection.recv(99).decode(), flush=True)
    open(sys.argv[3]).read()
    connection.sendall(b"still?")
    print(connection.recv(99).decode(), flush=True)
"""

# How many UDP flows to each range the kernel tracks from ports of a test.
TRACKED = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ipaddress import IPv4Network
from edge.services.conntrack import flows
print(json.dumps([sum(1 for _ in flows(IPv4Network(one))) for one in sys.argv[2:]]))
"""


# A pod that is gone without a word.
SILENT = """
table inet silent {
  counter asked { }
  chain input {
    type filter hook input priority filter;
    tcp dport 8080 counter name asked drop
  }
}
"""


class Station:
    """A node, its pods, and what its proxies read."""

    def __init__(self, box: Sandbox) -> None:
        box.add_nodes(["here"])
        self.node = box.node("here")
        lines = ["link set lo up", "link add lone type veth peer name peer"]
        lines += ["link set peer up", "link set lone up", "address add 192.0.2.1/24 dev lone"]
        lines += ["route add default dev lone"]
        for bridge, network in (("br0", "10.61.0"), ("br1", "10.62.0")):
            lines += [f"link add {bridge} type bridge", f"link set {bridge} up addrgenmode none"]
            lines += [f"address add {network}.1/24 dev {bridge}"]
        for number, pod in enumerate(PODS):
            bridge = "br1" if pod.startswith("there") else "br0"
            lines += [f"netns add {pod}", f"link add v{number} type veth peer name eth0 netns {pod}"]
            lines += [f"link set v{number} master {bridge}", f"link set v{number} up"]
            lines += [f"link set v{number} type bridge_slave hairpin on"]
        self.node.run(["ip", "-batch", "-"], stdin="".join(f"{line}\n" for line in lines))
        for pod, address in PODS.items():
            inside = ["link set lo up", f"address add {address}/24 dev eth0", "link set eth0 up"]
            inside += [f"route add default via {address.rpartition('.')[0]}.1"]
            command = ["ip", "-netns", pod, "-batch", "-"]
            self.node.run(command, stdin="".join(f"{line}\n" for line in inside))
        more = "".join(f"address add {address}/24 dev eth0\n" for address in MANY)
        self.node.run(["ip", "-netns", "client", "-batch", "-"], stdin=more)
        self.node.run(["tee", "/proc/sys/net/ipv4/ip_forward"], stdin="1")
        # Who has been sent one is for a second not told that nobody is there (net/ipv4/route.c, rate_last).
        redirects = [f"/proc/sys/net/ipv4/conf/{one}/send_redirects" for one in ("all", "br0", "br1")]
        self.node.run(["tee", *redirects], stdin="0")
        self.node.run(["nft", "-f", "-"], stdin=FREE_OF_TRACKING)
        for pod in SERVERS:
            inside = [*self.pod(pod).entrance, "python3", "-ISc", SERVE, pod]
            Component(pod, self.node, f"/run/{pod}", inside).start()
        for pod in SERVERS:
            until(lambda pod=pod: self.said(f"/run/{pod}/log"))  # type: ignore[misc]
        self.proxy = self.proxy_of("a", "10.96.0.0/16")

    def pod(self, name: str) -> InNamespace:
        return InNamespace(name, self.node, f"/run/netns/{name}", PODS[name], "")

    def proxy_of(self, cluster: str, services: str, *more: str) -> Component:
        file = f"/run/services-{cluster}.json"
        command = ["/usr/bin/python3", "-IS", str(resources.EDGE), "services-proxy", "--cluster", cluster]
        command += ["--services", services, "--pods", "10.61.0.0/24", "--node", "here", "--file", file, *more]
        return Component("proxy", self.node, f"/run/proxy-{cluster}", command)

    def write(self, services: dict[str, Sequence[str]], cluster: str = "a") -> None:
        """Let services, by their addresses, have these pods as endpoints."""
        self.write_objects([one for each in services.items() for one in of(*each)], cluster)

    def serve(self, services: dict[str, Sequence[str]]) -> None:
        """Let services have these endpoints, and wait until the proxy has written all of it."""
        self.write(services)
        ends = {PODS[pod] for pods in services.values() for pod in pods}
        until(lambda: self.served() == ({one for one, pods in services.items() if pods}, ends))

    def served(self) -> tuple[set[str], set[str]]:
        """Return which services lead to endpoints, and the addresses of all these."""
        _, endpoints, servers = self.table() or ("", {}, ())
        return {port.address for port, ends in endpoints.items() if ends}, {one.address for one in servers}

    def write_objects(self, items: Sequence[Any], cluster: str) -> None:
        """Let a proxy read these objects."""
        text = json.dumps({"kind": "List", "items": items})
        path = f"/run/services-{cluster}.json"
        self.node.run(["sh", "-c", f"cat >{path}.new && mv {path}.new {path}"], stdin=text)

    def said(self, path: str) -> str:
        return self.node.run(["cat", path], check=False).stdout

    def rules(self) -> str:
        return self.node.run(["nft", "list", "ruleset"]).stdout

    def table(self) -> Any:
        """Return what the proxy's table has: its layout, endpoints and servers; nothing if it is none."""
        said = self.node.run(["nft", "-j", "-nn", "list", "table", "ip", "services-a"], check=False)
        try:
            layout, state, _ = read(json.loads(said.stdout))
        except (KeyError, ValueError):
            return None
        return layout, state.endpoints, state.servers

    def connect(self, pod: str, address: str, count: int, sources: Sequence[str] = ()) -> Counter[str]:
        place = self.pod(pod) if pod else self.node
        command = ["python3", "-ISc", CONNECT, address, "80", str(count), *sources]
        return Counter(place.run(command, timeout=cases.most_seconds()).json())

    def send(
        self, address: str, first: int, count: int, pod: str = "client", wait: float = 20
    ) -> dict[str, str]:
        """Send from ports of a pod; the same ports are the same flows, as connection tracking sees them."""
        command = ["python3", "-ISc", SEND, address, "53", str(first), str(first + count), str(wait)]
        answers: dict[str, str] = self.pod(pod).run(command).json()
        return answers

    @contextmanager
    def proxy_that_stands_still(self) -> Iterator[None]:
        """Let the proxy see nothing meanwhile."""
        pid = self.said("/run/proxy-a/pid").strip()
        stop = "kill -STOP $0; until grep -q '^State:.T' /proc/$0/status; do :; done"
        self.node.run(["sh", "-c", stop, pid])
        try:
            yield
        finally:
            self.node.run(["kill", "-CONT", pid])

    def begin(self) -> None:
        self.proxy.start()

    def be_bridged(self, bridged: str) -> None:
        """Set whether bridged packets pass the tables, and wait until the proxy knows."""
        if self.node.run(["cat", BRIDGED], check=False).status:
            if bridged == "1":
                pytest.skip("there is no br_netfilter")
            return
        self.node.run(["tee", BRIDGED], stdin=bridged)
        until(lambda: ("ip daddr 10.61.0.0/24 masquerade" in self.rules()) == (bridged == "0"))


def of(address: str, pods: Sequence[str]) -> list[Any]:
    """Return a service of TCP and UDP, with a slice."""
    name = address.replace(".", "-")
    ports = [{"name": "web", "protocol": "TCP", "port": 80}, {"name": "names", "protocol": "UDP", "port": 53}]
    targets = [{**ports[0], "port": 8080}, {**ports[1], "port": 8053}]
    metadata = {"name": name, "namespace": "default"}
    endpoints = [{"addresses": [PODS[pod]], "conditions": {"ready": True}} for pod in pods]
    return [
        {"kind": "Service", "metadata": metadata, "spec": {"clusterIP": address, "ports": ports}},
        {
            "kind": "EndpointSlice",
            "metadata": {**metadata, "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4",
            "ports": targets,
            "endpoints": endpoints,
        },
    ]


@pytest.fixture(scope="module")
def station() -> Iterator[Station]:
    box = Sandbox.start("tests.services")
    try:
        station = Station(box)
        station.write({WEB: SERVERS, LONELY: ["here-1"], EMPTY: []})
        station.begin()
        until(lambda: "table ip services-a" in station.rules(), hint=station.proxy.last_words)
        yield station
    finally:
        box.stop()


@pytest.mark.timeout(cases.most_seconds())
@pytest.mark.parametrize("bridged", ["1", "0"])
def test_all_is_answered_evenly_whatever_bridged_packets_pass(station: Station, bridged: str) -> None:
    station.serve({WEB: SERVERS, LONELY: ["here-1"], EMPTY: []})
    station.be_bridged(bridged)
    port = 20_000 + 1000 * int(bridged)  # a flow goes on as it began
    counts = station.connect("client", WEB, cases.count("CONCORDE_CONNECTIONS", 400, 100_000), MANY)
    assert set(counts) == set(SERVERS)
    mean = sum(counts.values()) / len(SERVERS)
    # Of chi-squared with three degrees of freedom one in a million is above.
    assert sum((count - mean) ** 2 / mean for count in counts.values()) < 30.7
    # Of 80 none goes to one of four once in two thousand million times.
    assert set(station.send(WEB, port, 80).values()) == set(SERVERS)
    # A pod to itself, and to its neighbour; the node itself.
    assert station.connect("here-1", LONELY, 3) == {"here-1": 3}
    assert set(station.send(LONELY, port, 3, "here-1").values()) == {"here-1"}
    assert station.connect("here-2", LONELY, 3) == {"here-1": 3}
    assert set(station.connect("", WEB, 80)) == set(SERVERS)
    assert station.connect("client", EMPTY, 3) == {"ConnectionRefusedError": 3}
    assert set(station.send(EMPTY, port, 3).values()) == {"ConnectionRefusedError"}
    assert station.connect("", EMPTY, 1) == {"ConnectionRefusedError": 1}


def test_flows_stay_where_they_are_until_their_endpoint_goes(station: Station) -> None:
    station.serve({WEB: SERVERS})
    until(lambda: EMPTY not in station.rules())
    before = station.send(WEB, 30_000, 30)
    station.node.run(["mkfifo", "/run/go"])
    talk = [*station.pod("client").entrance, "python3", "-ISc", TALK, WEB, "80", "/run/go"]
    Component("talk", station.node, "/run/talk", talk).start()
    until(lambda: station.said("/run/talk/log"))
    spoke = station.said("/run/talk/log").strip()
    station.proxy.kill()
    assert station.send(WEB, 30_000, 30) == before  # nobody is needed for that
    gone = spoke if spoke in before.values() else before["30000"]
    station.node.run(["rm", "/run/proxy-a/log"])
    station.proxy.start()
    until(lambda: "ports of services" in station.said("/run/proxy-a/log"))
    assert station.send(WEB, 30_000, 30) == before
    station.write({WEB: [pod for pod in SERVERS if pod != gone]})
    until(
        lambda: (
            PODS[gone] + " . 8053\n" not in station.rules()
            and gone not in station.send(WEB, 30_000, 30).values()
        )
    )
    after = station.send(WEB, 30_000, 30)
    assert set(after.values()) <= set(SERVERS) - {gone}
    assert {port: one for port, one in after.items() if before[port] != gone} == {
        port: one for port, one in before.items() if one != gone
    }
    assert gone not in station.connect("client", WEB, 40)
    # A connection to it goes on as long as it answers, and a service without endpoints refuses others.
    station.write({WEB: []})
    until(lambda: station.connect("client", WEB, 1) == {"ConnectionRefusedError": 1})
    station.node.run(["sh", "-c", "echo go >/run/go"])
    until(lambda: len(station.said("/run/talk/log").split()) == 2, hint=lambda: station.said("/run/talk/log"))
    assert station.said("/run/talk/log").split() == [spoke, spoke]


def test_who_asks_an_endpoint_that_went_and_is_silent_is_answered_by_another(station: Station) -> None:
    station.serve({WEB: ["there-2"]})
    silent, counter = station.pod("there-2"), ["nft", "list", "counter", "inet", "silent", "asked"]
    silent.run(["nft", "-f", "-"], stdin=SILENT)
    station.node.run(["mkfifo", "/run/asked"])
    talk = [*station.pod("client").entrance, "python3", "-ISc", TALK, WEB, "80", "/run/asked"]
    Component("ask", station.node, "/run/ask", talk).start()
    until(lambda: "packets 0 " not in silent.run(counter).stdout)
    station.serve({WEB: ["here-1"]})
    until(lambda: station.said("/run/ask/log").strip() == "here-1")
    station.node.run(["sh", "-c", "echo >/run/asked"])
    silent.run(["nft", "delete", "table", "inet", "silent"])


def test_clusters_on_one_node_do_not_meet(station: Station) -> None:
    station.write({WEB: ["here-1"]})
    other = station.proxy_of("b", "10.97.0.0/16")
    station.write({"10.97.0.10": ["there-1"], WEB: ["there-2"]}, "b")
    other.start()
    until(lambda: "10.97.0.10" in station.rules())
    assert station.connect("client", "10.97.0.10", 1) == {"there-1": 1}
    until(lambda: station.connect("client", WEB, 5) == {"here-1": 5})
    # It is said when the rules have been written.
    until(lambda: "10.96.0.10 is not in 10.97.0.0/16" in station.said("/run/proxy-b/log"))
    other.kill()
    station.node.run([*other.argv, "--leave"])
    assert "services-b" not in station.rules()
    assert "table ip containers" in station.rules()
    assert station.connect("client", WEB, 5) == {"here-1": 5}


def test_one_local_one_hinted_and_one_that_ends_in_one_cluster(station: Station) -> None:
    local, hinted, ending = ("10.97.1.1", "10.97.1.2", "10.97.1.3")
    pods = {local: ["here-1", "there-1"], hinted: ["here-2", "there-2"], ending: ["here-1", "there-1"]}
    services, slices = {}, {}
    for address, names in pods.items():
        services[address], slices[address] = of(address, names)
    services[local]["spec"]["internalTrafficPolicy"] = "Local"
    for one, node in zip(slices[local]["endpoints"], ("here", "there"), strict=True):
        one["topology"] = {"kubernetes.io/hostname": node}
    services[hinted]["metadata"] |= {"annotations": {AWARE_HINTS: "Auto"}}
    hints = {PODS["here-2"]: ["north"], PODS["there-2"]: ["south"]}
    slices[hinted]["metadata"]["annotations"] = {ZONE_HINTS: json.dumps(hints)}
    for one, serving in zip(slices[ending]["endpoints"], (False, True), strict=True):
        one["conditions"] = {"ready": False, "serving": serving, "terminating": True}

    def write() -> None:
        station.write_objects([*services.values(), *slices.values()], "c")

    write()
    proxy = station.proxy_of("c", "10.97.1.0/24", "--zone=south")
    proxy.start()
    until(lambda: ending in station.rules(), hint=proxy.last_words)
    assert station.connect("client", local, 6) == {"here-1": 6}
    assert station.connect("client", hinted, 6) == {"there-2": 6}
    assert station.connect("client", ending, 6) == {"there-1": 6}
    # None here, though there is one elsewhere; none for this zone; one that is ready, though others serve.
    slices[local]["endpoints"] = slices[local]["endpoints"][1:]
    slices[hinted]["endpoints"] = slices[hinted]["endpoints"][:1]
    slices[ending]["endpoints"] += of(ending, ["here-2"])[1]["endpoints"]
    write()
    until(lambda: station.connect("client", ending, 6) == {"here-2": 6})
    assert station.connect("client", local, 2) == {"ConnectionRefusedError": 2}
    assert station.connect("client", hinted, 6) == {"here-2": 6}
    proxy.kill()
    station.node.run([*proxy.argv, "--leave"])


def test_plain_flows_are_not_tracked_and_those_to_services_are(station: Station) -> None:
    fresh = "10.96.0.13"  # to which no flow is
    station.write({fresh: ["there-1"]})
    until(lambda: station.connect("client", fresh, 2) == {"there-1": 2})
    station.send(PODS["there-2"], 34_000, 5, wait=0)  # where nobody listens
    assert set(station.send(fresh, 34_000, 5).values()) == {"there-1"}
    tracked = [*("python3", "-ISc", TRACKED, str(ROOT)), f"{PODS['there-2']}/32", f"{fresh}/32"]
    assert station.node.run(tracked).json() == [0, 5]
    assert "by somebody else" not in station.said("/run/proxy-a/log")  # others write rules, but not there


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize(
    "harm",
    [
        "delete table ip services-a",
        "flush table ip services-a",
        "flush chain ip services-a pick-1",
        "delete element ip services-a services { 10.96.0.10 . tcp . 80 }",
        "delete element ip services-a servers { 10.61.0.3 . tcp . 8080 }",
        "add element ip services-a services { 10.96.0.99 . tcp . 80 : goto pick-1 }",
    ],
)
def test_what_somebody_does_to_the_table_is_undone(station: Station, harm: str) -> None:
    station.serve({WEB: ["here-1"]})
    before = station.table()
    with station.proxy_that_stands_still():
        station.node.run(["nft", harm])
        assert station.table() != before
    until(lambda: station.table() == before, hint=station.proxy.last_words)
    assert station.connect("client", WEB, 5) == {"here-1": 5}


WALK = """
import random, sys
sys.path.insert(0, sys.argv[1])
from ipaddress import IPv4Network
from edge.services.catalogue import Backends, Served, Together
from edge.services.node import Node
from edge.services.rules import Frame, Port, Target

draw, steps = random.Random(int(sys.argv[2])), int(sys.argv[3])
services, pods = IPv4Network("10.98.0.0/16"), IPv4Network("10.61.0.0/24")
frames = [Frame("walk", services, (pods,), bridged) for bridged in (True, False)]
node, together = Node(frames[0], print), Together()

def served(number):
    to = Port(f"10.98.0.{number}", draw.choice(("tcp", "udp")), 80)
    some = range(draw.randrange(6))
    there = {Target(f"10.61.0.{draw.randrange(2, 20)}", draw.choice((80, 81))) for _ in some}
    chosen = frozenset(one for one in there if draw.randrange(3))
    behind = frozenset(Port(one.address, to.protocol, one.port) for one in there)
    return Served({to: Backends(chosen, frozenset(there))} if draw.randrange(4) else {}, behind)

for step in range(steps):
    some = draw.sample(range(12), draw.randrange(5))
    together.take({("walk", str(number)): served(number) for number in some})
    if draw.randrange(5) == 0:
        node = Node(draw.choice(frames), print)
    node.apply(together.ports, together.servers, draw.choice((together.touched, None)))
    together.settled()
    fresh = Node(node.frame, print)
    fresh._read()
    assert fresh._layout == node.frame.layout
    assert {port: set(targets) for port, targets in fresh._endpoints.items()} == {
        port: set(one.chosen) for port, one in together.ports.items()
    }
    assert fresh._endpoints == node._endpoints
    assert fresh._servers == node._servers == set(together.servers)
    assert fresh._picks == node._picks
    assert not node.apply(together.ports, together.servers), "nothing was to be changed"
node.remove()
"""


@pytest.mark.long(counted=True)
def test_after_any_change_the_kernel_has_what_was_meant(station: Station) -> None:
    steps = cases.count("CONCORDE_WALKS", 5, 1000)
    command = ["python3", "-ISc", WALK, str(ROOT), str(cases.seed()), str(steps)]
    station.node.run(command, timeout=cases.most_seconds())


MEANWHILE = """
import subprocess, sys, time
sys.path.insert(0, sys.argv[1])
from ipaddress import IPv4Network
from edge.services.catalogue import Backends
from edge.services.node import Node
from edge.services.rules import Frame, Port, Target

node = Node(Frame("walk", IPv4Network("10.98.0.0/16")), print)
one = frozenset([Target("10.62.0.2", 80)])
ports = {Port(f"10.98.0.{number}", "tcp", 80): Backends(one, one) for number in (1, 2, 3)}
def apply(count):
    node.apply(dict(list(ports.items())[:count]), frozenset([Port("10.62.0.2", "tcp", 80)]))
apply(1)
assert node.look()
subprocess.run(["nft", "add table ip other"], check=True)
apply(2)
assert node.look()
subprocess.run(["nft", "delete element ip services-walk services { 10.98.0.1 . tcp . 80 }"], check=True)
apply(3)
while node.look():  # it is looked now and then
    time.sleep(0.01)
apply(3)
assert node.look()
assert set(Node(node.frame, print)._listed()[1].endpoints) == set(ports)
node.remove()
subprocess.run(["nft", "delete table ip other"], check=True)
"""


def test_what_somebody_does_between_two_changes_is_noticed(station: Station) -> None:
    station.node.run(["python3", "-ISc", MEANWHILE, str(ROOT)])


LIMIT = """
import sys
sys.path.insert(0, sys.argv[1])
from ipaddress import IPv4Network
from edge.services.catalogue import Backends
from edge.services.conntrack import flows
from edge.services.node import Node, room
from edge.services.rules import LEAST_ROOM, Frame, Port, Target

assert room(print) > LEAST_ROOM
node = Node(Frame("few", IPv4Network("10.99.0.0/16"), (IPv4Network("10.61.0.0/24"),), room=LEAST_ROOM), print)
target = frozenset([Target("10.62.0.2", 8053)])
print(sum(1 for _ in flows(node.frame.services)))
node.apply({Port("10.99.0.1", "udp", 53): Backends(target, target)}, {Port("10.62.0.2", "udp", 8053)})
"""


def test_what_one_pod_opens_costs_no_other_a_connection(station: Station) -> None:
    limit = ["python3", "-ISc", LIMIT, str(ROOT)]
    station.node.run(limit)
    station.send("10.99.0.1", 40_000, 1000, wait=0)
    # An eighth of the room at once, and then 25 each second.
    assert 128 <= int(station.node.run(limit).stdout) < 1000
    assert set(station.send("10.99.0.1", 40_000, 40, "here-2").values()) == {"there-1"}
    # Those that are open go on.
    assert set(station.send("10.99.0.1", 40_000, 40).values()) == {"there-1"}
    station.node.run(["nft", "delete", "table", "ip", "services-few"])
