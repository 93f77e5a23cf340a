"""What a machine has before anything is made on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface, IPv4Network
from typing import Any

from testbed.access.place import Node, Result
from testbed.scenario.addressing import NAMESPACES

FORWARDING = "/proc/sys/net/ipv4/ip_forward"

# Says which of some programs are missing.
MISSING = 'for program; do command -v "$program" >/dev/null || echo "$program"; done'
EXISTING = 'for path; do [ ! -e "$path" ] || echo "$path"; done'
# Whether something is mounted at a path, as one gets there: the kernel has the mount's number for every
# open file (proc(5), /proc/pid/fdinfo). ``mountpoint`` looks paths up in the table of mounts, where what a
# later mount hides still stands. In a process of its own, for a mount on which something is open is in use.
MOUNTED = """(
    number() { grep mnt_id "/proc/self/fdinfo/$1"; }
    exec 3<"$1" 4<"$1/.." && [ "$(number 3)" != "$(number 4)" ]
)"""
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
class Seen:
    """What is there."""

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


def look(node: Node, paths: Iterable[str]) -> Seen:
    """Look; nothing is changed."""
    return Seen(
        interfaces=interfaces(node),
        routes=tuple(_routes(node.run(["ip", "-j", "route", "show", "table", "main"]).json())),
        namespaces=frozenset(one["name"] for one in node.run(["ip", "-j", "netns", "list"]).json()),
        namespaces_mounted=node.run(["sh", "-c", MOUNTED, "sh", NAMESPACES], check=False).status == 0,
        tables=frozenset(_tables(node.run(["nft", "-j", "list", "tables"]).json())),
        trees=root_handles(node.run(["tc", "-j", "qdisc", "show"])),
        paths=frozenset(node.run(["sh", "-c", EXISTING, "sh", *paths]).stdout.splitlines()),
        forwarding=node.run(["cat", FORWARDING]).stdout.strip(),
    )


def root_handles(shown: Result) -> dict[str, str]:
    """Return the handle of each interface's root qdisc, from ``tc -j qdisc show``.

    The kernel's own choice has none.
    """
    roots = (qdisc for qdisc in shown.json() if qdisc.get("root"))
    return {qdisc["dev"]: qdisc["handle"] for qdisc in roots if qdisc["handle"] != "0:"}


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


def _routes(shown: Iterable[Mapping[str, Any]]) -> Iterable[IPv4Network]:
    for route in shown:
        if route["dst"] != "default":
            yield IPv4Network(route["dst"])


def _tables(shown: Any) -> Iterable[tuple[str, str]]:
    for entry in shown["nftables"]:
        if "table" in entry:
            yield entry["table"]["family"], entry["table"]["name"]
