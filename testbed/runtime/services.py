"""Services where there is no API: on every node of a cluster that has some, a proxy of ours.

It is the one that clusters get (``edge.services.proxy``), and reads in a file what their API would tell it.
Here is what that file says, and who starts and looks after the proxies; and what a Service is to an API, and
nodes' bridges to services, wherever pods run.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from edge.devices.kinds import PREFIX
from edge.services.annotations import (
    ZONE_HINTS,
    Version,
    annotation_of,
    annotations_of,
    annotations_of_policy,
)
from edge.services.catalogue import SERVICE_OF
from edge.services.endpoints import ZONE_LABEL, Endpoint, Slice
from edge.services.hints import Result
from testbed import resources
from testbed.access.batch import Step, look, take
from testbed.access.components import Component
from testbed.access.place import Node, PodPlace, in_parallel, path_on
from testbed.runtime import names
from testbed.runtime.cni import Json
from testbed.scenario import Requests, Scenario, connections, service_hints, services
from testbed.scenario.addressing import Addressing

DIRECTORY = "/run/services"
READY_SECONDS = 30.0
# How the file is to be read: hints are an annotation on slices, of whatever mode they are.
VERSION: Version = (1, 20)
_SLICES = "discovery.k8s.io/v1beta1"
_NAMESPACE = "default"


class Told(NamedTuple):
    """What a scenario does not say of services, for it may change while they are asked."""

    modes: Mapping[str, str] = MappingProxyType({})  # hints, of services that have others than the scenario's
    unready: frozenset[str] = frozenset()  # pods that run and are not to be asked
    down: frozenset[str] = frozenset()  # nodes that are not ready
    unhinted: frozenset[str] = frozenset()  # pods whose hints are not written yet


NOTHING_TOLD = Told()


def render(addressing: Addressing, cluster: str, pods: Mapping[str, str], told: Told = NOTHING_TOLD) -> str:
    """Return a cluster's services and their endpoints, as a list of Kubernetes' objects.

    ``pods`` are the addresses of those that run.
    """
    own = [name for name, one in addressing.services.items() if one.cluster == cluster]
    items = [item for name in own for item in _objects(addressing, name, pods, told)]
    items += names.objects(addressing, cluster, VERSION)
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, indent=1) + "\n"


def hinted(addressing: Addressing, name: str, pods: Mapping[str, str], told: Told = NOTHING_TOLD) -> Result:
    """Return a service's endpoints with their hints, or why they have none; see ``render``."""
    endpoints = service_hints.slice_of(addressing, name, pods, pods.keys() - told.unready)
    found = service_hints.hinted(addressing, name, endpoints, told.modes.get(name), told.down)
    lacking = {pods[one] for one in told.unhinted}
    slices = tuple(
        each._replace(
            endpoints=tuple(
                one._replace(hints=() if one.address in lacking else one.hints) for one in each.endpoints
            )
        )
        for each in found.slices
    )
    return replace(found, slices=slices)


def _objects(
    addressing: Addressing, name: str, pods: Mapping[str, str], told: Told
) -> Iterator[dict[str, Any]]:
    """Yield a Service and its slice."""
    own = addressing.services[name]
    endpoints = hinted(addressing, name, pods, told).slices[0]
    ports = list(_ports(addressing, name))
    yield _service(addressing, name, ports, VERSION, told.modes.get(name, own.hints))
    yield {
        "apiVersion": _SLICES,
        "kind": "EndpointSlice",
        "metadata": {
            "name": name.lower(),
            "namespace": _NAMESPACE,
            "labels": {SERVICE_OF: name.lower()},
            "annotations": _zone_hints(endpoints),
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(one) for one in endpoints.endpoints],
        "ports": [{"name": one.name, "protocol": one.protocol, "port": one.target} for one in ports],
    }


def manifest(addressing: Addressing, name: str, version: Version, selector: Mapping[str, str]) -> Json:
    """Return a service as an API of a version takes it, which finds its endpoints by their pods' labels."""
    ports = list(_ports(addressing, name))
    document = _service(addressing, name, ports, version, addressing.services[name].hints)
    document["spec"]["selector"] = dict(selector)
    return document


def _service(addressing: Addressing, name: str, ports: Iterable[_Port], version: Version, mode: str) -> Json:
    own = addressing.services[name]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": name.lower(),
            "namespace": _NAMESPACE,
            "annotations": annotations_of(mode, version) | annotations_of_policy(own.policy, version),
        },
        "spec": {
            "clusterIP": str(addressing.service(name)),
            "internalTrafficPolicy": own.policy,
            "ports": [
                {"name": one.name, "protocol": one.protocol, "port": one.number, "targetPort": one.target}
                for one in ports
            ],
        },
    }


@dataclass(frozen=True)
class _Port:
    """A port of a service, and the one behind it."""

    number: int
    protocol: str
    target: int

    @property
    def name(self) -> str:
        return f"{self.protocol.lower()}-{self.number}"


def _ports(addressing: Addressing, name: str) -> Iterator[_Port]:
    """Yield a service's ports: one for each transfer to it, or, where there is none, what it says.

    A connection's are its device's.
    """
    scenario = addressing.scenario
    if name not in scenario.services:
        for led in connections.ports(scenario, name.removeprefix(PREFIX)):
            yield _Port(led.handler.port, led.handler.transport, led.taken)
        return
    sent = services.sent(scenario)[name]
    for one in sent:
        protocols = {one.protocol} if isinstance(one, Requests) else {"tcp", one.protocol}  # iperf3 has both
        for protocol in sorted(protocols):
            yield _Port(addressing.port_for(one), protocol.upper(), addressing.port_of(one))
    if not sent:
        port = scenario.services[name].port
        yield from (_Port(port, protocol, port) for protocol in ("TCP", "UDP"))


def _endpoint(one: Endpoint) -> dict[str, Any]:
    topology = {"kubernetes.io/hostname": one.node}
    if one.zone:
        topology[ZONE_LABEL] = one.zone
    return {"addresses": [one.address], "conditions": {"ready": one.ready}, "topology": topology}


def _zone_hints(endpoints: Slice) -> dict[str, str]:
    text = annotation_of(endpoints)
    return {} if text is None else {ZONE_HINTS: text}


class Proxies:
    """The proxies of all clusters that have services, one on each of their nodes."""

    def __init__(self, addressing: Addressing, nodes: Mapping[str, Node]) -> None:
        self._addressing = addressing
        self._clusters = services.clusters(addressing.scenario)
        self._members = [
            (cluster, nodes[node]) for cluster in self._clusters for node in addressing.members(cluster)
        ]
        self.components: list[Component] = []
        self.told = NOTHING_TOLD

    def up(self, pods: Mapping[str, PodPlace]) -> None:
        """Start them, and wait until each has written its rules. Raises ComponentError or CommandError."""
        self.tell(pods)
        self.components = in_parallel(lambda one: self._start(*one), self._members)
        in_parallel(
            lambda one: one[1].wait_until_it_says(_shown(one[0][0]), READY_SECONDS),
            list(zip(self._members, self.components, strict=True)),
        )

    def tell(self, pods: Mapping[str, PodPlace]) -> None:
        """Let them know which pods run; they see to it within a second. Raises CommandError."""
        addresses = {name: place.address for name, place in pods.items()}
        texts = {name: render(self._addressing, name, addresses, self.told) for name in self._clusters}
        in_parallel(lambda one: _write(one[1], _file(one[0]), texts[one[0]]), self._members)
        answer_themselves(self._addressing.scenario, {node.name: node for _, node in self._members}, pods)

    def endpoints(self) -> dict[tuple[str, str], set[str]]:
        """Return to which addresses the kernel leads, by cluster and node, but for names.

        Raises CommandError.
        """

        def listed(one: tuple[str, Node]) -> set[str]:
            cluster, node = one
            shown = node.run(["nft", "-j", "list", "map", "ip", _table(cluster), "endpoints"]).json()
            (held,) = [each["map"].get("elem", []) for each in shown["nftables"] if "map" in each]
            own = names.address(self._addressing, cluster)
            return {value["concat"][0] for key, value in held if key["concat"][0] != own}

        members = [(cluster, node.name) for cluster, node in self._members]
        return dict(zip(members, in_parallel(listed, self._members), strict=True))

    def faults(self) -> list[str]:
        """Return, in words, which of them have ended, and whose rules are not there any more."""

        def fault(number: int) -> str | None:
            (cluster, node), component = self._members[number], self.components[number]
            (shown,) = look(node, [_shown(cluster)])
            lacking = f"services of cluster {cluster} lack, on {node.name}: table ip {_table(cluster)}"
            return component.fault() or (None if shown.status == 0 else lacking)

        return [text for text in in_parallel(fault, range(len(self.components))) if text]

    def _start(self, cluster: str, node: Node) -> Component:
        addressing = self._addressing
        zone = addressing.scenario.nodes[node.name].zone
        argv = [
            *("/usr/bin/python3", "-IS", path_on(node, resources.EDGE), "services-proxy"),
            *("--cluster", cluster, "--services", str(addressing.service_range(cluster))),
            *("--node", node.name, "--pods", str(addressing.pod_subnet(cluster, node.name))),
            *(("--zone", zone) if zone else ()),
            *("--file", _file(cluster), "--names", names.hosts(cluster)),
        ]
        component = Component(f"services' proxy of cluster {cluster}", node, _directory(cluster), argv)
        component.start()
        return component


def answer_themselves(scenario: Scenario, nodes: Mapping[str, Node], pods: Mapping[str, PodPlace]) -> None:
    """Let bridges send back to an endpoint what it asks of itself, where they have it come by.

    A bridge whose packets pass the node's rules forwards what these translate, and not to where it came from
    (net/bridge/br_forward.c, should_deliver). Raises CommandError.
    """
    ends = {pod for service in scenario.services.values() for pod in service.pods}
    interfaces: dict[str, set[str]] = {}
    for name in ends & pods.keys():
        interfaces.setdefault(scenario.pods[name].node, set()).add(pods[name].host_interface)
    in_parallel(lambda one: _let_back(nodes[one[0]], one[1]), interfaces.items())


def _let_back(node: Node, interfaces: Collection[str]) -> None:
    ports = {one["ifname"] for one in node.run(["bridge", "-j", "link", "show"]).json()}
    text = "".join(f"link set dev {one} hairpin on\n" for one in sorted(ports.intersection(interfaces)))
    take(node, [Step(["bridge", "-batch", "-"], text)] if text else [])


def _table(cluster: str) -> str:
    return f"services-{cluster}"


def _shown(cluster: str) -> list[str]:
    return ["nft", "list", "set", "ip", _table(cluster), "servers"]


def _directory(cluster: str) -> str:
    return f"{DIRECTORY}/{cluster}"


def _file(cluster: str) -> str:
    return f"{_directory(cluster)}/services.json"


def _write(node: Node, file: str, text: str) -> None:
    """Put a file in place as a whole: whoever reads it may do so at any moment."""
    directory = file.rpartition("/")[0]
    steps = [Step(["mkdir", "-p", directory]), Step(["tee", f"{file}.new"], text)]
    take(node, [*steps, Step(["mv", f"{file}.new", file])])
