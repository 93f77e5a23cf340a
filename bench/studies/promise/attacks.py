"""Every attack: what the pod does, what must stay as it is, and the frames that it sends again and again.

Of all of them the neighbour keeps what it was promised, and all stays as it was configured; what else must
stay is said with the attack. probes/programs/inject.py sends the frames; ``CONTAINED`` gives it what a
container has of root's rights that concerns frames, and nothing else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bench.studies.promise.frames import (
    ACK,
    ARP_REPLY,
    ARP_REQUEST,
    BROADCAST,
    DISCARD,
    IPV4,
    LLDP,
    LLDP_TYPE,
    LOAD,
    MORE,
    PRIORITY_TAG,
    SECOND_TAG,
    SYN,
    UNIT,
    End,
    Frame,
    arp,
    ethernet,
    fragments,
    ipv4,
    made_up,
    tcp,
    tcp_syn,
    too_large,
    udp,
    vxlan,
)


@dataclass(frozen=True)
class Tunnel:
    """An overlay of VXLAN that the attacker's node and another one have VTEPs of."""

    port: int  # UDP
    number: int  # VNI
    near: End  # of the attacker's node: hardware address of its VTEP, and the node's own address
    far: End  # of the other node


@dataclass(frozen=True)
class Scene:
    """Everybody who matters, each by hardware address and IPv4 address."""

    own: End
    neighbour: End  # a pod of the same node, that was promised something
    gateway: End  # of the pods there
    remote: str  # address of a pod on the other node
    nobody_here: Sequence[str] = ()  # addresses of the node's pods' networks that nobody has
    nobody_beyond: Sequence[str] = ()  # the same of other nodes, and of pods there
    on_link: Sequence[str] = ()  # addresses of the nodes' own network that nobody has
    tunnel: Tunnel | None = None  # none: pods' packets are routed as they are
    node_beyond: str = ""  # the other node's own address; empty: not known

    def routed(self, packet: bytes, tags: bytes = b"") -> Frame:
        """Return a frame with a packet, from the attacker to the gateway."""
        return ethernet(self.gateway[0], self.own[0], IPV4, packet, tags)

    def datagram(self, to: str, load: bytes = b"") -> Frame:
        """Return a datagram of the attacker's own."""
        return self.routed(ipv4(self.own[1], to, udp(DISCARD, load)))

    def disguised(self) -> bytes:
        """Return a packet from the neighbour's address."""
        return ipv4(self.neighbour[1], self.remote, udp(DISCARD, LOAD))

    def segment(self, port: int, to_port: int, flags: int, load: bytes = b"") -> Frame:
        """Return a segment to the pod of another node."""
        ends = self.own[1], self.remote
        packet = ipv4(*ends, tcp(ends, (port, to_port), flags, load), protocol=socket.IPPROTO_TCP)
        return self.routed(packet)


CONTAINED = ("setpriv", "--bounding-set=-all,+net_raw", "--inh-caps=-all")
MANY_MACS, MANY_ADDRESSES = 2000, 65_000
# More next hops than Concorde lets one pod have of the neighbour table (199), and less than half of what the
# table holds (gc_thresh3, 1,024): all networks of a machine have one, and nobody may limit who sends.
MANY_HOPS = 400
# First fragments of so many packets take more than the 4 MB that a network has for all of them
# (net.ipv4.ipfrag_high_thresh; 2,504 bytes a fragment), and never more of the machine's memory than that.
MANY_FRAGMENTS = 2000
# Half of what the smallest table of connections has room for: 65,536 (nf_conntrack_max; nf_conntrack_core.c).
MANY_PORTS = 32_000
FIRST_PORT = 1024
SSH_PORT, IPERF3_PORT = 22, 5201
CHECKSUM = 14 + 20 + 16  # where a frame has TCP's (RFC 9293, section 3.1)
# The first pod's class in a tree of Concorde's (docs/explanation/guarantees-on-a-full-link.md, "The tree").
FIRST_CLASS = 0xC0DE0010
SOME = 10  # of many, where all kinds take turns
SAMPLE = 12  # attacks at most: with what judges each of them, less than a minute

Frames = TypeVar("Frames", bound=Callable[..., list[Frame]])  # made of a scene


@dataclass(frozen=True)
class Attack:
    """One thing to try, which its frames' function describes."""

    name: str
    frames: Callable[[Scene], list[Frame]]
    # Whether others than the neighbour and the nodes' own tables get to see it: every pod of a node, or
    # whoever has an address; or whoever needs a table that it fills.
    reaches_others: bool = False
    needs_tunnel: bool = False
    needs_node: bool = False
    # What the pod asks its own kernel for: ``priority`` (SO_PRIORITY).
    options: Mapping[str, int] = field(default_factory=dict)


ATTACKS: list[Attack] = []  # neighbours in it are alike


def attack(**how: Any) -> Callable[[Frames], Frames]:
    """Make an attack of what returns its frames, and by whose name it is called; see Attack."""

    def known(frames: Frames) -> Frames:
        name = frames.__name__.replace("_", "-")
        ATTACKS.append(Attack(name, frames, **how))
        return frames

    return known


@attack()
def all_disguises(scene: Scene) -> list[Frame]:
    """Send all that is not the attacker's own, by turns."""
    return [
        *neighbours_address(scene),
        *twice_tagged(scene),
        *tagged_claims(scene),
        *neighbours_mac(scene),
        *neighbours_mac_in_lldp(scene),
        *complaints(scene),
        *many_macs(scene, SOME),
        *([*to_own_vtep(scene), *to_other_vtep(scene)] if scene.tunnel else []),
    ]


@attack()
def neighbours_address(scene: Scene) -> list[Frame]:
    """Send from the neighbour's address."""
    return [scene.routed(scene.disguised())]


@attack()
def twice_tagged(scene: Scene) -> list[Frame]:
    """Send from the neighbour's address, within two VLAN tags."""
    tags = (PRIORITY_TAG + PRIORITY_TAG, SECOND_TAG + PRIORITY_TAG)
    return [scene.routed(scene.disguised(), two) for two in tags]


@attack()
def tagged_claims(scene: Scene) -> list[Frame]:
    """Claim the neighbour's and the gateway's addresses by ARP, in a VLAN tag. No neighbour table changes."""
    mac = scene.own[0]
    return [
        arp(ARP_REPLY, mac, (mac, scene.neighbour[1]), scene.gateway, PRIORITY_TAG),
        arp(ARP_REPLY, mac, (mac, scene.gateway[1]), scene.neighbour, PRIORITY_TAG),
    ]


@attack(options={"priority": FIRST_CLASS})
def neighbours_class(scene: Scene) -> list[Frame]:
    """Send its own packets with SO_PRIORITY, as who is in the first pod's class."""
    return [scene.datagram(scene.remote, LOAD)]


@attack()
def within_another(scene: Scene) -> list[Frame]:
    """Send from the neighbour's address within packets of its own (IP in IP)."""
    ends = scene.own[1], scene.remote
    return [scene.routed(ipv4(*ends, scene.disguised(), protocol=socket.IPPROTO_IPIP))]


@attack(reaches_others=True, needs_node=True)
def control_port(scene: Scene) -> list[Frame]:
    """Ask another node for connections to sshd's port. It has its own class, and not the node's reserve.

    The packets are large, for it is the link that is attacked: small ones keep the processor of the node that
    answers each of them from the promised flow.
    """
    return [scene.routed(tcp_syn(scene.own[1], scene.node_beyond, SSH_PORT, LOAD))]


def from_mac(scene: Scene, mac: str) -> Frame:
    """Return a tiny frame to the gateway that moves the bridge's entry of a hardware address."""
    packet = ipv4(scene.own[1], scene.gateway[1], udp(DISCARD, b""))
    return ethernet(scene.gateway[0], mac, IPV4, packet)


@attack()
def neighbours_mac(scene: Scene) -> list[Frame]:
    """Send from the neighbour's hardware address. No entry of the bridge changes."""
    return [from_mac(scene, scene.neighbour[0])]


@attack()
def neighbours_mac_in_lldp(scene: Scene) -> list[Frame]:
    """Send the same to LLDP's address, which bridges keep to themselves. No entry of the bridge changes."""
    return [ethernet(LLDP, scene.neighbour[0], LLDP_TYPE, bytes(46))]


@attack()
def many_macs(scene: Scene, count: int = MANY_MACS) -> list[Frame]:
    """Send from many hardware addresses that nobody has. No entry of the bridge changes."""
    return [from_mac(scene, mac) for mac in made_up(count)]


def to_vtep(scene: Scene, near: bool, to: str) -> list[Frame]:
    """Return the neighbour's packets for a node's VTEP to take out; whole and in fragments."""
    tunnel = scene.tunnel
    assert tunnel is not None, "there is no VTEP"
    taker, other = (tunnel.near, tunnel.far) if near else (tunnel.far, tunnel.near)
    inner = ipv4(scene.neighbour[1], to, udp(DISCARD, LOAD))
    datagram = vxlan(tunnel.port, tunnel.number, other[0], taker[0], inner)
    pieces = [ipv4(scene.own[1], taker[1], datagram), *fragments(scene.own[1], taker[1], datagram)]
    return [scene.routed(packet) for packet in pieces]


@attack(needs_tunnel=True)
def to_own_vtep(scene: Scene) -> list[Frame]:
    """Send VXLAN to its own node: what came out of it again would be in nobody's class. Nothing does."""
    return to_vtep(scene, near=True, to=scene.remote)


@attack(needs_tunnel=True)
def to_other_vtep(scene: Scene) -> list[Frame]:
    """Send VXLAN to another node: what got into it would go back to the neighbour. Nothing does."""
    return to_vtep(scene, near=False, to=scene.neighbour[1])


@attack()
def complaints(scene: Scene) -> list[Frame]:
    """Say by ICMP that the neighbour's and the node's packets are too large. No route has another MTU."""
    about = [address for address in (scene.remote, scene.node_beyond) if address]
    return [
        ethernet(mac, scene.own[0], IPV4, too_large(scene.own[1], to, one))
        for mac, to in (scene.neighbour, scene.gateway)
        for one in about
    ]


@attack(reaches_others=True)
def broadcast(scene: Scene) -> list[Frame]:
    """Send to everybody: it is every pod's work."""
    packet = ipv4(scene.own[1], "255.255.255.255", udp(DISCARD, LOAD))
    return [ethernet(BROADCAST, scene.own[0], IPV4, packet)]


@attack(reaches_others=True)
def questions(scene: Scene) -> list[Frame]:
    """Ask by ARP who has this address, and that."""
    network = ".".join(scene.own[1].split(".")[:2])
    asked = (f"{network}.{number >> 8}.{number & 255}" for number in range(MANY_ADDRESSES))
    return [arp(ARP_REQUEST, scene.own[0], scene.own, (BROADCAST, address)) for address in asked]


@attack(reaches_others=True)
def unreachable(scene: Scene) -> list[Frame]:
    """Send to hosts and pods of other nodes that do not exist: both nodes must ask for them."""
    return [scene.datagram(address) for address in scene.nobody_beyond]


@attack(reaches_others=True)
def nobody_here(scene: Scene) -> list[Frame]:
    """Send to pods of its own node that do not exist, by way of the gateway."""
    return [scene.datagram(address) for address in scene.nobody_here]


@attack(reaches_others=True)
def next_hops(scene: Scene) -> list[Frame]:
    """Send to hosts that do not exist: the sender's node must ask for each, and remember that it did."""
    return [scene.datagram(address) for address in scene.on_link[:MANY_HOPS]]


@attack(reaches_others=True)
def first_fragments(scene: Scene) -> list[Frame]:
    """Send its node beginnings of packets, large ones and tiny ones, whose rest never comes."""
    datagram = udp(DISCARD, LOAD)
    large = datagram[: len(datagram) // UNIT * UNIT]
    return [
        scene.routed(
            ipv4(scene.own[1], scene.gateway[1], (large, large[:UNIT])[number % 2], MORE, number=number)
        )
        for number in range(1, 2 * MANY_FRAGMENTS + 1)
    ]


@attack(reaches_others=True)
def connections(scene: Scene) -> list[Frame]:
    """Ask a pod for connections, each from a port of its own: who tracks them has an entry for each.

    The packets are large for the reason that those of ``control_port`` are.
    """
    return [scene.segment(FIRST_PORT + number, DISCARD, SYN, LOAD) for number in range(MANY_PORTS)]


@attack()
def acknowledgements(scene: Scene) -> list[Frame]:
    """Send a pod what looks like the answers of somebody who gets a lot.

    TCP's checksum is none, so that nobody answers with a reset: see ``control_port`` of who would.
    """
    sent = [scene.segment(IPERF3_PORT, FIRST_PORT + number, ACK) for number in range(SOME)]
    return [frame[:CHECKSUM] + bytes(2) + frame[CHECKSUM + 2 :] for frame in sent]


@attack()
def smallest(scene: Scene) -> list[Frame]:
    """Send what has the most preambles and gaps on the wire: datagrams without data (42 bytes)."""
    return [scene.datagram(scene.remote)]


def possible(scene: Scene, only_own: bool) -> list[Attack]:
    """Return the attacks that a scene has all for; with ``only_own`` those that reach nobody else."""
    return [
        attack
        for attack in ATTACKS
        if not (attack.needs_tunnel and scene.tunnel is None)
        and not (attack.needs_node and not scene.node_beyond)
        and not (only_own and attack.reaches_others)
    ]


def sample(attacks: Sequence[Attack], turn: int) -> Sequence[Attack]:
    """Return at most SAMPLE of some attacks. Neighbours in the list are alike, and have different turns.

    As many turns in a row as it takes to have all of them, do.
    """
    step = -(-len(attacks) // SAMPLE)
    return attacks[turn % step :: step] if attacks else attacks
