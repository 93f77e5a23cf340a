"""A lease: everything one attachment holds, and all that CHECK, DEL and GC need to know about it."""

from __future__ import annotations

from . import addresses, names
from .configuration import ENFORCEMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .configuration import Configuration


# What is promised on a link: of what pods send by it, and of what they receive.
EGRESS, INGRESS = "egress", "ingress"


class Link:
    """The interface this plugin made for a pod; MTU in bytes."""

    def __init__(
        self, interface: str, mtu: int, address: int, subnet: addresses.Subnet, bridge: str, host_veth: str
    ) -> None:
        self.interface = interface
        self.mtu = mtu
        self.address = address
        self.subnet = subnet
        self.bridge = bridge
        self.host_veth = host_veth


class Terms:
    """What was promised and what keeping it takes.

    `guarantee`, `answers`, `ingress` (of what it receives) and `ceiling` are the promise in bits per second,
    `rate` (bits per second of layer 2) and `burst` (bytes) the class's; each is None where there is none.
    """

    def __init__(
        self,
        enforcement: str,
        guarantee: int | None,
        ceiling: int | None,
        rate: int | None,
        burst: int | None,
        answers: int | None = None,
        ingress: int | None = None,
    ) -> None:
        self.enforcement = enforcement
        self.guarantee = guarantee
        self.ceiling = ceiling
        self.rate = rate
        self.burst = burst
        self.answers = answers
        self.ingress = ingress

    @property
    def promises(self) -> bool:
        """Whether anything is promised on the node's link; a ceiling is not."""
        return bool(self.guarantee or self.answers or self.ingress)

    def promise(self, direction: str) -> int | None:
        """What is promised of what the pod sends, or receives (bits per second)."""
        return self.guarantee if direction == EGRESS else self.ingress

    def __str__(self) -> str:
        return ", ".join(f"{name} {value}" for name, value in vars(self).items())


class Lease:
    """One attachment, its terms, and its link unless another plugin of the chain made the interface.

    `pod` is the pod's name for people, if the runtime told it; it is not read back.
    """

    def __init__(
        self, container: str, interface: str, terms: Terms, link: Link | None, pod: str = ""
    ) -> None:
        self.container = container
        self.interface = interface
        self.terms = terms
        self.link = link
        self.pod = pod

    def mtu(self, network: Configuration) -> int:
        """The pod's MTU (bytes): its link's, or else what its network's pods have here. Raises CniError 7."""
        return network.node_mtu() if self.link is None else self.link.mtu


def lease_of(row: tuple[Any, ...]) -> Lease:
    """The lease of a row, which a version before left without what is promised to what the pod receives.

    Raises AttributeError, TypeError and ValueError for what ADD never wrote.
    """
    _, container, interface, enforcement, *rest = row
    numbers, (subnet, bridge, host_veth), received = rest[:7], rest[7:10], rest[10:]
    if not (names.is_identifier(container) and names.is_interface(interface) and enforcement in ENFORCEMENTS):
        raise ValueError
    if not all(number is None or isinstance(number, int) for number in (*numbers, *received)):
        raise ValueError
    mtu, address = numbers[5:]
    link = None
    if subnet is not None or host_veth is not None:
        if not (names.is_interface(bridge) and names.is_interface(host_veth) and isinstance(mtu, int)):
            raise ValueError
        if not 0 <= address < 1 << 32:
            raise ValueError
        link = Link(interface, mtu, address, addresses.parse_subnet(subnet), bridge, host_veth)
    return Lease(container, interface, Terms(enforcement, *numbers[:5], *received), link)
