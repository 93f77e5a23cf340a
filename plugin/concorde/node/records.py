"""What is promised on a node's uplink: the tree's parameters and one entry per attachment."""

from __future__ import annotations

from .. import addresses, names
from ..leases import EGRESS, INGRESS
from ..shaping import ETHERNET_HEADER, TCP_IP_HEADERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Key = tuple[str, str, str]  # network, container, interface
    TreeKey = tuple[str, str]  # uplink, direction

# An outer Ethernet header less the one counted in the class, IPv4, UDP and VXLAN: 14 + 20 + 8 + 8 (RFC 7348).
VXLAN_HEADERS = 50

# What Ethernet adds to each frame on a wire: preamble and delimiter 8, check sequence 4, gap 12 (IEEE 802.3).
ETHERNET_OVERHEAD = 24
# A frame without its check sequence is padded to this (bytes; ETH_ZLEN, linux/if_ether.h).
LEAST_FRAME = 60
# The frame that rates of layer 2 are meant in: of an MTU of 1500, with its header.
FULL_FRAME = 1500 + ETHERNET_HEADER


# In place of a network namespace: no pod is in this one.
GONE = "gone"


class Fabric:
    """The other nodes, whose receivers say what may be sent to them without a promise (`concorde.fabric`).

    `nodes` are the networks of their addresses, `safe` is what this node sends to all of them together while
    nobody says anything (bits per second of the wire), and `port` is where their agents listen.
    """

    def __init__(self, nodes: tuple[str, ...], safe: int, port: int) -> None:
        self.nodes = nodes
        self.safe = safe
        self.port = port

    @property
    def text(self) -> str:
        """It as the ledger has it, for fabric_of()."""
        return " ".join((str(self.port), str(self.safe), *self.nodes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fabric) and vars(self) == vars(other)

    def __repr__(self) -> str:
        return self.text

    __hash__ = None  # type: ignore[assignment]  # compared, never a key


def fabric_of(text: str) -> Fabric | None:
    """What stands in the ledger, if a tree has one. Raises AttributeError and ValueError."""
    if not text:
        return None
    port, safe, *nodes = text.split()
    return Fabric(tuple(str(addresses.parse_subnet(one)) for one in nodes), int(safe), int(port))


class Tree:
    """The parameters of the tree of an uplink and a direction.

    `capacity` and `reserve` are of the wire (bits per second), of which a frame takes `overhead` bytes more
    than its own. What is promised is layer 2 in full frames: on_wire() turns it into the other. `segment` is
    the largest frame (bytes) that offloaded packets become before the tree; with 0 they stay as they are.

    With a `fabric` what goes to other nodes has classes of its own, whose ceilings these nodes grant. `peers`
    has such a class's minor by the node's address; it is no configuration, and two trees are equal whatever
    it is.
    """

    def __init__(
        self,
        uplink: str,
        capacity: int,
        reserve: int,
        ports: tuple[int, ...],
        overhead: int = ETHERNET_OVERHEAD,
        segment: int = 0,
        direction: str = EGRESS,
        fabric: Fabric | None = None,
    ) -> None:
        self.uplink = uplink
        self.capacity = capacity
        self.reserve = reserve
        self.ports = ports
        self.overhead = overhead
        self.segment = segment
        self.direction = direction
        self.fabric = fabric
        self.peers: dict[int, int] = {}

    @property
    def key(self) -> TreeKey:
        """What tells it from the node's others."""
        return self.uplink, self.direction

    @property
    def downlink(self) -> Tree:
        """What may be promised of what arrives by the same link, which carries as much.

        The kernel has no tree for that: it is too late there, and what others send is held back where they
        send it.
        """
        return Tree(**{**self.configured, "direction": INGRESS})

    @property
    def configured(self) -> dict[str, Any]:
        """All that a configuration says of it."""
        return {name: value for name, value in vars(self).items() if name != "peers"}

    @property
    def least(self) -> int:
        """What the smallest frame takes of the wire (bytes); 0 where none takes more than its own."""
        return LEAST_FRAME + self.overhead if self.overhead else 0

    @property
    def usable(self) -> int:
        """What the classes together may take (bits per second of the wire, as they count).

        The kernel makes frames of an offloaded packet behind the tree, so it costs `overhead` once there and
        once a frame on the wire. So much less is used as makes up for that in full frames.
        """
        return self._full_frames(self.capacity) // 8 * 8

    @property
    def promisable(self) -> int:
        """The most that all guarantees together may take (bits per second of layer 2 in full frames)."""
        return self._full_frames(self.usable - self.reserve)

    def on_wire(self, rate: int) -> int:
        """What a rate of layer 2 in full frames takes of the wire (both in bits per second)."""
        return rate * (FULL_FRAME + self.overhead) // FULL_FRAME

    @property
    def wire_of_packets(self) -> float:
        """What full packets of IP take of the wire, of a byte each."""
        return (FULL_FRAME + self.overhead) / (FULL_FRAME - ETHERNET_HEADER)

    def _full_frames(self, wire: int) -> int:
        return wire * FULL_FRAME // (FULL_FRAME + self.overhead)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.configured == other.configured

    __hash__ = None  # type: ignore[assignment]  # compared, never a key


class Entry:
    """One attachment on the node.

    `guarantee` is the promise as it was given, `answers` the one for its acknowledgements, `rate` what both
    take on the uplink, `ceil` what the pod may use there, all in bits per second of layer 2 in full frames:
    rate and ceil are 0 where the network's pods have no part in the tree. `ingress` is the promise of what it
    receives as it was given, and `inward` what that takes of the same link. `minor` is the number of its
    classes, None where it has none, in the tree of `uplink`. With `peer` the promise is for what goes to that
    one alone, else to anybody. `host_interface` is where its packets enter the node's
    routing (empty if nobody knows), and `port` its port of a bridge (empty if it has none); `address` is None
    when another plugin gave no IPv4 address. `mac` is the pod's hardware address, and `others` its further
    addresses, of IPv4 and IPv6, in the form that inet_ntop(3) gives.

    Of an interface that another plugin made, the rest is what it is known by itself (host_interfaces.py):
    the node's end's index and hardware address, the pod's end's index, the node's number for the pod's
    network namespace, and what tells that from all others. 0, -1 and empty mean that nobody looked.
    """

    def __init__(
        self,
        network: str,
        container: str,
        interface: str,
        pod: str,
        address: int | None,
        host_interface: str,
        port: str,
        guarantee: int | None,
        rate: int,
        ceil: int,
        minor: int | None = None,
        mac: str = "",
        others: str = "",
        answers: int | None = None,
        link: int = 0,
        host_mac: str = "",
        inside: int = 0,
        number: int = -1,
        namespace: str = "",
        uplink: str = "",
        peer: str = "",
        ingress: int | None = None,
        inward: int = 0,
    ) -> None:
        self.network = network
        self.container = container
        self.interface = interface
        self.pod = pod
        self.address = address
        self.host_interface = host_interface
        self.port = port
        self.guarantee = guarantee
        self.rate = rate
        self.ceil = ceil
        self.minor = minor
        self.mac = mac
        self.others = others
        self.answers = answers
        self.link = link
        self.host_mac = host_mac
        self.inside = inside
        self.number = number
        self.namespace = namespace
        self.uplink = uplink
        self.peer = peer
        self.ingress = ingress
        self.inward = inward

    def bury(self) -> None:
        """Let it hold nothing but its key until its DEL: its interface is another attachment's by now."""
        gone = Entry(*self.key, self.pod, None, "", "", None, 0, 0, namespace=GONE)
        self.__dict__.update(vars(gone))

    @property
    def end(self) -> str:
        """The node's end of its interface, by which it is guarded; empty if it has none."""
        return self.port or self.host_interface

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
    def link_local(self) -> list[str]:
        """Its link-local address, if its hardware address is known (RFC 4291)."""
        return [addresses.link_local(self.mac)] if self.mac else []

    @property
    def is_routed(self) -> bool:
        """Whether its frames enter the node by a veth of its own, which is no bridge's port."""
        return bool(self.host_interface and self.mac and not self.port)

    @property
    def is_ours(self) -> bool:
        """Whether this plugin made its interface, and so the bridge with all its ports."""
        return self.port == names.host_veth(*self.key)

    @property
    def has_classes(self) -> bool:
        """Whether the tree has classes for it: where its packets can be told from others'."""
        return bool(self.ceil and self.host_interface and self.address is not None)

    @property
    def key(self) -> Key:
        """What names the attachment on this node: the networks of one node have different names."""
        return self.network, self.container, self.interface

    @property
    def tree(self) -> TreeKey:
        """The key of the tree that has its classes."""
        return self.uplink, EGRESS

    def promise(self, direction: str) -> int | None:
        """What it is promised of what it sends, or receives (bits per second as promised)."""
        return self.guarantee if direction == EGRESS else self.ingress

    def takes(self, direction: str) -> int:
        """What its promises take of its link in a direction (bits per second of layer 2 in full frames)."""
        return self.rate if direction == EGRESS else self.inward

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


def of_tree(tree: Tree, entries: Iterable[Entry]) -> list[Entry]:
    """Those that have a part in a tree, or in the same link's other direction."""
    return [entry for entry in entries if entry.uplink == tree.uplink]


def promised(entries: Iterable[Entry], direction: str = EGRESS) -> int:
    """The sum of what the entries take (bits per second of layer 2 in full frames)."""
    return sum(entry.takes(direction) for entry in entries)
