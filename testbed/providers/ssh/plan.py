"""What a testbed is going to make on a machine, and what there is in its way: decided before it is touched.

The order is that in which things are made, more or less; they are taken away the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from ipaddress import IPv4Network

from testbed.enforcements import attachment, concorde
from testbed.networks import containers
from testbed.providers.ssh import artefacts
from testbed.providers.ssh.survey import FORWARDING, Interface, Seen
from testbed.scenario import Scenario, addressing
from testbed.scenario.quantities import format_rate

FLANNEL = "/run/flannel"
# The plugin's, whatever the enforcement (plugin/concorde/node/tables.py).
CONCORDE_TABLES = (("ip", "concorde"), ("ip6", "concorde"), ("bridge", "concorde"))


def paths(scenario: Scenario, node: str) -> list[str]:
    """Return the paths of which it matters whether they exist already."""
    subnets = [addressing.subnet_file(cluster) for cluster in addressing.clusters_of(scenario, node)]
    return [artefacts.NAMESPACES, FLANNEL, _state(scenario).path, *subnets]


def everything(scenario: Scenario, node: str, seen: Seen, directory: str) -> list[artefacts.Thing]:
    """Return everything that will be made on a node, but the run's own directory, which is ``directory``."""
    pods = [name for name, pod in scenario.pods.items() if pod.node == node]
    clusters = addressing.clusters_of(scenario, node)
    made: list[artefacts.Thing] = [
        artefacts.Directory(path=path) for path in (artefacts.NAMESPACES, FLANNEL) if path not in seen.paths
    ]
    if not seen.namespaces_mounted:
        made.append(artefacts.Mount(path=artefacts.NAMESPACES))
    if seen.forwarding != "1":
        made.append(artefacts.Setting(path=FORWARDING, value="1", former=seen.forwarding))
    made += [artefacts.Link(name=addressing.vtep_name(scenario, cluster)) for cluster in clusters]
    made += [artefacts.File(path=addressing.subnet_file(cluster)) for cluster in clusters]
    if own := containers.on_node(scenario, node):
        made.append(artefacts.Link(name=containers.BRIDGE))
        made += [artefacts.Namespace(name=name) for name in own]
        made += [artefacts.Link(name=containers.host_interface(index)) for index in range(len(own))]
        made.append(artefacts.Table(family="ip", name=containers.TABLE))
    if pods:
        made.append(_state(scenario))
        made += [artefacts.Link(name=bridge) for bridge in _bridges(scenario, node)]
        made += _uplink(scenario, node)
        if scenario.enforcement != "bandwidth":
            made += [artefacts.Table(family=family, name=name) for family, name in CONCORDE_TABLES]
    for name in pods:
        made += [artefacts.Namespace(name=name), _attached(scenario, name, directory)]
    return made


def obstacles(scenario: Scenario, node: str, seen: Seen) -> Iterator[str]:
    """Yield, in words, what is on a machine already and is not ours."""
    there = {interface.name for interface in seen.interfaces}
    for thing in everything(scenario, node, seen, ""):
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
    for cluster in addressing.clusters_of(scenario, node):
        overlay = scenario.clusters[cluster].flannel
        for one in seen.interfaces:
            if one.vxlan == (overlay.vni, overlay.port):
                yield f"interface {one.name} is VXLAN {overlay.vni} at port {overlay.port} already"
    for network in _networks(scenario, node):
        for route in seen.routes:
            if network.overlaps(route):
                yield f"there is a route to {route} already, within {network}"


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


def _attached(scenario: Scenario, pod: str, directory: str) -> artefacts.Attached:
    where = scenario.pods[pod]
    return artefacts.Attached(
        network=asdict(concorde.network_list(scenario, where.cluster, where.node)),
        attachment=asdict(attachment.attachment(scenario, pod)),
        directories=[f"{directory}/{concorde.DIRECTORY.name}", *concorde.REFERENCE_DIRECTORIES],
    )


def _state(scenario: Scenario) -> artefacts.State:
    return artefacts.State(
        path="/run/cni-addresses" if scenario.enforcement == "bandwidth" else "/run/concorde"
    )


def _bridges(scenario: Scenario, node: str) -> list[str]:
    return sorted({f"cni-{pod.cluster}" for pod in scenario.pods.values() if pod.node == node})


def _uplink(scenario: Scenario, node: str) -> list[artefacts.Thing]:
    """Return what is made at the machine's own interface."""
    shaped = scenario.enforcement == "node" or (
        scenario.shaping is not None and scenario.shaping.at == "physical"
    )
    return [artefacts.Tree(interface=addressing.uplink(scenario, node))] if shaped else []


def _networks(scenario: Scenario, node: str) -> Iterator[IPv4Network]:
    for cluster in addressing.clusters_of(scenario, node):
        yield scenario.clusters[cluster].pod_cidr
    if containers.on_node(scenario, node):
        yield scenario.container_cidr
