"""The configuration keys of enforcement `node`."""

from __future__ import annotations

from .. import addresses, links, names
from ..cni import shown
from ..configuration import bits_per_second, flag, invalid, number, table, text
from . import htb, uplinks
from .records import ETHERNET_OVERHEAD, VXLAN_HEADERS, Fabric, Tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..addresses import Subnet

DEFAULT_RESERVE = 0.02
# sshd, the Kubernetes API server and the kubelet: without them nobody can repair a node.
DEFAULT_PORTS = (22, 6443, 10250)
FABRIC = "fabric"  # the key
DEFAULT_AGENTS_PORT = 7473
# Of the capacity: twenty nodes without a grant take half of a receiver's link.
_SAFE_SHARE = 40
_MOST_NETWORKS = 16
_MOST_PORTS = 15  # a longer list is a mistake: it would be everybody's traffic


class Settings:
    """The node's tree as this configuration wants it."""

    def __init__(
        self,
        document: dict[str, Any],
        subnet: Callable[[], Subnet | None] = lambda: None,
        in_fabric: bool = False,
    ) -> None:
        """Check the keys and ask the kernel for what they leave out. Raises CniError 7 and OSError.

        `subnet` is asked for the pods' own where no uplink is written down; `in_fabric` says that other nodes
        grant what is sent to them.
        """
        self.take_over = bool(flag(document, "takeOver"))
        encapsulation = number(document, "encapsulation", 0, 200)
        self.encapsulation = VXLAN_HEADERS if encapsulation is None else encapsulation
        uplink = _uplink(document, subnet)
        capacity = _capacity(document, uplink)
        # Rounded up to whole bytes a second, as the kernel keeps rates.
        reserve = -int(-capacity * _share(document) // 8) * 8
        overhead = number(document, "frameOverhead", 0, 200)
        frame = htb.largest_frame(uplinks.mtu(uplink))
        self.tree = Tree(
            uplink,
            capacity,
            reserve,
            _ports(document),
            ETHERNET_OVERHEAD if overhead is None else overhead,
            frame if flag(document, "segment") else 0,
            fabric=_fabric(document, capacity) if in_fabric else None,
        )
        if frame > htb.turn(self.tree):
            raise invalid("uplink", f"the capacity of {uplink} is too small for frames of {frame} bytes")


def _fabric(document: dict[str, Any], capacity: int) -> Fabric:
    given = table(document, FABRIC) or {}
    nodes = given.get("nodes")
    if not isinstance(nodes, list) or not 0 < len(nodes) <= _MOST_NETWORKS:
        problem = f"must be a list of 1 to {_MOST_NETWORKS} networks of nodes' addresses"
        raise invalid(f"{FABRIC}.nodes", problem)
    found = []
    for index, one in enumerate(nodes):
        try:
            found.append(str(addresses.parse_subnet(one if isinstance(one, str) else "")))
        except ValueError as error:
            raise invalid(f"{FABRIC}.nodes[{index}]", f"{shown(one)} {error}") from error
    try:
        safe = text(given, "safeRate", "")
        rate = bits_per_second(safe) if safe else capacity // _SAFE_SHARE
    except ValueError as error:
        raise invalid(f"{FABRIC}.safeRate", f"{shown(safe)} {error}") from error
    if rate > capacity:
        raise invalid(f"{FABRIC}.safeRate", f"{shown(safe)} is more than the capacity of {capacity} bit/s")
    port = number({f"{FABRIC}.port": given.get("port")}, f"{FABRIC}.port", 1, 65535)
    return Fabric(tuple(found), rate // 8 * 8, DEFAULT_AGENTS_PORT if port is None else port)


def _uplink(document: dict[str, Any], subnet: Callable[[], Subnet | None]) -> str:
    name = text(document, "uplink", "")
    if not name:
        from . import underlay  # only here: where `uplink` is given, no call pays for it

        name = underlay.default(subnet())
    if not names.is_interface(name):
        raise invalid("uplink", f"{shown(name)} is not an interface name")
    if not links.exists(name):
        raise invalid("uplink", f"this node has no interface {name}")
    return name


def _capacity(document: dict[str, Any], uplink: str) -> int:
    quantity = text(document, "capacity", "")
    if not quantity:
        speed = uplinks.speed(uplink)
        if speed is None:
            raise invalid("capacity", f"missing, and the kernel does not report the speed of {uplink}")
        return speed
    try:
        # Whole bytes a second, as the kernel keeps rates.
        return bits_per_second(quantity) // 8 * 8
    except ValueError as error:
        raise invalid("capacity", f"{shown(quantity)} {error}") from error


def _share(document: dict[str, Any]) -> float:
    value = document.get("reserve")
    if value is None:
        return DEFAULT_RESERVE
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 0.5:
        raise invalid("reserve", f"{shown(value)} is not a share from 0 to 0.5 of the capacity")
    return value


def _ports(document: dict[str, Any]) -> tuple[int, ...]:
    value = document.get("controlPorts")
    if value is None:
        return DEFAULT_PORTS
    if not isinstance(value, list) or len(value) > _MOST_PORTS:
        raise invalid("controlPorts", f"{shown(value)} is not a list of at most {_MOST_PORTS} ports")
    for port in value:
        if not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536:
            raise invalid("controlPorts", f"{shown(port)} is not a TCP port")
    return tuple(sorted(set(value)))
