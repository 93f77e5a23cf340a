"""Two nodes joined by a cable, VXLAN between them as flannel makes it, and a look at the tree's classes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tests.system.plugin.conftest import ANSWERS, CEILING, GUARANTEE, REFERENCE, Document, Node

HOST = {"one": "192.168.9.1", "two": "192.168.9.2"}
NEIGHBOUR = "192.168.9.9"  # where bystanders send to; nobody has to be there
MAC = {"one": "0e:00:00:00:00:01", "two": "0e:00:00:00:00:02"}
SUMS = "c0de:1", "c0de:fffc"  # of the classes below
SIDES = {"one": 1, "two": 2}


class Pair:
    """A node under test and the other end of its uplink: a namespace within the same sandbox.

    The other end is down at first. What a node sends of its own, and at any time (IPv6 joins groups), cannot
    then pass a tree of which only the qdisc is there yet.
    """

    def __init__(self, node: Node) -> None:
        self.node = node
        node.run(
            "ip", "-batch", "-", stdin="netns add two\nlink add eth0 type veth peer name eth0 netns two\n"
        )
        for side, other in (("one", "two"), ("two", "one")):
            self.on(side, "ip", "-batch", "-", stdin=overlay(side, other))
            self.on(side, *f"bridge fdb add {MAC[other]} dev flannel.1 dst {HOST[other]}".split())

    def plug_in(self) -> None:
        """Let packets pass the uplink, whose tree is complete."""
        self.on("two", "ip", "link", "set", "eth0", "up")
        # To be asked for its state makes the kernel do what is left of the change (linkwatch_sync_dev).
        (uplink,) = self.node.show("ip", "-j", "link", "show", "eth0")
        assert uplink["operstate"] == "UP"
        for side, number in SIDES.items():  # without a carrier it would have to wait for one
            self.on(side, *f"ip addr add fd00::{number}/64 dev eth0 nodad".split())

    def bring_up(self, networks: Mapping[str, Document]) -> None:
        """Attach pods, in whose order classes are numbered, and plug in."""
        self.node.add_pod_namespace(*networks)
        for pod, network in networks.items():
            answer = self.node.call("ADD", pod, network)
            assert "code" not in answer, answer
        self.plug_in()

    @contextmanager
    def iperf(self, pod: str, port: int, to: str, options: str = "") -> Iterator[None]:
        """Let a pod send to an address of the other end for a while, or as iperf3's options say."""
        # UDP is answered from the address that the route takes, unless it is bound.
        self.on("two", *f"iperf3 --server --daemon --one-off --bind {to} --port {port}".split())
        flow = f"iperf3 --client {to} --time 90 --port {port} {options}".split()
        with self.node.running("nsenter", f"--net=/run/netns/{pod}", *flow):
            yield

    def received(self, device: str, pod: str = "") -> int:
        """Bytes that a device of the node, or of a pod, has got."""
        (link,) = self.node.show("ip", "-j", "-s", "link", "show", "dev", device, pod=pod)
        return int(link["stats64"]["rx"]["bytes"])

    def on(self, side: str, *command: str, stdin: str = "") -> str:
        enter = ["nsenter", "--net=/run/netns/two"] if side == "two" else []
        return self.node.run(*enter, *command, stdin=stdin)

    def classes(self) -> dict[str, int]:
        """Bytes each class of the uplink has sent."""
        words = self.node.run("tc", "-s", "class", "show", "dev", "eth0").split()
        starts = [at for at, word in enumerate(words) if word == "class"]
        found = {}
        for at, end in zip(starts, [*starts[1:], len(words)], strict=True):
            own = words[at:end]
            if own[1] != "htb":
                continue  # of a queue
            found[own[2]] = int(own[own.index("Sent") + 1])
        return found

    def qdisc(self) -> Any:
        (shown,) = self.node.show("tc", "-j", "-s", "qdisc", "show", "dev", "eth0", "root")
        return shown

    def sent(self, action: Callable[[], object]) -> dict[str, int]:
        """How many bytes each class sent meanwhile; none passed by, and the classes' sum is the qdisc's."""
        before = self.settled()
        action()
        return {name: sent - before.get(name, 0) for name, sent in self.settled().items()}

    def settled(self) -> dict[str, int]:
        """The classes' bytes at a moment when nothing is under way."""
        while True:
            before, found, after = self.qdisc(), self.classes(), self.qdisc()
            if before["bytes"] == after["bytes"] and after["backlog"] == 0:
                break
        found = {name: count for name, count in found.items() if name not in SUMS}
        assert after["options"]["direct_packets_stat"] == 0
        assert sum(found.values()) == after["bytes"]
        return found


def gained(read: Callable[[], int], seconds: float) -> float:
    """What a counter gains in that time, a second."""
    begun, before = time.monotonic(), read()
    time.sleep(seconds)
    return (read() - before) / (time.monotonic() - begun)


def overlay(side: str, other: str) -> str:
    """One node's end: the uplink, flannel's VTEP, and routes to the other node's pods of both clusters."""
    mine, theirs = SIDES[side], SIDES[other]
    lines = [
        "link set lo up",
        f"addr add {HOST[side]}/24 dev eth0",
        *(["link set eth0 up"] if side == "one" else []),
        f"link add flannel.1 type vxlan id 1 dev eth0 local {HOST[side]} dstport 8472 nolearning",
        f"link set flannel.1 address {MAC[side]} mtu 1450 up",
    ]
    for cluster in (16, 17):
        lines += [
            f"addr add 172.{cluster}.{mine}.0/32 dev flannel.1",
            f"route add 172.{cluster}.{theirs}.0/24 via 172.{cluster}.{theirs}.0 dev flannel.1 onlink",
            f"neigh add 172.{cluster}.{theirs}.0 lladdr {MAC[other]} dev flannel.1 nud permanent",
        ]
    lines.append(f"neigh add {NEIGHBOUR} lladdr 0e:00:00:00:00:09 dev eth0 nud permanent")
    return "\n".join(lines) + "\n"


def on_uplink(
    guarantee: str = "", ceiling: str = "", cluster: str = "a", answers: str = "", **keys: Any
) -> Document:
    """The network of a cluster with enforcement node, as passed for a pod with these annotations."""
    given = ((GUARANTEE, guarantee), (CEILING, ceiling), (ANSWERS, answers))
    return {
        "cniVersion": "1.1.0",
        "name": f"cluster-{cluster}",
        "type": "concorde",
        "bridge": f"cni-{cluster}",
        "subnet": f"172.{16 if cluster == 'a' else 17}.1.0/24",
        "mtu": 1450,
        "enforcement": "node",
        "uplink": "eth0",
        "capacity": "1G",
        "runtimeConfig": {"io.kubernetes.cri.pod-annotations": {key: value for key, value in given if value}},
        **keys,
    }


def chain(node: Node, kind: str) -> tuple[Document, Document, Document]:
    """Pod A-1 behind a reference plugin: its configuration, its result, and Concorde's configuration then."""
    ipam = {"type": "host-local", "subnet": "172.16.1.0/24", "dataDir": "/run/host-local"}
    first = {"cniVersion": "1.0.0", "name": "cluster-a", "type": kind, "mtu": 1450, "ipam": ipam}
    previous = node.call("ADD", "A-1", first, plugin=REFERENCE / kind)
    return (
        first,
        previous,
        on_uplink("100M", "200M", subnet=None, prevResult=previous, cniVersion="1.0.0"),
    )


def ledger(node: Node) -> Any:
    return json.loads(node.run(node.plugin, "ledger", "--json"))
