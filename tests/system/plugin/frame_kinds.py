"""Which frames a hostile pod sends, and where each of them may be seen.

A frame is a row of the dimensions below; covering.py chooses rows, frames.py makes frames of them. What a
pod's port carries is the pod's own traffic and nothing else, so where a row may be seen is a short list:
all else is a fault.
"""

from __future__ import annotations

from typing import Literal

from tests.system.plugin.covering import Dimension, Row, complete, first, rows
from tests.system.plugin.overlapped import PORT, UPLINK, VTEP
from tests.system.plugin.uplinks import HOST, NEIGHBOUR

Who = dict[str, tuple[str, str]]  # hardware address and IPv4 address of everybody, by name
# Where the attacker is: a pod at a port of its cluster's bridge or behind a routed veth, or a container of
# another runtime, of which only what it sends as a pod, or to a VTEP, is anybody's business.
Position = Literal["bridged", "routed", "container"]

IP_IN = frozenset({"IPv4", "IPv6", "MPLS", "PPPoE", "SNAP"})
PLAIN_IP = frozenset({"IPv4", "IPv6"})
RESOLUTION = frozenset({"ARP", "RARP"})
TAGGED, TAGGED_TWICE = frozenset("123"), frozenset("23")
OVERLAY = frozenset({"VXLAN", "Geneve"})
TUNNELS = OVERLAY | {"IPIP", "GRE"}
OFFLOADED = OVERLAY | {"UDP", "TCP"}
VTEP_PORTS = frozenset(map(str, PORT.values()))

DESTINATIONS = (
    "remote pod",
    "neighbour",
    "gateway",
    "node",
    "node's broadcast",
    "VTEP",
    "other gateway",
    "other cluster",
    "remote other cluster",
    "remote node",
    "remote VTEP",
    "remote gateway",
    "nobody",
    "nobody beyond",
    "broadcast",
    "multicast",
    "STP",
    "LACP",
    "LLDP",
    "own",
)

DIMENSIONS = {
    "tags": Dimension(("0", "1", "2", "3")),
    "tag type": Dimension(("802.1Q", "802.1ad"), {"tags": TAGGED}),
    "tag id": Dimension(("0", "1", "5", "4095"), {"tags": TAGGED}),
    "second type": Dimension(("802.1Q", "802.1ad"), {"tags": TAGGED_TWICE}),
    "second id": Dimension(("0", "1", "5", "4095"), {"tags": TAGGED_TWICE}),
    "kind": Dimension(("IPv4", "IPv6", "ARP", "RARP", "MPLS", "PPPoE", "SNAP", "LLC", "unknown")),
    "source": Dimension(("own", "neighbour", "gateway", "node", "VTEP", "nobody", "multicast")),
    "destination": Dimension(DESTINATIONS),
    "address": Dimension(
        ("own", "neighbour", "gateway", "other cluster", "remote pod", "node", "nobody", "unspecified"),
        {"kind": IP_IN | RESOLUTION},
    ),
    "header": Dimension(("plain", "options"), {"kind": PLAIN_IP}),
    "carries": Dimension(
        ("UDP", "TCP", "ICMP", "IPIP", "GRE", "VXLAN", "Geneve", "IGMP", "PIM"), {"kind": IP_IN}
    ),
    "port": Dimension((*sorted(VTEP_PORTS), "4789", "6081"), {"carries": OVERLAY}),
    "inside": Dimension(
        (
            "neighbour to cluster b",
            "neighbour to cluster a",
            "remote pod to cluster a",
            "nobody to cluster b",
            "neighbour onward",
        ),
        {"carries": TUNNELS},
    ),
    "discovery": Dimension(
        (
            "none",
            "solicitation",
            "advertisement of own",
            "advertisement of neighbour",
            "advertisement of gateway",
            "router solicitation",
            "router advertisement",
            "redirect",
            "listener query",
        ),
        {"kind": frozenset({"IPv6"}), "carries": frozenset({"ICMP"})},
    ),
    "fragment": Dimension(
        ("whole", "tiny first", "later only", "late first", "overlapping"), {"kind": PLAIN_IP}
    ),
    "fragment header": Dimension(
        ("no", "yes"), {"kind": frozenset({"IPv6"}), "fragment": frozenset({"whole"})}
    ),
    "offload": Dimension(
        ("none", "checksum", "segments"),
        {"kind": PLAIN_IP, "carries": OFFLOADED, "fragment": frozenset({"whole"})},
    ),
    "operation": Dimension(
        ("request", "reply", "gratuitous", "gratuitous reply", "inverse", "of another length"),
        {"kind": RESOLUTION},
    ),
    "sender": Dimension(("own", "neighbour", "gateway", "nobody"), {"kind": RESOLUTION}),
}

# What once passed the guard, and took a neighbour's promise or its packets.
KNOWN: list[Row] = [
    {"tags": "2", "address": "neighbour"},
    {"tags": "2", "tag type": "802.1ad", "address": "neighbour"},
    {"tags": "1", "address": "nobody"},
    {"tags": "1", "kind": "ARP", "address": "neighbour", "destination": "gateway", "operation": "reply"},
    {"tags": "1", "kind": "ARP", "address": "gateway", "destination": "neighbour", "operation": "reply"},
    {"source": "neighbour", "destination": "LLDP"},
    {"address": "neighbour", "destination": "LLDP"},
    {"address": "nobody", "destination": "LLDP", "carries": "VXLAN", "port": "8473"},
    {"kind": "IPv6", "destination": "LLDP", "carries": "ICMP", "discovery": "router advertisement"},
    {"carries": "VXLAN", "port": "8473", "destination": "node"},
    {"carries": "VXLAN", "port": "8473", "destination": "gateway", "fragment": "tiny first"},
    {"carries": "VXLAN", "port": "8473", "destination": "remote node"},
    {"carries": "VXLAN", "port": "8472", "destination": "remote node", "fragment": "late first"},
    {"carries": "VXLAN", "port": "8473", "destination": "remote VTEP"},
    {"carries": "VXLAN", "port": "8473", "destination": "remote gateway"},
    {"kind": "IPv6", "carries": "ICMP", "address": "unspecified", "discovery": "advertisement of own"},
    {"carries": "IGMP", "destination": "multicast"},
    {"carries": "PIM", "destination": "multicast"},
    {
        "kind": "IPv6",
        "carries": "ICMP",
        "discovery": "listener query",
        "destination": "multicast",
        "header": "options",
    },
]

# Where a frame comes by on its way, and last where it arrives. A switch keeps LACP's and LLDP's addresses to
# itself, but with spanning tree off it forwards that one's.
WAYS = {
    "remote pod": ("bridge", "wire", "A-3"),
    "neighbour": ("A-1",),
    "gateway": ("bridge",),
    "node": ("bridge",),
    "node's broadcast": ("bridge",),
    "VTEP": ("bridge",),
    "other gateway": ("bridge",),
    "other cluster": ("bridge", "B-1"),
    "remote other cluster": ("bridge", "wire", "B-2"),
    "remote node": ("bridge", "wire"),
    "remote VTEP": ("bridge", "wire"),
    "remote gateway": ("bridge", "wire"),
    "nobody": (),
    "nobody beyond": ("bridge", "wire"),
    "broadcast": ("bridge", "A-1"),
    "multicast": ("bridge", "A-1"),
    "STP": ("bridge", "A-1"),
    "LACP": (),
    "LLDP": (),
    "own": (),
}
ANSWERING = frozenset(name for name, way in WAYS.items() if way) - {"broadcast", "multicast", "STP"}
AT_PODS = frozenset({"remote pod", "neighbour", "other cluster", "remote other cluster"})
AT_A_NODE = ANSWERING - AT_PODS - {"nobody beyond"}


def chosen(count: int, seed: int) -> list[Row]:
    """What is known to hurt, then at least ``count`` rows in which every pair of values occurs."""
    known = [complete(DIMENSIONS, row, first) for row in KNOWN]
    assert None not in known, "a known row has no meaning"
    return [row for row in known if row is not None] + rows(DIMENSIONS, count, seed)


def pod_mac(address: str) -> str:
    """The hardware address that the plugin gives with an address."""
    return "0a:58:" + bytes(map(int, address.split("."))).hex(":")


def people(position: Position) -> Who:
    """Whom a frame may claim to be from, or go to."""
    bridged = position == "bridged"
    own, gateway = ("172.16.1.3", "172.16.1.1") if bridged else ("172.18.1.2", "172.18.1.1")
    nobody = "02:f0:00:00:00:00"
    return {
        "own": (pod_mac(own), own),
        "neighbour": (pod_mac("172.16.1.2"), "172.16.1.2"),
        "gateway": (pod_mac(gateway), gateway),
        "other gateway": (pod_mac("172.17.1.1"), "172.17.1.1"),
        "other cluster": (pod_mac("172.17.1.2"), "172.17.1.2"),
        "remote pod": (pod_mac("172.16.2.2"), "172.16.2.2"),
        "remote other cluster": (pod_mac("172.17.2.2"), "172.17.2.2"),
        "node": (UPLINK["one"], HOST["one"]),
        "node's broadcast": (UPLINK["one"], "192.168.9.255"),
        "remote node": (UPLINK["two"], HOST["two"]),
        "VTEP": (VTEP["b"]["one"], "172.17.1.0"),
        "remote VTEP": (VTEP["b"]["two"], "172.17.2.0"),
        "remote gateway": (pod_mac("172.16.2.1"), "172.16.2.1"),
        "nobody": (nobody, "172.16.1.200"),
        "nobody beyond": (nobody, NEIGHBOUR),
        "unspecified": ("00:00:00:00:00:00", "0.0.0.0"),
        "broadcast": ("ff:ff:ff:ff:ff:ff", "255.255.255.255"),
        "multicast": ("01:00:5e:00:00:01", "224.0.0.1"),
        "STP": ("01:80:c2:00:00:00", "172.16.1.2"),
        # A bridge gives these to the node by its port: past what looks at frames that the bridge forwards.
        "LACP": ("01:80:c2:00:00:02", gateway),
        "LLDP": ("01:80:c2:00:00:0e", HOST["one"]),
    }


def link_local(mac: str) -> str:
    """The IPv6 address that follows from a hardware address (RFC 4291, appendix A)."""
    octets = bytes.fromhex(mac.replace(":", ""))
    octets = bytes([octets[0] ^ 2]) + octets[1:3] + b"\xff\xfe" + octets[3:]
    words = [f"{octets[at] << 8 | octets[at + 1]:x}" for at in range(0, 8, 2)]
    return "fe80::" + ":".join(words)


def is_own(row: Row, position: Position) -> bool:
    """Whether a frame is what its pod's port carries.

    Behind a routed veth nobody shares a link with the pod: its IPv4 address alone tells whose a packet is.
    """
    if position == "container":
        return row.get("address") not in ("neighbour", "other cluster")
    if position == "routed":
        return row["kind"] == "IPv4" and row["address"] == "own"
    if row["tags"] != "0" or row["source"] != "own":
        return False
    if row["kind"] == "ARP":
        said = row["operation"] not in ("inverse", "of another length")
        return said and row["sender"] == row["address"] == "own"
    if row["kind"] == "IPv6":
        return is_own_ipv6(row)
    return row["kind"] == "IPv4" and row["address"] == "own"


def is_own_ipv6(row: Row) -> bool:
    """The same of IPv6. Discovery in fragments is thrown away by who gets it (RFC 6980), so it may pass."""
    discovery = row.get("discovery", "none")
    if row["address"] == "unspecified":  # duplicate address detection
        return discovery == "solicitation"
    honest = discovery in ("none", "solicitation", "advertisement of own", "router solicitation")
    fragmented = row["fragment"] != "whole" or row["fragment header"] == "yes"
    return row["address"] == "own" and (honest or fragmented)


def is_for_vtep(row: Row) -> bool:
    """Whether a frame, or the first fragment of it, is one that a node would take for its overlay's."""
    return row.get("port") in VTEP_PORTS and row["destination"] in AT_A_NODE


def allowed(row: Row, position: Position) -> frozenset[str]:
    """The places where the frame may be seen."""
    if not is_own(row, position):
        return frozenset()
    places = set(WAYS[row["destination"]])
    if position != "bridged" and row["destination"] not in ANSWERING:
        return frozenset()
    if is_for_vtep(row) and row["fragment"] == "whole":  # without its first fragment none is taken for it
        places.discard("wire")
    return frozenset(places)


def required(row: Row, position: Position) -> str | None:
    """The place where the frame must be seen, or a port that carries nothing would be judged well."""
    destination = row["destination"]
    if destination not in ANSWERING or not is_honest(row, position):
        return None
    if position != "bridged" and (row["kind"] != "IPv4" or row["address"] != "own"):
        return None
    if row["kind"] == "IPv6":
        return "A-1" if destination == "neighbour" and row["address"] == "own" else None
    if row["kind"] == "ARP":
        return WAYS[destination][-1] if destination in ("neighbour", "gateway") else None
    arrives = WAYS[destination][-1]
    return None if position != "bridged" and arrives == "bridge" else arrives


def is_honest(row: Row, position: Position) -> bool:
    """Whether a frame is what a pod sends that has no tricks in mind."""
    carries, header, fragment = (row.get(name) for name in ("carries", "header", "fragment"))
    atomic = row.get("fragment header") == "yes"
    plain = row["tags"] == "0" and row["source"] == "own" and is_own(row, position)
    return plain and (
        row["kind"] == "ARP"
        or (carries in ("UDP", "TCP", "ICMP") and header == "plain" and fragment == "whole" and not atomic)
    )


def summary(row: Row) -> str:
    """A frame in words: what is not ordinary about it."""
    odd = [f"{name} {value}" for name, value in row.items() if value != DIMENSIONS[name].values[0]]
    return ", ".join(odd) or "ordinary"
