"""Frames as bytes, made without scapy: some attacks have tens of thousands. Pure functions."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence

Frame = bytes
# A hardware address and an IPv4 address.
End = tuple[str, str]

BROADCAST, LLDP = "ff:ff:ff:ff:ff:ff", "01:80:c2:00:00:0e"
PRIORITY_TAG, SECOND_TAG = bytes.fromhex("81000000"), bytes.fromhex("88a80000")
LOAD = bytes(1000)
IPV4, ARP, LLDP_TYPE = 0x0800, 0x0806, 0x88CC
DISCARD = 9  # UDP port (RFC 863)
MORE = 0x2000  # fragments follow (RFC 791)
UNIT = 8  # bytes: of fragments' offsets
SYN, ACK = 0x02, 0x10
ARP_REQUEST, ARP_REPLY = 1, 2
VXLAN_VALID = 0x08000000  # the flag of a VXLAN header that has a number (RFC 7348)


def ethernet(to: str, source: str, kind: int, load: bytes, tags: bytes = b"") -> Frame:
    """Return a frame; ``tags`` stand before the type."""
    return octets(to) + octets(source) + tags + struct.pack("!H", kind) + load


def ipv4(
    source: str,
    to: str,
    load: bytes,
    fragment: int = 0,
    protocol: int = socket.IPPROTO_UDP,
    number: int = 1,
) -> bytes:
    """Return a packet; ``fragment`` is the header's field of flags and offset, ``number`` identifies it."""
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    words = 0x45, 0, 20 + len(load), number, fragment, 64, protocol
    header = struct.pack("!BBHHHBBH", *words, 0) + ends
    return struct.pack("!BBHHHBBH", *words, checksum(header)) + ends + load


def udp(port: int, load: bytes) -> bytes:
    """Return a datagram without a checksum."""
    return struct.pack("!HHHH", 4000, port, 8 + len(load), 0) + load


def tcp_syn(source: str, to: str, port: int, load: bytes) -> bytes:
    """Return a packet that asks for a connection, and has data already (RFC 9293, 3.4); an even number."""
    return ipv4(source, to, tcp((source, to), (4000, port), SYN, load), protocol=socket.IPPROTO_TCP)


def tcp(
    addresses: tuple[str, str],
    ports: tuple[int, int],
    flags: int,
    load: bytes = b"",
    numbers: tuple[int, int] = (1, 1),
) -> bytes:
    """Return a segment of a connection between two addresses; the load has an even number of bytes.

    ``numbers`` are its sequence and acknowledgement.
    """
    segment = struct.pack("!HHIIBBHHH", *ports, *numbers, 5 << 4, flags, 0xFFFF, 0, 0) + load
    pseudo = b"".join(map(socket.inet_aton, addresses)) + struct.pack("!HH", socket.IPPROTO_TCP, len(segment))
    return segment[:16] + struct.pack("!H", checksum(pseudo + segment)) + segment[18:]


def icmp(kind: int, code: int, rest: bytes) -> bytes:
    """Return a message (RFC 792); the rest has an even number of bytes."""
    message = struct.pack("!BBH", kind, code, 0) + rest
    return message[:2] + struct.pack("!H", checksum(message)) + message[4:]


def too_large(source: str, to: str, about: str, most: int = 100) -> bytes:
    """Return the error that an answer ``to`` sent to ``about`` has more than ``most`` bytes (RFC 1191)."""
    answer = ipv4(to, about, bytes(64), protocol=socket.IPPROTO_ICMP)[:28]
    error = icmp(3, 4, struct.pack("!HH", 0, most) + answer)
    return ipv4(source, to, error, protocol=socket.IPPROTO_ICMP)


def checksum(octets: bytes) -> int:
    """Return the Internet checksum of an even number of bytes (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def arp(operation: int, sender: str, claimed: End, to: End, tags: bytes = b"") -> Frame:
    """Return ARP that says to have an address at a hardware address, in a frame from ``sender``."""
    pairs = b"".join(octets(mac) + socket.inet_aton(address) for mac, address in (claimed, to))
    load = struct.pack("!HHBBH", 1, IPV4, 6, 4, operation) + pairs
    return ethernet(to[0], sender, ARP, load, tags)


def vxlan(port: int, number: int, source: str, to: str, inner: bytes) -> bytes:
    """Return what a VTEP takes out: a datagram with the frame of a packet between two hardware addresses."""
    header = struct.pack("!II", VXLAN_VALID, number << 8)
    return udp(port, header + ethernet(to, source, IPV4, inner))


def fragments(source: str, to: str, load: bytes, first: int = 64) -> Iterator[bytes]:
    """Yield a packet in two pieces, the first of so many bytes."""
    yield ipv4(source, to, load[:first], MORE)
    yield ipv4(source, to, load[first:], first // UNIT)


def octets(mac: str) -> bytes:
    """Return a hardware address as it is in a frame."""
    return bytes.fromhex(mac.replace(":", ""))


def made_up(count: int) -> Sequence[str]:
    """Return hardware addresses that nobody has."""
    return [f"02:f1:00:00:{number >> 8:02x}:{number & 255:02x}" for number in range(count)]
