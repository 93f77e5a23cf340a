"""A switch's ports, and the cable from each to a place, as text for ``ip -batch`` and ``tc -batch``.

A rate belongs to a cable and is enforced at the switch, outside the place, as a real link's is: what goes
there on the port itself, what comes from there on an ifb that the port's ingress is redirected to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface

from testbed.links import bucket, without_link_local


def hardware_address(address: IPv4Address) -> str:
    """Return what a place of this address has on its cable: others know it without asking."""
    return ":".join(f"{octet:02x}" for octet in b"\x02\x00" + address.packed)


def switch(name: str, mtu: int) -> Iterator[str]:
    """Yield the ``ip`` lines that make a switch."""
    yield f"link add {name} type bridge"
    yield f"link set {name} mtu {mtu}"
    yield from _set_up(name)


def plug(end: str, switch: str) -> Iterator[str]:
    """Yield the ``ip`` lines that make an interface a port of a switch."""
    yield f"link set {end} master {switch}"
    yield from _set_up(end)


def own_end(interface: str, address: IPv4Interface) -> str:
    """Return the ``ip -batch`` text for a place's own end of its cable, with its address."""
    lines = [f"address add {address} broadcast + dev {interface}", *_set_up(interface)]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Port:
    """A port of a switch, with the cable from it to a place's own interface."""

    switch: str
    name: str
    mtu: int
    interface: str  # of the place
    address: IPv4Address  # of the place
    rate: int | None  # bits per second; None: nothing but the machine limits it
    both: bool  # what comes from the place has a queue, too

    def links(self, namespace: str) -> Iterator[str]:
        """Yield the ``ip`` lines that make it, given the path of the place's network namespace."""
        yield (
            f"link add {self.name} mtu {self.mtu} type veth peer name {self.interface} "
            f"address {hardware_address(self.address)} mtu {self.mtu} netns {namespace}"
        )
        yield from plug(self.name, self.switch)
        if self.both:
            yield f"link add {self.name}-in mtu {self.mtu} type ifb"
            yield from _set_up(f"{self.name}-in")

    def queues(self) -> Iterator[str]:
        """Yield the ``tc`` lines that give it its rate, if it has one."""
        if self.rate is None:
            return
        shaper = f"root {bucket(self.rate)}"
        yield f"qdisc add dev {self.name} {shaper}"
        if self.both:
            yield f"qdisc add dev {self.name}-in {shaper}"
            yield f"qdisc add dev {self.name} handle ffff: ingress"
            yield (
                f"filter add dev {self.name} parent ffff: protocol all u32 match u32 0 0 "
                f"action mirred egress redirect dev {self.name}-in"
            )


def _set_up(device: str) -> Iterator[str]:
    yield from without_link_local(device)
    yield f"link set {device} up"
