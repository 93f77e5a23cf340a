"""What a pod's port carries: the pod's traffic and nothing else. Only nft's sets, chains and elements.

It lists what may pass, for what may not has no end: untagged IPv4 and ARP with the pod's own hardware and
IPv4 address, inside ARP too; IPv6 from its own link-local address, duplicate address detection for that, and
from what a previous result gives it; neighbour advertisements for these alone. Of ICMP, questions, answers,
and errors about what was sent to the pod itself: by one about another's packet somebody's route to that one
would change (net/ipv4/route.c, ip_rt_update_pmtu). What goes to many is limited in rate, or one pod's
broadcast would be all other pods' work. Everything else is dropped, and counted for the pod.

A port of a bridge is looked at when a frame enters the bridge, before the bridge learns anything from it. A
routed veth has no bridge, and a chain of the same rules where its frames enter the node. What tc redirects
from there, as the bandwidth plugin does through an ifb, comes back behind that chain (net/core/dev.c,
__netif_receive_skb_core, skip_classify); so the rules stand again where ARP and IP take their packets.

`ether type` is what stands in the frame: of a tagged one the tag's (nft reads it with the tag put back, which
the kernel has taken off; net/netfilter/nft_payload.c, nft_payload_copy_vlan). `meta protocol`, and what nft
adds of its own accord in front of `ip saddr`, would let one tag pass.
"""

from __future__ import annotations

from .. import addresses

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .limits import Element, Rule
    from .records import Entry

PRIORITY = -300
# Frames a second, and at once, that a pod may send to many: some of all its neighbours' ARP requests.
BROADCASTS, BROADCASTS_AT_ONCE = 100, 200

_LIMIT = f"limit rate over {BROADCASTS}/second burst {BROADCASTS_AT_ONCE} packets"
# An element that can be matched by a neighbour advertisement's target: nft before 1.0.8 has no name for it.
_TARGET = "@th,64,128"
# To whom a packet was sent that an error is about: in the header behind the error's own eight bytes.
_SUBJECT, _SUBJECT6 = "@th,192,32", "@th,256,128"
_GUARDED = {
    "frames": ("set", "type ifname . ether_addr . ipv4_addr"),
    "frames6": ("set", "type ifname . ether_addr . ipv6_addr"),
    "targets6": ("set", f"typeof iifname . {_TARGET}"),
    "subjects": ("set", f"typeof iifname . {_SUBJECT}"),
    "floods": ("set", f"type ifname; {_LIMIT}"),
    "dropped": ("set", "type ifname; counter"),
}
# Those that guard a routed veth. Their tables are there only if there is one: not all kernels have them.
ROUTED = ("netdev", "inet", "arp")
_OF_ARP = "frames", "floods", "dropped"
SETS = {
    **{(family, name): of for family in ("bridge", "netdev", "inet") for name, of in _GUARDED.items()},
    **{("arp", name): _GUARDED[name] for name in _OF_ARP},
    **{(family, "guarded"): ("set", "type ifname") for family in ("bridge", "inet", "arp")},
    ("bridge", "addresses"): ("set", "type ipv4_addr"),
}
# The base chain at a routed veth is named after it; with a prefix, for an interface may be called `drop`.
CHAIN_OF = "at-"
ENTRY = 'goto port comment "what a pod may send"'

_UNICAST = "@ll,7,1 0"  # the group bit of the destination, IEEE 802
_OWN_ADDRESS = "iifname . ether saddr . ip saddr @frames"
_OWN_IPV4 = f"ether type ip {_OWN_ADDRESS}"
_WELL_FORMED_ARP = "arp htype 1 arp ptype ip arp hlen 6 arp plen 4 arp operation { request, reply }"
_OWN_ARP = "iifname . ether saddr . arp saddr ip @frames iifname . arp saddr ether . arp saddr ip @frames"
_OWN_TARGET = f"iifname . {_TARGET} @targets6"
_UNSPECIFIED = "::"


def chains() -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """The chains that all pods' frames pass, at bridges and at routed veths."""
    found: dict[tuple[str, str], tuple[str, list[Rule]]] = {
        (family, name): ("", rules) for family, its in _CHAINS.items() for name, rules in its.items()
    }
    found["bridge", "prerouting"] = f"type filter hook prerouting priority {PRIORITY}", _PREROUTING
    # Before anything puts fragments together (NF_IP_PRI_CONNTRACK_DEFRAG is -400).
    found["inet", "prerouting"] = "type filter hook prerouting priority -450", _BEHIND_A_VETH
    found["arp", "input"] = f"type filter hook input priority {PRIORITY}", _BEHIND_A_VETH
    return found


_BEHIND_A_VETH = [("iifname @guarded goto port", "pods behind a veth")]
# One look-up for nearly all frames of nearly all pods. Of IPv4 the tenth byte is the protocol.
_PREROUTING = [
    ("@nh,72,8 1 iifname @guarded goto port", "ICMP"),
    (f"{_OWN_IPV4} {_UNICAST} return", "IPv4 of a pod to one"),
    ("iifname @guarded goto port", "pods"),
    # A second tag behind one of no VLAN hides an address, and the kernel takes both off.
    ("@ll,96,16 { 0x8100, 0x88a8 } @ll,116,12 0 @ll,128,16 { 0x8100, 0x88a8 } drop", "two tags of another"),
    ("ip saddr @addresses drop", "IPv4: another from a pod's address"),
    ("arp saddr ip @addresses drop", "ARP: another for a pod's address"),
]
_PORT = [
    ("ether type ip ip protocol icmp goto messages", "ICMP"),
    (f"{_OWN_IPV4} goto many", "IPv4 of a pod"),
    (f"ether type arp {_WELL_FORMED_ARP} {_OWN_ARP} goto many", "ARP of a pod"),
    ("ether type ip6 goto port6", "IPv6"),
    ("goto dropping", "anything else"),
]
_PORT_OF_IP = [
    ("meta nfproto ipv4 meta l4proto icmp goto messages", "ICMP"),
    (f"{_OWN_ADDRESS} goto many", "IPv4 of a pod"),
    ("meta nfproto ipv6 goto port6", "IPv6"),
    ("goto dropping", "another's address"),
]
_PORT_OF_ARP = [
    (f"{_WELL_FORMED_ARP} {_OWN_ARP} goto many", "ARP of a pod"),
    ("goto dropping", "another's"),
]
_PORT6 = [
    ("iifname . ether saddr . ip6 saddr != @frames6 goto dropping", "another's address"),
    (
        f"ip6 saddr :: exthdr frag missing icmpv6 type nd-neighbor-solicit {_OWN_TARGET} goto many",
        "detection of duplicates",
    ),
    ("ip6 saddr :: goto dropping", "from nowhere"),
    ("meta l4proto != 58 goto many", "IPv6 of a pod"),
    ("frag frag-off != 0 goto many", "the rest of a packet"),
    (f"icmpv6 type nd-neighbor-advert {_OWN_TARGET} goto many", "advertisement of its own"),
    # Echo, listeners, and who looks for a router or a neighbour.
    ("icmpv6 type { 128, 129, 131, 132, 133, 135, 143 } goto many", "questions and answers"),
    (f"icmpv6 type {{ 1, 2, 3, 4 }} iifname . {_SUBJECT6} @targets6 goto many", "errors about what it got"),
    ("goto dropping", "a router's, or another's"),
]
_MESSAGES = [
    ("iifname . ether saddr . ip saddr != @frames goto dropping", "another's address"),
    ("ip frag-off & 0x1fff != 0 goto many", "the rest of a packet"),
    ("icmp type { echo-request, echo-reply, 13, 14 } goto many", "questions and answers"),
    (f"icmp type {{ 3, 11, 12 }} iifname . {_SUBJECT} @subjects goto many", "errors about what it got"),
    ("goto dropping", "a router's, or about another's"),
]
_TO_ONE = f"{_UNICAST} accept", "to one"
_TOO_MANY = "iifname @floods goto dropping", "too many"
_MANY = [
    _TO_ONE,
    # Of IEEE 802.1Q, table 8-1: no bridge may pass them on.
    ("ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 goto dropping", "to the bridge itself"),
    # A bridge that looks into IGMP and PIM takes the port of a querier or a router for one that gets all.
    ("meta l4proto 2 @th,0,8 != { 0x12, 0x16, 0x17, 0x22 } goto dropping", "a querier's"),
    ("meta l4proto 103 goto dropping", "a multicast router's"),
    _TOO_MANY,
]
_DROPPING = [("iifname @dropped drop", "counted"), ("drop", "not counted")]
_OF_FRAMES = {"port": _PORT, "port6": _PORT6, "messages": _MESSAGES, "many": _MANY, "dropping": _DROPPING}
_CHAINS = {
    "bridge": _OF_FRAMES,
    "netdev": _OF_FRAMES,
    "inet": {**_OF_FRAMES, "port": _PORT_OF_IP},
    "arp": {"port": _PORT_OF_ARP, "many": [_TO_ONE, _TOO_MANY], "dropping": _DROPPING},
}


def elements(entry: Entry) -> list[Element]:
    """An attachment's elements: none where nobody knows its port or its hardware address."""
    if not entry.mac or not entry.host_interface:
        return []
    if not entry.is_routed:
        port = f'"{entry.port}"'
        found = [("bridge", "addresses", address) for address in entry.ipv4]
        return [*_allowed("bridge", port, entry), *found, ("bridge", "guarded", port)]
    port = f'"{entry.host_interface}"'
    allowed = [element for family in ROUTED for element in _allowed(family, port, entry)]
    guarded = [(family, "guarded", port) for family in ROUTED if (family, "guarded") in SETS]
    return [*allowed, *guarded, ("netdev", "ingress", port)]


def _allowed(family: str, port: str, entry: Entry) -> list[Element]:
    """What may come in by a port, as far as a family has sets for it."""
    mac = entry.mac
    found = [(family, "dropped", port), (family, "floods", port)]
    found += [(family, "frames", f"{port} . {mac} . {address}") for address in entry.ipv4]
    found += [(family, "subjects", f"{port} . {addresses.parse(address)}") for address in entry.ipv4]
    for address in (_UNSPECIFIED, *entry.link_local, *entry.ipv6):
        found.append((family, "frames6", f"{port} . {mac} . {address}"))
    for address in (*entry.link_local, *entry.ipv6):
        found.append((family, "targets6", f"{port} . 0x{addresses.ipv6_number(address):032x}"))
    return [element for element in found if element[:2] in SETS]
