"""What is promised on a node's uplink: the tree's parameters and one entry per attachment."""

from __future__ import annotations

from .. import addresses, names
from ..shaping import ETHERNET_HEADER, TCP_IP_HEADERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

# An outer Ethernet header less the one counted in the class, IPv4, UDP and VXLAN: 14 + 20 + 8 + 8 (RFC 7348).
VXLAN_HEADERS = 50


class Tree:
    """The parameters of the node's tree: rates in bits per second of layer 2 on the uplink."""

    def __init__(self, uplink: str, capacity: int, reserve: int, ports: tuple[int, ...]) -> None:
        self.uplink = uplink
        self.capacity = capacity
        self.reserve = reserve
        self.ports = ports

    @property
    def promisable(self) -> int:
        """The most that all guarantees together may take (bits per second)."""
        return self.capacity - self.reserve

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # compared, never a key


class Entry:
    """One attachment on the node.

    `guarantee` is the promise as it was given and `rate` what it takes on the uplink, `ceil` what the pod
    may use there, all in bits per second; `minor` is the class's. A pod without a guarantee there has no
    class and rate 0. `way` is the interface its packets enter the node's routing by (empty if nobody knows
    one), and `port` its port of a bridge (empty if it has none); `address` is None when another plugin gave
    no IPv4 address. `mac` is the pod's hardware address, and `others` its further addresses, of IPv4 and
    IPv6, in the form that inet_ntop(3) gives.
    """

    def __init__(
        self,
        network: str,
        container: str,
        interface: str,
        pod: str,
        address: int | None,
        way: str,
        port: str,
        guarantee: int | None,
        rate: int,
        ceil: int,
        minor: int | None = None,
        mac: str = "",
        others: str = "",
    ) -> None:
        self.network = network
        self.container = container
        self.interface = interface
        self.pod = pod
        self.address = address
        self.way = way
        self.port = port
        self.guarantee = guarantee
        self.rate = rate
        self.ceil = ceil
        self.minor = minor
        self.mac = mac
        self.others = others

    @property
    def ipv4(self) -> list[str]:
        """Its IPv4 addresses, dotted."""
        first = [] if self.address is None else [addresses.dotted(self.address)]
        return [*first, *(other for other in self.others.split() if ":" not in other)]

    @property
    def ipv6(self) -> list[str]:
        """Its IPv6 addresses but for the link-local one."""
        return [other for other in self.others.split() if ":" in other]

    @property
    def is_routed(self) -> bool:
        """Whether its frames enter the node by a veth of its own, which is no bridge's port."""
        return bool(self.way and self.mac and not self.port)

    @property
    def is_ours(self) -> bool:
        """Whether this plugin made its interface, and so the bridge with all its ports."""
        return self.port == names.host_veth(*self.key)

    @property
    def key(self) -> tuple[str, str, str]:
        """What names the attachment on this node: the networks of one node have different names."""
        return self.network, self.container, self.interface

    @property
    def who(self) -> str:
        """The attachment for people: the pod's name if the runtime told it."""
        return f"{self.network} {self.pod or self.container}"


def uplink_rate(limit: int, count: str, mtu: int, encapsulation: int) -> int:
    """What a promised rate takes on the uplink (bits per second of layer 2 there).

    `layer2` counts frames as the pod sends them, so that the same promise is the same goodput as with
    enforcement `pod`; on the uplink each has grown by the overlay's headers (bytes). `payload` counts full
    segments of TCP. MTU in bytes, the pod's.
    """
    counted = mtu + ETHERNET_HEADER if count == "layer2" else mtu - TCP_IP_HEADERS
    return -(-limit * (mtu + ETHERNET_HEADER + encapsulation) // counted)


def promised(entries: Iterable[Entry]) -> int:
    """The sum of what the entries take (bits per second)."""
    return sum(entry.rate for entry in entries)
