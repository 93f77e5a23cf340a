"""What a testbed is going to make on a machine, and what there is in its way: decided before it is touched.

The order is that in which things are made, more or less; they are taken away the other way round.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from pathlib import PurePosixPath
from typing import Any

from edge.services.rules import PREFIX
from testbed import resources
from testbed.access.place import Node
from testbed.enforcements import registry
from testbed.overlays.pod_network import PodNetwork
from testbed.overlays.registry import of_cluster
from testbed.providers.ssh import ledger
from testbed.providers.ssh.ledger import MOUNTED, Artefact, root_handles
from testbed.runtime import containers, names
from testbed.runtime.services import DIRECTORY
from testbed.scenario import Scenario, services
from testbed.scenario.addressing import NAMESPACES, Addressing
from testbed.scenario.units import format_rate


def paths(addressing: Addressing, node: str) -> list[str]:
    """Return the paths of which it matters whether they exist already."""
    made = [*_state(addressing, node), *_services(addressing, node)]
    state = [one.path for one in made if isinstance(one, ledger.State)]
    return [*_directories(addressing, node), *state, *_files(addressing, node)]


def everything(addressing: Addressing, node: str, there: MachineState, directory: str) -> list[Artefact]:
    """Return everything that will be made on a node, but the run's own directory, which is ``directory``."""
    pods = addressing.pods_on(node)
    made: list[Artefact] = [
        ledger.Directory(path=path) for path in _directories(addressing, node) if path not in there.paths
    ]
    if not there.namespaces_mounted:
        made.append(ledger.Mount(path=NAMESPACES))
    if there.forwarding != "1":
        made.append(ledger.Setting(path=FORWARDING, value="1", former=there.forwarding))
    made += [ledger.Link(name=name) for one in _networks(addressing, node) for name in one.devices(node)]
    made += _by_uplink(addressing, node)
    made += [ledger.File(path=path) for path in _files(addressing, node)]
    if own := addressing.containers_on(node):
        made.append(ledger.Link(name=containers.BRIDGE))
        made += [ledger.Namespace(name=name) for name in own]
        made += [ledger.Link(name=containers.host_interface(index)) for index in range(len(own))]
        made.append(ledger.Table(family="ip", name=containers.TABLE))
    if pods:
        made += _state(addressing, node)
        made += [ledger.Link(name=bridge) for bridge in _bridges(addressing, node)]
        footprint = registry.of(addressing).footprint(node)
        made += [ledger.Tree(interface=interface) for interface in footprint.trees]
        made += [ledger.Table(family=family, name=name) for family, name in footprint.tables]
    made += _services(addressing, node)
    for name in pods:
        made += [ledger.Namespace(name=name), _attached(addressing, name, directory)]
    return made


def obstacles(addressing: Addressing, node: str, there: MachineState) -> Iterator[str]:
    """Yield, in words, what is on a machine already and is not ours."""
    named = {interface.name for interface in there.interfaces}
    for thing in everything(addressing, node, there, ""):
        match thing:
            case ledger.Link(name=name) if name in named:
                yield f"there is an interface {name} already"
            case ledger.Namespace(name=name) if name in there.namespaces:
                yield f"there is a network namespace {name} already"
            case ledger.Table(family=family, name=name) if (family, name) in there.tables:
                yield f"there is an nftables table {family} {name} already"
            case ledger.File(path=path) | ledger.State(path=path) if path in there.paths:
                yield f"there is {path} already"
            case ledger.Tree(interface=interface) if interface in there.trees:
                yield f"somebody shapes {interface}: its root qdisc is {there.trees[interface]}"
    for cluster in addressing.clusters_of(node):
        overlay = addressing.scenario.clusters[cluster].flannel
        for one in there.interfaces if addressing.network(cluster).has_vtep else ():
            if one.vxlan == (overlay.vni, overlay.port):
                yield f"interface {one.name} is VXLAN {overlay.vni} at port {overlay.port} already"
    for network in _routes(addressing, node):
        for route in there.routes:
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


def _attached(addressing: Addressing, pod: str, directory: str) -> ledger.Attached:
    where, enforcement = addressing.scenario.pods[pod], registry.of(addressing)
    brought = [f"{directory}/{enforcement.programs.name}"] if enforcement.programs else []
    return ledger.Attached(
        network=asdict(enforcement.network_list(where.cluster, where.node)),
        attachment=asdict(enforcement.attachment(pod)),
        directories=[*brought, *resources.REFERENCE_PLUGINS],
    )


def _state(addressing: Addressing, node: str) -> list[ledger.State]:
    return [ledger.State(path=path) for path in registry.of(addressing).footprint(node).state]


def _services(addressing: Addressing, node: str) -> Iterator[Artefact]:
    """Yield what proxies of services make; they themselves are processes of the run."""
    served = [one for one in services.clusters(addressing.scenario) if node in addressing.members(one)]
    if served:
        yield ledger.State(path=DIRECTORY)
        yield ledger.State(path=names.DIRECTORY)  # where they also write down who is called how
    for cluster in served:
        yield ledger.Table(family="ip", name=f"{PREFIX}{cluster}")


def _bridges(addressing: Addressing, node: str) -> list[str]:
    pods = (addressing.scenario.pods[name] for name in addressing.pods_on(node))
    return sorted({addressing.bridge(pod.cluster) for pod in pods})


def _networks(addressing: Addressing, node: str) -> list[PodNetwork]:
    networks = (of_cluster(addressing, cluster) for cluster in addressing.clusters_of(node))
    return [network for network in networks if node in network.nodes]


def _by_uplink(addressing: Addressing, node: str) -> list[ledger.Routes]:
    """Return the routes of networks without a device, which would take them with it."""
    uplink = addressing.uplink(node)
    return [
        ledger.Routes(network=str(network), interface=uplink)
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


FORWARDING = "/proc/sys/net/ipv4/ip_forward"

# Says which of some programs are missing.
MISSING = 'for program; do command -v "$program" >/dev/null || echo "$program"; done'
EXISTING = 'for path; do [ ! -e "$path" ] || echo "$path"; done'
# Of an interface's speed, Mbit/s; where none is known the kernel has an error, or -1.
SPEED = 'cat "/sys/class/net/$1/speed" 2>/dev/null || echo -1'


@dataclass(frozen=True)
class Interface:
    """A network interface."""

    name: str
    mtu: int
    addresses: tuple[IPv4Address, ...]
    vxlan: tuple[int, int] | None = None  # network identifier and port
    networks: tuple[IPv4Network, ...] = ()  # whose hosts are neighbours


@dataclass(frozen=True)
class MachineState:
    """What is there before anything is made."""

    interfaces: tuple[Interface, ...]
    routes: tuple[IPv4Network, ...]  # but the default one
    namespaces: frozenset[str]
    namespaces_mounted: bool  # whether ``ip netns`` has been used
    tables: frozenset[tuple[str, str]]  # family, name
    trees: Mapping[str, str]  # interfaces with a root qdisc of somebody's choice; its handle
    paths: frozenset[str]  # of those that were asked for
    forwarding: str


def missing(node: Node, programs: Iterable[str]) -> list[str]:
    """Return those programs that a machine does not have."""
    return node.run(["sh", "-c", MISSING, "sh", *programs]).stdout.split()


def interfaces(node: Node) -> tuple[Interface, ...]:
    """Return a machine's network interfaces."""
    return tuple(map(_interface, node.run(["ip", "-d", "-j", "address", "show"]).json()))


def look(node: Node, paths: Iterable[str]) -> MachineState:
    """Look; nothing is changed."""
    routes = node.run(["ip", "-j", "route", "show", "table", "main"]).json()
    tables = node.run(["nft", "-j", "list", "tables"]).json()["nftables"]
    return MachineState(
        interfaces=interfaces(node),
        routes=tuple(IPv4Network(one["dst"]) for one in routes if one["dst"] != "default"),
        namespaces=frozenset(one["name"] for one in node.run(["ip", "-j", "netns", "list"]).json()),
        namespaces_mounted=node.run(["sh", "-c", MOUNTED, "sh", NAMESPACES], check=False).status == 0,
        tables=frozenset((one["table"]["family"], one["table"]["name"]) for one in tables if "table" in one),
        trees=root_handles(node.run(["tc", "-j", "qdisc", "show"])),
        paths=frozenset(node.run(["sh", "-c", EXISTING, "sh", *paths]).stdout.splitlines()),
        forwarding=node.run(["cat", FORWARDING]).stdout.strip(),
    )


def speed(node: Node, interface: str) -> int | None:
    """Return what an interface says of its speed, bits per second; None if it does not."""
    text = node.run(["sh", "-c", SPEED, "sh", interface]).stdout.strip()
    return int(text) * 1_000_000 if text.isdigit() and int(text) else None


def _interface(shown: Mapping[str, Any]) -> Interface:
    information = shown.get("linkinfo", {})
    data = information.get("info_data", {})
    inside = (
        (data["id"], data.get("port", 0))
        if information.get("info_kind") == "vxlan" and "id" in data
        else None
    )
    own = [
        IPv4Interface((one["local"], one["prefixlen"]))
        for one in shown["addr_info"]
        if one["family"] == "inet"
    ]
    addresses, networks = tuple(one.ip for one in own), tuple(one.network for one in own)
    return Interface(shown["ifname"], shown["mtu"], addresses, inside, networks)
