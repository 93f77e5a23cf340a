"""What a node has of pod networks, in words that can be compared: links, routes, neighbours, FDB, rules.

What should be there is said in the same words, so a backend says only that. Addresses and rules of nobody's
pod network are words too; they are never asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from testbed.access import batch
from testbed.access.place import Node, Result, in_parallel

MAIN = "main"  # the routing table of which nothing is said
FLAGS = ("learning", "proxy", "l2miss", "l3miss")  # of a VXLAN device


@dataclass(frozen=True)
class KernelState:
    """What a node has."""

    macs: Mapping[str, str] = field(default_factory=dict)  # of its devices
    facts: frozenset[str] = frozenset()


# What a node should have: given its name, and what all nodes have.
Wanted = Callable[[str, Mapping[str, KernelState]], Iterable[str]]


def lacking(wanted: Wanted, nodes: Mapping[str, Node], files: Sequence[str]) -> list[str]:
    """Return, in words, each with its node, what should be on nodes and is not.

    The lines of ``files``, which are paths, count as words too. Raises CommandError.
    """
    states = in_parallel(lambda node: look(node, files), nodes.values())
    found = dict(zip(nodes, states, strict=True))
    return [
        f"{node}: {fact}" for node in nodes for fact in wanted(node, found) if fact not in found[node].facts
    ]


def look(node: Node, files: Sequence[str]) -> KernelState:
    """Return what a node has. Raises CommandError if it cannot be reached."""
    commands = (
        ["ip", "-d", "-j", "address", "show"],
        ["ip", "-j", "route", "show", "table", "all"],
        ["ip", "-j", "neighbour", "show", "nud", "permanent"],
        ["bridge", "-j", "fdb", "show"],
        ["ip", "-j", "rule", "show"],
    )
    shown = batch.look(node, [*commands, *(["cat", file] for file in files)])
    links, routes, neighbours, entries, rules = (_json(one) for one in shown[: len(commands)])
    facts = {line for one in shown[len(commands) :] if one.status == 0 for line in one.stdout.splitlines()}
    facts |= {fact for link in links for fact in _of_link(link)}
    facts |= {_of_route(one) for one in routes}
    facts |= {neighbour(one["dst"], one.get("lladdr", ""), one["dev"]) for one in neighbours}
    facts |= {forwarding(one["mac"], one["dst"], one["ifname"]) for one in entries if "dst" in one}
    facts |= {rule(_network(one), one["table"]) for one in rules if "dst" in one}
    return KernelState({link["ifname"]: link.get("address", "") for link in links}, frozenset(facts))


def is_up(device: str) -> str:
    """Say that a device is up."""
    return f"{device} up"


def has_address(device: str, address: str) -> str:
    """Say that a device has an address, with its prefix length."""
    return f"address {address} on {device}"


def vtep(device: str, vni: int, port: int, local: str, uplink: str, mtu: int, *flags: str) -> str:
    """Say that there is a VTEP; ``flags`` are those of FLAGS that are set."""
    besides = f", and {', '.join(flags)}" if flags else ""
    return (
        f"a VTEP {device} with VNI {vni}, UDP port {port}, {local} on {uplink} "
        f"and an MTU of {mtu} bytes{besides}"
    )


def tunnel(device: str, kind: str, local: str, remote: str, mtu: int) -> str:
    """Say that there is a tunnel of IP in IP."""
    return f"{device}, {kind} from {local} to {remote}, with an MTU of {mtu} bytes"


def route(subnet: object, via: object, device: str, table: str = MAIN) -> str:
    """Say that there is a route; without ``via`` one to neighbours."""
    way = f" via {via}" if via else ""
    where = f" in table {table}" if table != MAIN else ""
    return f"a route to {subnet}{way} on {device}{where}"


def neighbour(address: str, mac: str, device: str) -> str:
    """Say that there is a permanent neighbour."""
    return f"neighbour {address} at {mac or 'a VTEP that is not there'} on {device}"


def forwarding(mac: str, address: str, device: str) -> str:
    """Say that there is a forwarding entry of a VTEP."""
    return f"{mac or 'a VTEP that is not there'} behind {address} on {device}"


def rule(network: str, table: str) -> str:
    """Say that a table is looked up for what is sent to a network."""
    return f"a rule to look up {network} in table {table}"


def _json(shown: Result) -> list[dict[str, Any]]:
    # ``bridge`` and ``ip`` leave empty objects where they show nothing of a device.
    return [one for one in shown.json() if one] if shown.status == 0 else []


def _of_link(link: Mapping[str, Any]) -> Iterator[str]:
    device = link["ifname"]
    if "UP" in link["flags"]:
        yield is_up(device)
    for one in link.get("addr_info", ()):
        if "local" in one:
            yield has_address(device, f"{one['local']}/{one['prefixlen']}")
    made = link.get("linkinfo", {})
    about = made.get("info_data", {})
    match made.get("info_kind"):
        case "vxlan":
            flags = [flag for flag in FLAGS if about.get(flag)]
            uplink = about.get("link", "no uplink")
            local = about.get("local", "no address")
            yield vtep(device, about["id"], about["port"], local, uplink, link["mtu"], *flags)
        case "ipip":
            yield tunnel(device, "ipip", about["local"], about["remote"], link["mtu"])


def _of_route(shown: Mapping[str, Any]) -> str:
    device = shown.get("dev", shown.get("type", ""))
    return route(shown["dst"], shown.get("gateway", ""), device, str(shown.get("table", MAIN)))


def _network(shown: Mapping[str, Any]) -> str:
    return f"{shown['dst']}/{shown['dstlen']}" if "dstlen" in shown else str(shown["dst"])
