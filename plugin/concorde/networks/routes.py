"""Where a pod's packets go when it has several interfaces: the cluster stays reachable by the first.

A delegate may put a default route in front, as Debian's `bridge` does; then answers to pods of other nodes
leave by the wrong interface. So after all delegates the first interface has routes of its own to the
cluster's ranges, and its default route is the first again. Devices are reached by another's.
"""

from __future__ import annotations

from edge import netlink as nl

from .. import addresses, namespaces, routing, rtnetlink
from ..cni import CHECK_FAILED, COMMAND_FAILED, CniError, shown
from ..configuration import invalid
from ..results import entries_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Iterable, Sequence
    from typing import Any

    from ..addresses import Subnet
    from ..routing import Block, Route

    Result = dict[str, Any]


class Way:
    """A further interface: its name, IPv4 addresses, the networks there, and the gateway (0 if none)."""

    def __init__(self, interface: str, result: Result) -> None:
        """Raises CniError 101 for a result that is malformed."""
        self.interface = interface
        self.addresses: list[int] = []
        self.networks: list[Block] = []
        self.gateway = 0
        for ip in entries_of(result, "ips"):
            try:
                self._take(str(ip.get("address")), str(ip.get("gateway") or ""))
            except ValueError as error:
                raise CniError(COMMAND_FAILED, f"{interface}: {shown(ip)} of the result {error}") from error

    def _take(self, text: str, gateway: str) -> None:
        address, _, prefix = text.partition("/")
        if ":" in address:
            return
        number = addresses.parse(address)
        self.addresses.append(number)
        self.networks.append(block(number, int(prefix or 32)))
        self.gateway = self.gateway or (addresses.parse(gateway) if gateway else 0)

    def has(self, other: Block) -> bool:
        """Whether those addresses are neighbours there."""
        return any(network.holds(other) for network in self.networks)


def block(address: int, prefix: int) -> Block:
    """The addresses that have the same first bits as one."""
    return routing.Block(address >> (32 - prefix) << (32 - prefix), prefix)


def blocks(ranges: Iterable[Subnet]) -> list[Block]:
    """Networks as routes have them."""
    return [routing.Block(one.network, one.prefix) for one in ranges]


def leading(ways: Sequence[Way], to: Block) -> Way | None:
    """The further interface by which something is reached: where it is a neighbour, else by a gateway."""
    near = [way for way in ways if way.has(to)]
    return next(iter([*near, *(way for way in ways if way.gateway)]), None)


def gateway(netns: str, interface: str, previous: Result) -> int:
    """The first interface's gateway: of its default route, else as its result has it; 0 if none.

    Raises OSError.
    """
    kernel = namespaces.opened(netns)
    try:
        index = rtnetlink.index_of(interface, kernel)
        found = [route for route in _main(kernel) if route.to.prefix == 0 and index in route.indices]
    finally:
        kernel.close()
    return found[0].gateway if found else Way(interface, previous).gateway


def keep(
    netns: str, interface: str, gateway: int, cluster: Sequence[Block], devices: Sequence[tuple[Way, Block]]
) -> None:
    """Lead the cluster's ranges, and what no other route is for, by the first interface and its gateway.

    `devices` are reached by a further interface's gateway. Raises CniError 7 where a further interface lies
    in one of the ranges, OSError.
    """
    kernel = namespaces.opened(netns)
    try:
        index = rtnetlink.index_of(interface, kernel)
        for one in cluster:
            _clear(kernel, one, index)
            _add(kernel, nl.REPLACE, one, gateway, index)
        _put_first(kernel, index)
        _lead(kernel, devices)
    finally:
        kernel.close()


def lead(netns: str, devices: Sequence[tuple[Way, Block]]) -> None:
    """Reach devices by a further interface's gateway. Raises OSError."""
    kernel = namespaces.opened(netns)
    try:
        _lead(kernel, devices)
    finally:
        kernel.close()


def _lead(kernel: socket, devices: Sequence[tuple[Way, Block]]) -> None:
    for way, one in devices:
        _add(kernel, nl.REPLACE, one, way.gateway, rtnetlink.index_of(way.interface, kernel))


def check(netns: str, interface: str, cluster: Sequence[Block]) -> None:
    """See to it that the cluster is reached by the first interface. Raises CniError 104, OSError."""
    kernel = namespaces.opened(netns)
    try:
        index = rtnetlink.index_of(interface, kernel)
        found = _main(kernel)
    finally:
        kernel.close()
    for one in cluster:
        if not any(str(route.to) == str(one) and index in route.indices for route in found):
            raise CniError(CHECK_FAILED, f"{interface} has lost its route to {one}")
    defaults = [route for route in found if route.to.prefix == 0]
    if any(index in route.indices for route in defaults) and index not in defaults[0].indices:
        raise CniError(CHECK_FAILED, f"the default route of {interface} is not the first")


def _main(kernel: socket) -> list[Route]:
    """The main table's routes, in the order in which the kernel takes those to one network."""
    return [route for route in routing.routes(kernel) if route.table == routing.MAIN]


def _clear(kernel: socket, of: Block, index: int) -> None:
    """Take away routes of other interfaces into a range; one without a gateway says that it lies there."""
    for route in _main(kernel):
        if of.holds(route.to) and index not in route.indices:
            if not route.gateway:
                raise invalid("clusterRanges", f"another interface of the pod is in {route.to}, of {of}")
            _delete(kernel, route, route.indices[0])


def _put_first(kernel: socket, index: int) -> None:
    defaults = [route for route in _main(kernel) if route.to.prefix == 0]
    own = [route for route in defaults if index in route.indices]
    if not own or defaults[0] is own[0]:
        return
    metric = defaults[0].metric
    if own[0].metric == metric:
        _delete(kernel, own[0], index)
    _add(kernel, 0, own[0].to, own[0].gateway, index, metric)  # in front of others of this metric


def _add(kernel: socket, flags: int, to: Block, gateway: int, index: int, metric: int = 0) -> None:
    scope = 0 if gateway else nl.RT_SCOPE_LINK
    head = nl.rtmsg(to.prefix, nl.RT_TABLE_MAIN, nl.RTPROT_BOOT, nl.RTN_UNICAST, scope=scope)
    nl.tell(nl.RTM_NEWROUTE, nl.CREATE | flags, head + _attributes(to, gateway, index, metric), kernel)


def _delete(kernel: socket, route: Route, index: int) -> None:
    head = nl.rtmsg(route.to.prefix, nl.RT_TABLE_MAIN, scope=nl.RT_SCOPE_NOWHERE)
    nl.tell(nl.RTM_DELROUTE, 0, head + _attributes(route.to, route.gateway, index, route.metric), kernel)


def _attributes(to: Block, gateway: int, index: int, metric: int) -> bytes:
    found = nl.attribute(nl.RTA_DST, to.first.to_bytes(4, "big")) if to.prefix else b""
    found += nl.attribute(nl.RTA_GATEWAY, gateway.to_bytes(4, "big")) if gateway else b""
    return found + nl.u32(nl.RTA_OIF, index) + (nl.u32(nl.RTA_PRIORITY, metric) if metric else b"")
