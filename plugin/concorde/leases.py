"""A lease: everything one attachment holds, and all that CHECK, DEL and GC need to know about it."""

from __future__ import annotations

from . import addresses


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

    `guarantee`, `answers` and `ceiling` are the promise in bits per second, `rate` (bits per second of layer
    2) and `burst` (bytes) the class's; each is None where there is none.
    """

    def __init__(
        self,
        enforcement: str,
        guarantee: int | None,
        ceiling: int | None,
        rate: int | None,
        burst: int | None,
        answers: int | None = None,
    ) -> None:
        self.enforcement = enforcement
        self.guarantee = guarantee
        self.ceiling = ceiling
        self.rate = rate
        self.burst = burst
        self.answers = answers

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
