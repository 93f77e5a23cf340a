"""The frames of attacks, made without scapy: some attacks have tens of thousands. Pure functions.

Each attack is a list of frames that the attacker sends again and again.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from tests.system.plugin.frame_kinds import people
from tests.system.plugin.overlapped import PORT, VTEP

WHO = people("bridged")
OWN, NEIGHBOUR, GATEWAY, REMOTE = (WHO[name] for name in ("own", "neighbour", "gateway", "remote pod"))
PRIORITY_TAG = bytes.fromhex("81000000")
LOAD = bytes(1000)
BROADCAST, LLDP = "ff:ff:ff:ff:ff:ff", "01:80:c2:00:00:0e"
MANY_MACS, MANY_ADDRESSES = 2000, 65_000
FEW = range(4, 254)  # of a subnet of 256, addresses that nobody has

Frame = bytes


def ethernet(to: str, source: str, kind: int, load: bytes, tags: bytes = b"") -> Frame:
    """A frame; ``tags`` stand before the type."""
    return octets(to) + octets(source) + tags + struct.pack("!H", kind) + load


def ipv4(source: str, to: str, load: bytes, fragment: int = 0) -> bytes:
    """A packet of UDP; ``fragment`` is the header's field of flags and offset."""
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    words = 0x45, 0, 20 + len(load), 1, fragment, 64, socket.IPPROTO_UDP
    header = struct.pack("!BBHHHBBH", *words, 0) + ends
    return struct.pack("!BBHHHBBH", *words, checksum(header)) + ends + load


def udp(port: int, load: bytes) -> bytes:
    """A datagram without a checksum."""
    return struct.pack("!HHHH", 4000, port, 8 + len(load), 0) + load


def checksum(header: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def arp(operation: int, claimed: tuple[str, str], to: tuple[str, str], tags: bytes = b"") -> Frame:
    """ARP that says to have an address at a hardware address, in a frame from the attacker."""
    pairs = b"".join(octets(mac) + socket.inet_aton(address) for mac, address in (claimed, to))
    return ethernet(to[0], OWN[0], 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation) + pairs, tags)


def vxlan(cluster: str, source: str, to: str, inner: bytes) -> bytes:
    """What a VTEP of a cluster takes out: the frame of a packet between two hardware addresses."""
    number = 1 if cluster == "a" else 2
    header = struct.pack("!II", 0x08000000, number << 8)
    return udp(PORT[cluster], header + ethernet(to, source, 0x0800, inner))


def plain(to: str, source_mac: str = OWN[0], source: str = OWN[1], load: bytes = LOAD) -> Frame:
    """A packet by way of the gateway."""
    return ethernet(GATEWAY[0], source_mac, 0x0800, ipv4(source, to, udp(9, load)))


def twice_tagged() -> list[Frame]:
    """A neighbour's packets within two tags."""
    packet = ipv4(NEIGHBOUR[1], REMOTE[1], udp(9, LOAD))
    second = bytes.fromhex("88a80000")
    tags = (PRIORITY_TAG + PRIORITY_TAG, second + PRIORITY_TAG)
    return [ethernet(GATEWAY[0], OWN[0], 0x0800, packet, two) for two in tags]


def tagged_claims() -> list[Frame]:
    """The node is told that the neighbour is here, and the neighbour that the gateway is."""
    return [
        arp(2, (OWN[0], NEIGHBOUR[1]), GATEWAY, PRIORITY_TAG),
        arp(2, (OWN[0], GATEWAY[1]), NEIGHBOUR, PRIORITY_TAG),
    ]


def neighbours_mac() -> list[Frame]:
    """Tiny frames that move the bridge's entry of the neighbour."""
    return [plain(GATEWAY[1], NEIGHBOUR[0], load=b"")]


def neighbours_mac_in_lldp() -> list[Frame]:
    """The same by frames that a bridge keeps to itself."""
    return [ethernet(LLDP, NEIGHBOUR[0], 0x88CC, bytes(46))]


def many_macs() -> list[Frame]:
    """As many entries of the bridge."""
    macs = (f"02:f1:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(MANY_MACS))
    return [plain(GATEWAY[1], mac, load=b"") for mac in macs]


def to_vtep(side: str, to: str) -> list[Frame]:
    """The neighbour's packets, taken out by a node's VTEP; whole and in fragments."""
    other = "two" if side == "one" else "one"
    inner = ipv4(NEIGHBOUR[1], to, udp(9, LOAD))
    datagram = vxlan("b", VTEP["b"][other], VTEP["b"][side], inner)
    address = WHO["node" if side == "one" else "remote node"][1]
    whole = ipv4(OWN[1], address, datagram)
    parts = ipv4(OWN[1], address, datagram[:64], 0x2000), ipv4(OWN[1], address, datagram[64:], 64 // 8)
    return [ethernet(GATEWAY[0], OWN[0], 0x0800, packet) for packet in (whole, *parts)]


def to_own_vtep() -> list[Frame]:
    """Out of the node again, in nobody's class."""
    return to_vtep("one", REMOTE[1])


def to_other_vtep() -> list[Frame]:
    """Into the other node, and back to the neighbour."""
    return to_vtep("two", NEIGHBOUR[1])


def broadcast() -> list[Frame]:
    """Every pod's work."""
    packet = ipv4(OWN[1], "255.255.255.255", udp(9, LOAD))
    return [ethernet(BROADCAST, OWN[0], 0x0800, packet)]


def questions() -> list[Frame]:
    """Who has this address, and that?"""
    asked = (f"172.16.{number >> 8}.{number & 255}" for number in range(MANY_ADDRESSES))
    return [arp(1, OWN, (BROADCAST, address)) for address in asked]


def unreachable() -> list[Frame]:
    """To hosts beside the other node, and to pods there, that do not exist: both nodes must ask for them."""
    return [plain(f"{subnet}.{last}", load=b"") for last in FEW for subnet in ("192.168.9", "172.16.2")]


def nobody_here() -> list[Frame]:
    """To pods of both clusters on this node that do not exist, by way of the gateway."""
    return [plain(f"{subnet}.{last}", load=b"") for last in FEW for subnet in ("172.16.1", "172.17.1")]


def all_disguises() -> list[Frame]:
    """What is not the attacker's own, all of it by turns."""
    return [
        *twice_tagged(),
        *tagged_claims(),
        *neighbours_mac(),
        *neighbours_mac_in_lldp(),
        *many_macs()[:10],
        *to_own_vtep(),
        *to_other_vtep(),
    ]


def octets(mac: str) -> bytes:
    """A hardware address as it is in a frame."""
    return bytes.fromhex(mac.replace(":", ""))


ATTACKS: list[Callable[[], list[Frame]]] = [
    all_disguises,
    twice_tagged,
    tagged_claims,
    neighbours_mac,
    neighbours_mac_in_lldp,
    many_macs,
    to_own_vtep,
    to_other_vtep,
    broadcast,
    questions,
    unreachable,
    nobody_here,
]
