"""A gateway: a node with a cluster's pods, a device behind it, and a pod of another node."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.system.plugin.conftest import Document, Node, network
from tests.system.plugin.runtimes import ANNOTATIONS

Probe = tuple[str, str, int]
NETWORKS, FORWARD = "k8s.v1.cni.cncf.io/networks", "concorde.contmec.dev/forward"
DEVICE, GATEWAY, FAR, HERE = "172.17.16.120", "172.17.16.1", "172.16.2.2", "172.16.2.1"
DEFINITIONS, LEASES = "/run/concorde-networks/definitions", "/run/kube-edge/ipam-state"
FORWARDS = "/run/concorde-networks/forwards"
REACH = str(Path(__file__).with_name("reachability.py"))
CLUSTER = ["172.16.0.0/16", "10.96.0.0/12"]
# Listing 3.1 of the thesis.
BRIDGE = {
    "cniVersion": "0.3.1",
    "type": "bridge",
    "name": "bridge-conf",
    "bridge": "eb",
    "isGateway": True,
    "ipMasq": True,
    "ipam": {
        "type": "host-local",
        "ranges": [[{"subnet": "10.10.0.0/24"}]],
        "routes": [{"dst": "0.0.0.0/0"}],
        "dataDir": LEASES,
    },
}
MACVLAN = {
    "cniVersion": "1.0.0",
    "type": "macvlan",
    "name": "macvlan-conf",
    "master": "eth1",
    "mode": "bridge",
    "capabilities": {"ips": True, "mac": True},
    "ipam": {"type": "static"},
}
HOST_DEVICE = {"cniVersion": "0.4.0", "type": "host-device", "name": "device-conf", "device": "spare"}
# Promises kept on the segment's own link.
ON_SEGMENT: Document = {
    "type": "concorde",
    "enforcement": "node",
    "uplink": "eth1",
    "capacity": "100M",
    "reserve": 0,
    "encapsulation": 0,
    "controlPorts": [],
    "capabilities": {ANNOTATIONS: True},
}
OURS = {**network("ours", third=40), "bridge": "cni-ours", "cniVersion": "1.1.0"}
LINKS = f"""\
netns add device
netns add far
link add eth1 type veth peer name eth0 netns device
link add eth2 type veth peer name eth0 netns far
link add spare type veth peer name other
addr add {GATEWAY}/24 dev eth1
addr add {HERE}/24 dev eth2
link set eth1 up
link set eth2 up
"""


ETH0 = """\
link add eth0 type veth peer name other
addr add 172.16.1.9/24 dev eth0
link set eth0 up
"""


def others(pod: str) -> Document:
    """What that other plugin answered."""
    ends = [{"name": "eth0", "sandbox": f"/run/netns/{pod}"}]
    return {"cniVersion": "1.1.0", "interfaces": ends, "ips": [{"address": "172.16.1.9/24", "interface": 0}]}


class Lab:
    """The gateway, and calls of the list `[concorde, concorde-networks]` there."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.plugin = node.plugin.with_name("concorde-networks")
        self.keys: Document = {"clusterRanges": CLUSTER}
        node.run("ip", "-batch", "-", stdin=LINKS)
        for name, address, gateway in (("device", DEVICE, GATEWAY), ("far", FAR, HERE)):
            lines = f"addr add {address}/24 dev eth0\nlink set eth0 up\nroute add default via {gateway}\n"
            node.in_pod(name, "ip", "-batch", "-", stdin=lines)
        for definition in (BRIDGE, MACVLAN, HOST_DEVICE, OURS):
            self.define(str(definition["name"]), definition)

    def define(self, name: str, config: Document | str) -> None:
        """Keep a definition, as the operator does."""
        text = config if isinstance(config, str) else json.dumps(config)
        content = json.dumps({"spec": {"config": text}})
        script = f"mkdir -p {DEFINITIONS}/default && cat >{DEFINITIONS}/default/{name}.json"
        self.node.run("sh", "-c", script, stdin=content)

    def forward(self, name: str, forward: object) -> None:
        """Keep a list that pods may name, and tell the plugin."""
        script = f"mkdir -p {FORWARDS}/default && cat >{FORWARDS}/default/{name}.json"
        self.node.run("sh", "-c", script, stdin=json.dumps(forward))
        self.node.run("env", "CNI_COMMAND=RENEW", str(self.plugin))

    def first(self, pod: str) -> Document:
        """The pod's first interface."""
        self.node.add_pod_namespace(pod)
        self.node.in_pod(pod, "ip", "link", "set", "lo", "up")
        result = self.node.call("ADD", pod, network())
        assert "code" not in result, result
        return result

    def others(self, *pods: str) -> None:
        """Give pods a first interface as another plugin might have, which leads nowhere."""
        self.node.add_pod_namespace(*pods)
        for pod in pods:
            self.node.in_pod(pod, "ip", "-batch", "-", stdin=ETH0)

    def call(
        self,
        verb: str,
        pod: str,
        networks: object,
        previous: Document,
        forward: object = None,
        netns: str | None = None,
        promises: Document | None = None,
        cluster: str = "a",
        arguments: str = "",
    ) -> Document:
        """One of `concorde-networks`; `promises` are further annotations."""
        given = {
            NETWORKS: networks if isinstance(networks, str) else json.dumps(networks),
            **(promises or {}),
        }
        if forward is not None:
            given[FORWARD] = forward if isinstance(forward, str) else json.dumps(forward)
        document = {
            "cniVersion": "1.1.0",
            "name": f"cluster-{cluster}",
            "type": "concorde-networks",
            "runtimeConfig": {ANNOTATIONS: given},
            "prevResult": previous,
            **self.keys,
        }
        return self.node.call(verb, pod, document, plugin=self.plugin, netns=netns, arguments=arguments)

    def ask(self, place: str, probes: Iterable[Probe], expected: Iterable[Probe] = ()) -> list[Probe]:
        """Who of them answers somebody who is there; on the node if nowhere."""
        spec = json.dumps({"ask": list(probes), "expected": list(expected)})
        inside = [f"--net=/run/netns/{place}"] if place else []
        answer = self.node.run("nsenter", *inside, "/usr/bin/python3", REACH, spec)
        return [tuple(probe) for probe in json.loads(answer)]

    @contextmanager
    def serving(self, place: str, *ports: tuple[str, int]) -> Iterator[None]:
        """Let somebody serve."""
        inside = ["nsenter", f"--net=/run/netns/{place}"] if place else []
        command = [*inside, "/usr/bin/python3", REACH, json.dumps({"serve": ports})]
        with self.node.running(*command) as server:
            assert server.stdout is not None
            assert server.stdout.readline() == "ready\n"
            yield

    def left(self) -> Any:
        """What attachments leave on the node: links, leases and tables."""
        names = {link["ifname"] for link in self.node.show("ip", "-j", "link")}
        links = {name for name in names if name != "eb" and not name.startswith(("cni-", "dev-"))}
        leases = self.node.run("find", "/run", "-path", "*ipam*", "-name", "[0-9]*.[0-9]*").split()
        tables = self.node.run("nft", "list", "tables").split("\n")
        records = self.node.run("find", "/run/concorde-networks", "-name", "*@*")
        return links, leases, "table ip concorde-networks" in tables, records, self.node.leases("ours")
