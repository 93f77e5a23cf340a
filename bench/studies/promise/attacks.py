"""Every attack: what the pod does, what must stay as it is, and the frames that it sends again and again.

probes/programs/inject.py sends them; ``CONTAINED`` gives it what a container has of root's rights that
concerns frames, and nothing else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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

KEEPS = "the neighbour keeps what it was promised"


@dataclass(frozen=True)
class Attack:
    """One thing to try."""

    name: str
    does: str  # as the end of "a pod ..."
    stays: str  # what must remain true meanwhile and after
    frames: Callable[[Scene], list[Frame]]
    # Whether others than the neighbour and the nodes' own tables get to see it: every pod of a node, or
    # whoever has an address; or whoever needs a table that it fills.
    reaches_others: bool = False
    needs_tunnel: bool = False
    needs_node: bool = False
    # What the pod asks its own kernel for: ``priority`` (SO_PRIORITY).
    options: Mapping[str, int] = field(default_factory=dict)


def plain(scene: Scene, to: str, source_mac: str, load: bytes = LOAD) -> Frame:
    """Return a packet from the attacker's address by way of the gateway."""
    return ethernet(scene.gateway[0], source_mac, IPV4, ipv4(scene.own[1], to, udp(DISCARD, load)))


def complaints(scene: Scene) -> list[Frame]:
    """Say to the neighbour and to the node that their packets to others are too large."""
    about = [address for address in (scene.remote, scene.node_beyond) if address]
    return [
        ethernet(mac, scene.own[0], IPV4, too_large(scene.own[1], to, one))
        for mac, to in (scene.neighbour, scene.gateway)
        for one in about
    ]


def twice_tagged(scene: Scene) -> list[Frame]:
    """Return a neighbour's packets within two tags."""
    packet = ipv4(scene.neighbour[1], scene.remote, udp(DISCARD, LOAD))
    tags = (PRIORITY_TAG + PRIORITY_TAG, SECOND_TAG + PRIORITY_TAG)
    return [ethernet(scene.gateway[0], scene.own[0], IPV4, packet, two) for two in tags]


def tagged_claims(scene: Scene) -> list[Frame]:
    """Tell the node that the neighbour is here, and the neighbour that the gateway is."""
    mac = scene.own[0]
    return [
        arp(ARP_REPLY, mac, (mac, scene.neighbour[1]), scene.gateway, PRIORITY_TAG),
        arp(ARP_REPLY, mac, (mac, scene.gateway[1]), scene.neighbour, PRIORITY_TAG),
    ]


def neighbours_address(scene: Scene) -> list[Frame]:
    """Return packets from a neighbour's address."""
    packet = ipv4(scene.neighbour[1], scene.remote, udp(DISCARD, LOAD))
    return [ethernet(scene.gateway[0], scene.own[0], IPV4, packet)]


def neighbours_class(scene: Scene) -> list[Frame]:
    """Return packets of its own, which ask for a class."""
    return [plain(scene, scene.remote, scene.own[0])]


def within_another(scene: Scene) -> list[Frame]:
    """Return packets from a neighbour's address within packets of its own (IP in IP)."""
    inner = ipv4(scene.neighbour[1], scene.remote, udp(DISCARD, LOAD))
    packet = ipv4(scene.own[1], scene.remote, inner, protocol=socket.IPPROTO_IPIP)
    return [ethernet(scene.gateway[0], scene.own[0], IPV4, packet)]


def control_port(scene: Scene) -> list[Frame]:
    """Ask another node for connections to where it is repaired.

    The packets are large, for it is the link that is attacked: small ones keep the processor of the node that
    answers each of them from the promised flow.
    """
    packet = tcp_syn(scene.own[1], scene.node_beyond, SSH_PORT, LOAD)
    return [ethernet(scene.gateway[0], scene.own[0], IPV4, packet)]


def neighbours_mac(scene: Scene) -> list[Frame]:
    """Return tiny frames that move the bridge's entry of the neighbour."""
    return [plain(scene, scene.gateway[1], scene.neighbour[0], load=b"")]


def neighbours_mac_in_lldp(scene: Scene) -> list[Frame]:
    """Return the same in frames that a bridge keeps to itself."""
    return [ethernet(LLDP, scene.neighbour[0], LLDP_TYPE, bytes(46))]


def many_macs(scene: Scene, count: int = MANY_MACS) -> list[Frame]:
    """Return frames that make as many entries of the bridge."""
    return [plain(scene, scene.gateway[1], mac, load=b"") for mac in made_up(count)]


def to_vtep(scene: Scene, tunnel: Tunnel, near: bool, to: str) -> list[Frame]:
    """Return the neighbour's packets for a node's VTEP to take out; whole and in fragments."""
    taker, other = (tunnel.near, tunnel.far) if near else (tunnel.far, tunnel.near)
    inner = ipv4(scene.neighbour[1], to, udp(DISCARD, LOAD))
    datagram = vxlan(tunnel.port, tunnel.number, other[0], taker[0], inner)
    pieces = [ipv4(scene.own[1], taker[1], datagram), *fragments(scene.own[1], taker[1], datagram)]
    return [ethernet(scene.gateway[0], scene.own[0], IPV4, packet) for packet in pieces]


def to_own_vtep(scene: Scene) -> list[Frame]:
    """Return what comes out of the node again, in nobody's class."""
    assert scene.tunnel is not None, "there is no VTEP"
    return to_vtep(scene, scene.tunnel, near=True, to=scene.remote)


def to_other_vtep(scene: Scene) -> list[Frame]:
    """Return what gets into the other node, and back to the neighbour."""
    assert scene.tunnel is not None, "there is no VTEP"
    return to_vtep(scene, scene.tunnel, near=False, to=scene.neighbour[1])


def broadcast(scene: Scene) -> list[Frame]:
    """Return every pod's work."""
    packet = ipv4(scene.own[1], "255.255.255.255", udp(DISCARD, LOAD))
    return [ethernet(BROADCAST, scene.own[0], IPV4, packet)]


def questions(scene: Scene) -> list[Frame]:
    """Ask who has this address, and that."""
    network = ".".join(scene.own[1].split(".")[:2])
    asked = (f"{network}.{number >> 8}.{number & 255}" for number in range(MANY_ADDRESSES))
    return [arp(ARP_REQUEST, scene.own[0], scene.own, (BROADCAST, address)) for address in asked]


def unreachable(scene: Scene) -> list[Frame]:
    """Send to hosts and pods of other nodes that do not exist: both nodes must ask for them."""
    return [plain(scene, address, scene.own[0], load=b"") for address in scene.nobody_beyond]


def nobody_here(scene: Scene) -> list[Frame]:
    """Send to pods of this node that do not exist, by way of the gateway."""
    return [plain(scene, address, scene.own[0], load=b"") for address in scene.nobody_here]


def smallest(scene: Scene) -> list[Frame]:
    """Return what has the most preambles and gaps on the wire: datagrams without data (42 bytes)."""
    return [plain(scene, scene.remote, scene.own[0], load=b"")]


def next_hops(scene: Scene) -> list[Frame]:
    """Send to hosts that do not exist: the sender's node must ask for each, and remember that it did."""
    return [plain(scene, address, scene.own[0], load=b"") for address in scene.on_link[:MANY_HOPS]]


def first_fragments(scene: Scene) -> list[Frame]:
    """Return beginnings of packets to the node itself, large ones and tiny ones, whose rest never comes."""
    datagram = udp(DISCARD, LOAD)
    large = datagram[: len(datagram) // UNIT * UNIT]
    packets = (
        ipv4(scene.own[1], scene.gateway[1], (large, large[:UNIT])[number % 2], MORE, number=number)
        for number in range(1, 2 * MANY_FRAGMENTS + 1)
    )
    return [ethernet(scene.gateway[0], scene.own[0], IPV4, packet) for packet in packets]


def segment(scene: Scene, port: int, to_port: int, flags: int, load: bytes = b"") -> Frame:
    """Return a segment to the pod of another node."""
    ends = scene.own[1], scene.remote
    packet = ipv4(*ends, tcp(ends, (port, to_port), flags, load), protocol=socket.IPPROTO_TCP)
    return ethernet(scene.gateway[0], scene.own[0], IPV4, packet)


def acknowledgements(scene: Scene) -> list[Frame]:
    """Return what looks like the answers of somebody who gets a lot.

    TCP's checksum is none, so that nobody answers with a reset: see ``control_port`` of who would.
    """
    sent = [segment(scene, IPERF3_PORT, FIRST_PORT + number, ACK) for number in range(SOME)]
    return [frame[:CHECKSUM] + bytes(2) + frame[CHECKSUM + 2 :] for frame in sent]


def connections(scene: Scene) -> list[Frame]:
    """Ask for connections, each from a port of its own: who tracks them has an entry for each.

    The packets are large for the reason that those of ``control_port`` are.
    """
    return [segment(scene, FIRST_PORT + number, DISCARD, SYN, LOAD) for number in range(MANY_PORTS)]


def all_disguises(scene: Scene) -> list[Frame]:
    """Return what is not the attacker's own, all of it by turns."""
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


ATTACKS: Sequence[Attack] = (
    Attack("all-disguises", "sends all that is not its own, by turns", KEEPS, all_disguises),
    Attack("neighbours-address", "sends from a neighbour's address", KEEPS, neighbours_address),
    Attack("twice-tagged", "sends from a neighbour's address, within two VLAN tags", KEEPS, twice_tagged),
    Attack(
        "tagged-claims",
        "claims a neighbour's and the gateway's addresses by ARP, in a VLAN tag",
        f"no neighbour table changes; {KEEPS}",
        tagged_claims,
    ),
    Attack(
        "neighbours-class",
        "sends its own packets with SO_PRIORITY, as who is in the first pod's class",
        KEEPS,
        neighbours_class,
        options={"priority": FIRST_CLASS},
    ),
    Attack(
        "within-another", "sends from a neighbour's address, in packets of its own", KEEPS, within_another
    ),
    Attack(
        "control-port",
        "asks another node for connections to sshd's port",
        f"it has its own class, and not the node's reserve; {KEEPS}",
        control_port,
        reaches_others=True,
        needs_node=True,
    ),
    Attack(
        "neighbours-mac",
        "sends from a neighbour's hardware address",
        f"no entry of the bridge changes; {KEEPS}",
        neighbours_mac,
    ),
    Attack(
        "neighbours-mac-in-lldp",
        "sends from a neighbour's hardware address, to LLDP's, which bridges keep to themselves",
        f"no entry of the bridge changes; {KEEPS}",
        neighbours_mac_in_lldp,
    ),
    Attack(
        "many-macs",
        f"sends from {MANY_MACS} hardware addresses that nobody has",
        f"no entry of the bridge changes; {KEEPS}",
        many_macs,
    ),
    Attack(
        "to-own-vtep",
        "sends VXLAN to its own node, with a neighbour's packets inside, whole and in fragments",
        f"nothing comes out of it; {KEEPS}",
        to_own_vtep,
        needs_tunnel=True,
    ),
    Attack(
        "to-other-vtep",
        "sends VXLAN to another node, with a neighbour's packets inside, whole and in fragments",
        f"nothing comes out of it; {KEEPS}",
        to_other_vtep,
        needs_tunnel=True,
    ),
    Attack(
        "complaints",
        "says by ICMP that the neighbour's and the node's packets to others are too large",
        f"no route has another MTU; {KEEPS}",
        complaints,
    ),
    Attack("broadcast", "sends to everybody", KEEPS, broadcast, reaches_others=True),
    Attack(
        "questions",
        f"asks by ARP for {MANY_ADDRESSES} addresses",
        KEEPS,
        questions,
        reaches_others=True,
    ),
    Attack(
        "unreachable",
        "sends to 500 addresses of other nodes that nobody has",
        KEEPS,
        unreachable,
        reaches_others=True,
    ),
    Attack(
        "nobody-here",
        "sends to 500 pods of its own node that nobody is",
        KEEPS,
        nobody_here,
        reaches_others=True,
    ),
    Attack(
        "next-hops",
        f"sends to {MANY_HOPS} addresses of the nodes' own network that nobody has",
        KEEPS,
        next_hops,
        reaches_others=True,
    ),
    Attack(
        "first-fragments",
        f"sends its node the beginnings of {MANY_FRAGMENTS} packets, and as many tiny ones, without the rest",
        KEEPS,
        first_fragments,
        reaches_others=True,
    ),
    Attack(
        "connections",
        f"asks a pod of another node for connections, from {MANY_PORTS} ports",
        KEEPS,
        connections,
        reaches_others=True,
    ),
    Attack(
        "acknowledgements",
        "sends a pod of another node acknowledgements of what it never got",
        KEEPS,
        acknowledgements,
    ),
    Attack("smallest", "sends a pod of another node the smallest frames", KEEPS, smallest),
)


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
