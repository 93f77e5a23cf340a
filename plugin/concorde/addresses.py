"""IPv4 addresses as integers, subnets and the hardware addresses that follow from them.

Not the standard ipaddress: importing it costs 3 ms of every call.
"""

from __future__ import annotations

from edge.netlink import sockets

LEAST_MTU, MOST_MTU = 576, 65535  # bytes; what every IPv4 host takes (RFC 791), and what a veth can


class Subnet:
    """The pods' subnet on one node. The first address is the network's, the second the gateway's."""

    def __init__(self, network: int, prefix: int) -> None:
        self.network = network
        self.prefix = prefix

    @property
    def gateway(self) -> int:
        """The bridge's address: the paper's .1."""
        return self.network + 1

    @property
    def broadcast(self) -> int:
        """The last address."""
        return self.network + (1 << (32 - self.prefix)) - 1

    @property
    def mask(self) -> int:
        """The bits that all its addresses have alike."""
        return (1 << 32) - (1 << (32 - self.prefix))

    @property
    def reserved(self) -> tuple[int, int, int]:
        """Addresses no pod ever gets."""
        return self.network, self.gateway, self.broadcast

    @property
    def size(self) -> int:
        """How many pods fit."""
        return self.broadcast - self.network - 2

    def __contains__(self, address: object) -> bool:
        return isinstance(address, int) and self.network <= address <= self.broadcast

    def __str__(self) -> str:
        return f"{dotted(self.network)}/{self.prefix}"


def parse_interface(text: str) -> tuple[int, Subnet]:
    """An address with prefix length, such as 172.16.1.1/24, and the subnet it lies in.

    Raises ValueError, with a message for people, unless the prefix is between 8 and 30.
    """
    address_text, slash, prefix_text = text.partition("/")
    if not slash:
        raise ValueError("has no prefix length, such as /24")
    if not _is_decimal(prefix_text, 2) or not 8 <= int(prefix_text) <= 30:
        raise ValueError("needs a prefix length between 8 and 30")
    prefix = int(prefix_text)
    address = parse(address_text)
    host_bits = 32 - prefix
    return address, Subnet(address >> host_bits << host_bits, prefix)


def parse_subnet(text: str) -> Subnet:
    """A subnet such as 172.16.1.0/24. Raises ValueError, also when host bits are set."""
    address, subnet = parse_interface(text)
    if address != subnet.network:
        raise ValueError(f"is an address within a subnet; the subnet is {subnet}")
    return subnet


def parse(text: str) -> int:
    """A dotted address as an integer. Raises ValueError."""
    try:
        return int.from_bytes(sockets.inet_pton(sockets.AF_INET, text), "big")
    except (OSError, ValueError):
        raise ValueError("is not an IPv4 address") from None


def dotted(address: int) -> str:
    """An address as people write it."""
    return ".".join(map(str, address.to_bytes(4, "big")))


def pod_mac(address: int) -> str:
    """The hardware address of a pod's (or the bridge's) interface.

    It follows from the IP address, as in the reference plugins, so nothing has to be read back, and a
    neighbour's cache entry stays right when an address goes from one pod to the next.
    """
    return "0a:58:" + address.to_bytes(4, "big").hex(":")


def host_mac(address: int) -> str:
    """The hardware address of the node's end of the pod's veth pair."""
    return "0e:58:" + address.to_bytes(4, "big").hex(":")


def link_local(mac: str) -> str:
    """The IPv6 address that an interface gives itself (RFC 4291, appendix A)."""
    octets = bytearray.fromhex(mac.replace(":", ""))
    octets[0] ^= 2
    return ipv6(0xFE80 << 112 | int.from_bytes(octets[:3] + b"\xff\xfe" + octets[3:], "big"))


def ipv6(address: int) -> str:
    """An IPv6 address as people, and nft, write it."""
    return str(sockets.inet_ntop(sockets.AF_INET6, address.to_bytes(16, "big")))


def ipv6_number(text: str) -> int:
    """An IPv6 address as an integer. Raises ValueError."""
    try:
        return int.from_bytes(sockets.inet_pton(sockets.AF_INET6, text), "big")
    except (OSError, ValueError):
        raise ValueError("is not an IPv6 address") from None


def of_host_mac(mac: str) -> int | None:
    """The address that host_mac() gave this hardware address for, or None."""
    parts = mac.split(":")
    if len(parts) != 6 or parts[:2] != ["0e", "58"]:
        return None
    try:
        return int.from_bytes(bytes(int(part, 16) for part in parts[2:]), "big")
    except ValueError:
        return None


def _is_decimal(text: str, longest: int) -> bool:
    # A leading zero would be octal to the kernel's own tools (inet_aton).
    return text.isascii() and text.isdigit() and len(text) <= longest and (text == "0" or text[0] != "0")
