"""Lists of plugins as a runtime calls them: the reference plugins, and Concorde at a place among them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.system.plugin.conftest import CEILING, GUARANTEE, REFERENCE, Document, Node
from tests.system.plugin.runtimes import ANNOTATIONS, keep

SUBNET = "10.66.0.0/24"
LIMIT = 1_000_000_000  # bits a second, and bits at once; no test is about it
TWO_WAYS = "ingress", "egress"
MAIN: dict[str, Document] = {
    "ptp": {"type": "ptp", "mtu": 1450, "ipMasq": False},
    "bridge": {"type": "bridge", "bridge": "br-x", "isGateway": True, "mtu": 1450},
    "macvlan": {"type": "macvlan", "master": "eth0", "mode": "bridge"},
}
MORE: dict[str, Document] = {
    "portmap": {"type": "portmap", "snat": True},
    "firewall": {"type": "firewall"},
    "tuning": {"type": "tuning", "sysctl": {"net.ipv4.ip_forward": "0"}},
    "bandwidth": {"type": "bandwidth"},
}
OFFERED = {"portmap": "portMappings", "bandwidth": "bandwidth", "concorde": ANNOTATIONS}


class Chain:
    """One network's list on a node, the first of which makes the interface."""

    def __init__(self, node: Node, kinds: Sequence[str], name: str = "cluster-x", **keys: Any) -> None:
        """``keys`` are Concorde's."""
        self.node, self.name = node, name
        ipam = {
            "type": "host-local",
            "subnet": SUBNET,
            "dataDir": "/run/host-local",
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        concorde = {"type": "concorde", "enforcement": "none", "mtu": 1450, **keys}
        known = {**MAIN, **MORE, "concorde": concorde}
        self.plugins = [dict(known[kind]) for kind in kinds]
        if kinds[0] in MAIN:
            self.plugins[0]["ipam"] = ipam
        self.results: dict[str, Document] = {}
        self.offered: dict[str, Document] = {}

    def offer(
        self, *, guarantee: str = "", ceiling: str = "", limited: Sequence[str] = (), ports: int = 0
    ) -> Document:
        """What the runtime offers for a pod: ``limited`` are the ways that `bandwidth` is to limit."""
        given = ((GUARANTEE, guarantee), (CEILING, ceiling))
        offered: Document = {ANNOTATIONS: {key: value for key, value in given if value}}
        if limited:
            offered["bandwidth"] = {f"{way}{what}": LIMIT for way in limited for what in ("Rate", "Burst")}
        if ports:
            offered["portMappings"] = [{"hostPort": ports, "containerPort": 80, "protocol": "tcp"}]
        return offered

    def add(self, container: str, netns: str | None = None, offered: Document | None = None) -> Document:
        """Attach a pod, plugin after plugin; what one refused is in the answer.

        ``netns`` is the name of its namespace, if it is not the container's; empty is unknown, for DEL.
        """
        self.offered[container] = offered or {}
        result: Document | None = None
        for plugin in self.plugins:
            result = self.call("ADD", plugin, container, result, netns)
            if "code" in result:
                return result
        assert result is not None
        self.results[container] = result
        return result

    def keep(self, container: str) -> None:
        """Let the runtime keep what it knows of an attachment."""
        (at,) = (at for at, plugin in enumerate(self.plugins) if plugin["type"] == "concorde")
        configuration = self.configuration(self.plugins[at], container, None)
        result = self.results[container]
        keep(self.node, container, configuration, result, before=self.plugins[0] if at else None)

    def check(self, container: str, netns: str | None = None) -> list[Document]:
        """What plugins find wrong."""
        result = self.results[container]
        answers = [self.call("CHECK", plugin, container, result, netns) for plugin in self.plugins]
        return [answer for answer in answers if answer]

    def delete(self, container: str, netns: str | None = None) -> list[Document]:
        """Detach it, the last plugin first; what was refused."""
        result = self.results.get(container)
        answers = [self.call("DEL", plugin, container, result, netns) for plugin in reversed(self.plugins)]
        return [answer for answer in answers if answer]

    def call(
        self, verb: str, plugin: Document, container: str, result: Document | None, netns: str | None = None
    ) -> Document:
        """Call one of them."""
        path = None if plugin["type"] == "concorde" else REFERENCE / plugin["type"]
        configuration = self.configuration(plugin, container, result)
        where = f"/run/netns/{container if netns is None else netns}" if netns != "" else ""
        return self.node.call(verb, container, configuration, plugin=path, netns=where)

    def configuration(self, plugin: Document, container: str, result: Document | None) -> Document:
        """A plugin's standard input."""
        offered = self.offered.get(container, {})
        capability = OFFERED.get(plugin["type"], "")
        passed = {capability: offered[capability]} if capability in offered else {}
        return {
            "cniVersion": "1.0.0",
            "name": self.name,
            **plugin,
            **({"runtimeConfig": passed} if passed else {}),
            **({"prevResult": result} if result is not None else {}),
        }


class Outside:
    """A neighbour of the node, who counts whose datagrams get there."""

    ADDRESS, PORT = "192.168.9.2", 9

    def __init__(self, node: Node) -> None:
        self.node = node
        node.run("ip", "-batch", "-", stdin=UNDERLAY)
        node.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
        inside = ["nsenter", "--net=/run/netns/two"]
        node.run(*inside, "ip", "-batch", "-", stdin=BEYOND)
        node.run(*inside, "nft", "-f", "-", stdin=COUNT)

    def senders(self) -> dict[str, int]:
        """Datagrams that have come, by their source."""
        listed = ("nsenter", "--net=/run/netns/two", "nft", "-j", "list", "set", "ip", "outside", "senders")
        (found,) = (entry["set"] for entry in self.node.show(*listed)["nftables"] if "set" in entry)
        elements = (element["elem"] for element in found.get("elem", ()))
        return {element["val"]: element["counter"]["packets"] for element in elements}

    def send(self, pod: str, count: int, source: str = "") -> None:
        """Let a pod send datagrams here, in another's name if one is given."""
        spec = {"to": self.ADDRESS, "port": self.PORT, "count": count, "size": 100}
        spec |= {"forged": source} if source else {}
        self.node.in_pod(pod, "/usr/bin/python3", SEND, json.dumps(spec))


SEND = str(Path(__file__).with_name("send.py"))
UNDERLAY = """\
netns add two
link add eth0 type veth peer name eth0 netns two
addr add 192.168.9.1/24 dev eth0
link set eth0 up
"""
BEYOND = """\
addr add 192.168.9.2/24 dev eth0
link set eth0 up
route add default via 192.168.9.1
"""
COUNT = """\
table ip outside {
    set senders { type ipv4_addr; flags dynamic; counter; }
    chain prerouting {
        type filter hook prerouting priority 0;
        udp dport 9 add @senders { ip saddr }
    }
}
"""
