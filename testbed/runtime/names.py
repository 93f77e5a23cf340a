"""Names of services for pods: on each worker, for each cluster with services, a dnsmasq that answers them.

It reads what the worker's proxy of the cluster writes (``edge.services.names``). Pods reach it as they reach
any service: kube-dns, at the usual address of the cluster's range, each by its own node. So its port on nodes
can be one that nobody else has, whatever else listens at 53: clusters share workers. The plugin's guard knows
these ports (``node/tunnels.py``): elsewhere it takes one question in 4,096 for VXLAN. It knows no other
server: what is no service of the cluster does not exist, and that is said at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from edge.services.annotations import Version, annotations_of_policy
from edge.services.catalogue import SERVICE_OF
from edge.services.names import DOMAIN, FILE, search
from edge.services.selection import LOCAL
from testbed.access.batch import Step
from testbed.access.components import Component
from testbed.access.place import Node, in_parallel
from testbed.runtime.cni import Json
from testbed.scenario import services
from testbed.scenario.addressing import Addressing
from testbed.scenario.blocks import HOSTNAME

PACKAGE, PROGRAM = "dnsmasq-base", "dnsmasq"
SERVICE, NAMESPACE = "kube-dns", "kube-system"
SLICES_FROM: Version = (1, 21)  # discovery.k8s.io/v1
DIRECTORY = "/run/names"  # on nodes, of all clusters
FIRST_PORT = 10_053  # on nodes, of the first cluster
READY_SECONDS = 30.0
# Becomes the server once there is what it is to say; its arguments: the file, then the command.
ONCE_TOLD = 'until [ -e "$0" ]; do sleep 0.05; done; exec "$@"'
# /etc/resolv.conf may lead to /run, of which each node has its own: there must be a file, to be covered.
MAKE_PLACE = """
file=$(readlink -m /etc/resolv.conf)
case $file in /run/*) mkdir -p "${file%/*}" && touch "$file" ;; esac
"""


def directory(cluster: str) -> str:
    """Return where, on a node, all that is about a cluster's names lies."""
    return f"{DIRECTORY}/{cluster}"


def hosts(cluster: str) -> str:
    """Return the directory on a node in which a proxy keeps the names, and dnsmasq finds them."""
    return f"{directory(cluster)}/hosts"


def resolver(cluster: str) -> str:
    """Return the path, on a node, of what is /etc/resolv.conf in a cluster's pods there."""
    return f"{directory(cluster)}/resolv.conf"


def address(addressing: Addressing, cluster: str) -> str:
    """Return the address at which a cluster's pods ask."""
    return str(services.of_names(addressing.service_range(cluster)))


def port(addressing: Addressing, cluster: str) -> int:
    """Return the port of a cluster's server on nodes, UDP and TCP."""
    return FIRST_PORT + list(addressing.scenario.clusters).index(cluster)


def asked(addressing: Addressing, cluster: str) -> list[str]:
    """Return the nodes whose pods may ask: a cluster's workers that have a subnet."""
    members = addressing.members(cluster)
    return [name for name in addressing.scenario.clusters[cluster].workers if name in members]


def resolv_conf(addressing: Addressing, cluster: str, namespace: str = "default") -> str:
    """Return a pod's /etc/resolv.conf as kubelet has it written (dns.go, ``ClusterFirst``)."""
    searched = " ".join(search(namespace))
    return f"search {searched}\nnameserver {address(addressing, cluster)}\noptions ndots:5\n"


def preparation(addressing: Addressing, node: str) -> list[Step]:
    """Return what gives the pods of a node that are network namespaces their /etc/resolv.conf."""
    own = [one for one in services.clusters(addressing.scenario) if node in asked(addressing, one)]
    steps = [Step(["sh", "-c", MAKE_PLACE])] if own else []
    for one in own:
        steps.append(Step(["mkdir", "-p", directory(one)]))
        steps.append(Step(["tee", resolver(one)], resolv_conf(addressing, one)))
    return steps


def kubelet_settings(addressing: Addressing, cluster: str) -> dict[str, Any]:
    """Return what lets a kubelet write the same; nothing for a cluster without names."""
    if cluster not in services.clusters(addressing.scenario):
        return {}
    return {"clusterDNS": [address(addressing, cluster)], "clusterDomain": DOMAIN}


def objects(
    addressing: Addressing, cluster: str, version: Version, called: Callable[[str], str] = str
) -> Iterator[Json]:
    """Yield the Service at which pods ask, and its slice: each node's server is for its own pods.

    They are for an API of a version, where nodes are ``called`` so, and have nothing that it does not know:
    whoever applies that would change them each time.
    """
    metadata = {"name": SERVICE, "namespace": NAMESPACE}
    at, is_v1 = port(addressing, cluster), version >= SLICES_FROM
    annotations = annotations_of_policy(LOCAL, version)
    ports = [("dns", "UDP"), ("dns-tcp", "TCP")]
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {**metadata, "annotations": annotations},
        "spec": {
            "clusterIP": address(addressing, cluster),
            **({} if annotations else {"internalTrafficPolicy": LOCAL}),
            "ports": [
                {"name": name, "protocol": protocol, "port": 53, "targetPort": at} for name, protocol in ports
            ],
        },
    }
    yield {
        "apiVersion": f"discovery.k8s.io/{'v1' if is_v1 else 'v1beta1'}",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {SERVICE_OF: SERVICE}},
        "addressType": "IPv4",
        "endpoints": [
            {
                "addresses": [str(addressing.address(node))],
                "conditions": {"ready": True},
                **({"nodeName": called(node)} if is_v1 else {"topology": {HOSTNAME: called(node)}}),
            }
            for node in asked(addressing, cluster)
        ],
        "ports": [{"name": name, "protocol": protocol, "port": at} for name, protocol in ports],
    }


def arguments(directory: str, address: str, port: int) -> list[str]:
    """Return dnsmasq's arguments: only what is in a directory, and that it does not know the rest."""
    return [
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        "--pid-file=",
        "--log-facility=-",
        "--user=",  # it stays who it is: in a sandbox there may be nobody else
        "--group=",
        "--no-resolv",
        "--no-hosts",
        "--local=/#/",
        f"--hostsdir={directory}",
        f"--listen-address={address}",
        f"--port={port}",
        "--bind-interfaces",
    ]


def command(program: str, directory: str, address: str, port: int) -> list[str]:
    """Return what serves a directory's names at an address: dnsmasq, once there is what it is to say."""
    return ["sh", "-c", ONCE_TOLD, f"{directory}/{FILE}", program, *arguments(directory, address, port)]


class Resolvers:
    """The servers of all clusters' names, one on each worker; ``program`` is dnsmasq's path."""

    def __init__(self, addressing: Addressing, nodes: Mapping[str, Node], program: Path) -> None:
        self._addressing, self._nodes, self._program = addressing, nodes, program
        self.components: list[Component] = []

    def up(self) -> None:
        """Start them, and wait until they answer: once proxies have said what.

        Raises ComponentError or CommandError.
        """
        addressing = self._addressing
        own = services.clusters(addressing.scenario)
        places = [(cluster, node) for cluster in own for node in asked(addressing, cluster)]
        self.components = in_parallel(lambda one: self._start(*one), places)

    def faults(self) -> list[str]:
        """Return, in words, which of them have ended."""
        return [fault for fault in in_parallel(lambda one: one.fault(), self.components) if fault]

    def _start(self, cluster: str, node: str) -> Component:
        address, at = str(self._addressing.address(node)), port(self._addressing, cluster)
        argv = command(str(self._program), hosts(cluster), address, at)
        component = Component(f"names of cluster {cluster}", self._nodes[node], directory(cluster), argv)
        component.start()
        listening = ["ss", "-Hlnu", f"sport = :{at}"]
        component.wait_until_it_says(listening, READY_SECONDS)
        return component
