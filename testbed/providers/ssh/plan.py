"""What a testbed is going to make on a machine, and what there is in its way: decided before it is touched.

The order is that in which things are made, more or less; they are taken away the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from ipaddress import IPv4Network
from pathlib import PurePosixPath

from testbed import resources
from testbed.enforcements import registry
from testbed.overlays.pod_network import PodNetwork
from testbed.overlays.registry import of_cluster
from testbed.providers.ssh import artefacts
from testbed.providers.ssh.survey import FORWARDING, Interface, Seen
from testbed.runtime import containers
from testbed.scenario import Scenario
from testbed.scenario.addressing import NAMESPACES, Addressing
from testbed.scenario.quantities import format_rate


def paths(addressing: Addressing, node: str) -> list[str]:
    """Return the paths of which it matters whether they exist already."""
    state = [one.path for one in _state(addressing, node)]
    return [*_directories(addressing, node), *state, *_files(addressing, node)]


def everything(addressing: Addressing, node: str, seen: Seen, directory: str) -> list[artefacts.Artefact]:
    """Return everything that will be made on a node, but the run's own directory, which is ``directory``."""
    pods = addressing.pods_on(node)
    made: list[artefacts.Artefact] = [
        artefacts.Directory(path=path) for path in _directories(addressing, node) if path not in seen.paths
    ]
    if not seen.namespaces_mounted:
        made.append(artefacts.Mount(path=NAMESPACES))
    if seen.forwarding != "1":
        made.append(artefacts.Setting(path=FORWARDING, value="1", former=seen.forwarding))
    made += [artefacts.Link(name=name) for one in _networks(addressing, node) for name in one.devices(node)]
    made += _by_uplink(addressing, node)
    made += [artefacts.File(path=path) for path in _files(addressing, node)]
    if own := addressing.containers_on(node):
        made.append(artefacts.Link(name=containers.BRIDGE))
        made += [artefacts.Namespace(name=name) for name in own]
        made += [artefacts.Link(name=containers.host_interface(index)) for index in range(len(own))]
        made.append(artefacts.Table(family="ip", name=containers.TABLE))
    if pods:
        made += _state(addressing, node)
        made += [artefacts.Link(name=bridge) for bridge in _bridges(addressing, node)]
        footprint = registry.of(addressing).footprint(node)
        made += [artefacts.Tree(interface=interface) for interface in footprint.trees]
        made += [artefacts.Table(family=family, name=name) for family, name in footprint.tables]
    for name in pods:
        made += [artefacts.Namespace(name=name), _attached(addressing, name, directory)]
    return made


def obstacles(addressing: Addressing, node: str, seen: Seen) -> Iterator[str]:
    """Yield, in words, what is on a machine already and is not ours."""
    there = {interface.name for interface in seen.interfaces}
    for thing in everything(addressing, node, seen, ""):
        match thing:
            case artefacts.Link(name=name) if name in there:
                yield f"there is an interface {name} already"
            case artefacts.Namespace(name=name) if name in seen.namespaces:
                yield f"there is a network namespace {name} already"
            case artefacts.Table(family=family, name=name) if (family, name) in seen.tables:
                yield f"there is an nftables table {family} {name} already"
            case artefacts.File(path=path) | artefacts.State(path=path) if path in seen.paths:
                yield f"there is {path} already"
            case artefacts.Tree(interface=interface) if interface in seen.trees:
                yield f"somebody shapes {interface}: its root qdisc is {seen.trees[interface]}"
    for cluster in addressing.clusters_of(node):
        overlay = addressing.scenario.clusters[cluster].flannel
        for one in seen.interfaces if addressing.network(cluster).has_vtep else ():
            if one.vxlan == (overlay.vni, overlay.port):
                yield f"interface {one.name} is VXLAN {overlay.vni} at port {overlay.port} already"
    for network in _routes(addressing, node):
        for route in seen.routes:
            if network.overlaps(route):
                yield f"there is a route to {route} already, within {network}"


def strangers(addressing: Addressing, node: str, uplink: Interface) -> Iterator[str]:
    """Yield, in words, the nodes that are no neighbours on a machine's link, where routes lead to them."""
    for name in addressing.clusters_of(node):
        cluster = addressing.scenario.clusters[name]
        others = cluster.nodes if addressing.network(name).needs_neighbours else ()
        for other in others:
            address = addressing.address(other)
            if not any(address in network for network in uplink.networks):
                yield (
                    f"clusters.{name}.backend: {cluster.backend} needs nodes on one layer 2, and {other} at "
                    f"{address} is not a neighbour on {uplink.name}; vxlan does not"
                )


def unfit(scenario: Scenario, uplink: Interface, speed: int | None) -> Iterator[str]:
    """Yield, in words, what a machine's link cannot do for the scenario. ``speed`` is in bits per second."""
    mtu, rate = scenario.underlay.mtu, scenario.underlay.rate
    if uplink.mtu < mtu:
        yield f"{uplink.name} has an MTU of {uplink.mtu}, the scenario one of {mtu} (underlay.mtu)"
    if rate is not None and speed is not None and rate > speed:
        yield (
            f"{uplink.name} says it does {format_rate(speed)}, less than underlay.rate {format_rate(rate)}, "
            "which states the speed of the machines' links and is not enforced"
        )


def _attached(addressing: Addressing, pod: str, directory: str) -> artefacts.Attached:
    where, enforcement = addressing.scenario.pods[pod], registry.of(addressing)
    brought = [f"{directory}/{enforcement.programs.name}"] if enforcement.programs else []
    return artefacts.Attached(
        network=asdict(enforcement.network_list(where.cluster, where.node)),
        attachment=asdict(enforcement.attachment(pod)),
        directories=[*brought, *resources.REFERENCE_PLUGINS],
    )


def _state(addressing: Addressing, node: str) -> list[artefacts.State]:
    return [artefacts.State(path=path) for path in registry.of(addressing).footprint(node).state]


def _bridges(addressing: Addressing, node: str) -> list[str]:
    pods = (addressing.scenario.pods[name] for name in addressing.pods_on(node))
    return sorted({addressing.bridge(pod.cluster) for pod in pods})


def _networks(addressing: Addressing, node: str) -> list[PodNetwork]:
    return [of_cluster(addressing, cluster) for cluster in addressing.clusters_of(node)]


def _by_uplink(addressing: Addressing, node: str) -> list[artefacts.Routes]:
    """Return the routes of networks without a device, which would take them with it."""
    uplink = addressing.uplink(node)
    return [
        artefacts.Routes(network=str(network), interface=uplink)
        for one in _networks(addressing, node)
        if not one.devices(node)
        for network in one.routes(node)
    ]


def _directories(addressing: Addressing, node: str) -> list[str]:
    files = (str(PurePosixPath(path).parent) for path in _files(addressing, node))
    return list(dict.fromkeys((NAMESPACES, *files)))


def _files(addressing: Addressing, node: str) -> list[str]:
    return [path for network in _networks(addressing, node) for path in network.files(node)]


def _routes(addressing: Addressing, node: str) -> Iterator[IPv4Network]:
    for network in _networks(addressing, node):
        yield from network.routes(node)
    if addressing.containers_on(node):
        yield addressing.scenario.container_cidr
