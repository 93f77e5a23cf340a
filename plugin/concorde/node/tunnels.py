"""What is routed: who may speak to a VTEP, and to which pods. No pod, and no container of the node, to VTEPs.

A VTEP takes any packet that comes to its UDP port for one of another node, whatever is inside; so a pod that
sends there sends into another cluster, from any address, and past its own class. It needs no capability.

Ports and devices are the kernel's to tell, and are read at each ADD, at STATUS, CHECK and `reconcile`. Until
a new one is read, what a pod sends in the form of VXLAN is dropped where it could reach one.

What is for a pod that is not there goes no further than here: behind, each such address would be an entry of
the neighbour table, which all networks of the machine share (net/core/neighbour.c, neigh_alloc), and a
broadcast to all pods. Only nft's sets, chains and elements, and what the kernel is asked.
"""

from __future__ import annotations

from .. import rtnetlink
from . import connections, shares, uplinks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .limits import Element, Rule
    from .records import Entry, Tree

_BOTH = {
    "tunnels": ("set", "type inet_service"),  # the VTEPs' ports
    "vteps": ("set", "type ifname"),  # their devices
    "underlays": ("set", "type ifname"),  # where packets for them, and from outside, may come in
}
SETS = {
    **{(family, name): content for family in ("ip", "ip6") for name, content in _BOTH.items()},
    ("ip", "refused"): ("set", "type ifname . ipv4_addr; counter"),
    ("ip6", "refused"): ("set", "type ifname . ipv6_addr; counter"),
    ("ip6", "ways"): ("set", "type ifname . ipv6_addr"),
    ("ip", "bridges"): ("set", "type ifname"),  # of this plugin's own, all of whose pods are known
}
# Elements of these are what the kernel has, and not what an attachment wants.
READ = frozenset((family, name) for family in ("ip", "ip6") for name in _BOTH)

# Before anything puts fragments together (NF_IP_PRI_CONNTRACK_DEFRAG is -400).
_FIRST = "type filter hook prerouting priority -450"
_HOOK = "type filter hook {} priority -10"
# A VTEP takes the VNI bit (RFC 7348, section 5), and besides what its options make of the reserved ones: a
# group and its two bits (gbp), a checksum's offload (remcsumrx), a protocol and its bit (gpe, which goes with
# none of those); anything else it drops (include/net/vxlan.h; drivers/net/vxlan, vxlan_rcv).
_LIKE_VXLAN = "@th,64,32 & 0x7f970000 0x08000000"
_PLAIN_VXLAN = "@th,64,32 & 0xfbfffff8 0x08000000 @th,120,8 0"  # of gpe, too
# Of what begins with a random number, as DNS does, one in 4,096 is like that, and is each time it is sent
# again. Nobody has a VTEP where names are asked for, and there is the plain form alone refused. From 10053
# on, as kube-dns has it, servers listen to which a service's port 53 leads: here it is theirs.
_NAMES = "{ 53, 5353, 10053-10308 }"
# So it is with who has sent to the pod from the port that it sends to, which a VTEP never does: it sends from
# others (udp_flow_src_port), and to VTEPs. A source's port would say nothing: who attacks may choose it.
_NEVER_ANSWERED = "ct state != established"
# A first fragment that ends before that. Nobody's MTU makes one so short (RFC 1858, section 3).
_TINY_FRAGMENT = "meta l4proto udp ip frag-off & 0x3fff == 0x2000 ip length < 256"
_A_POD = "iifname . ip saddr @ways"
_TOO_SHORT = f"{_TINY_FRAGMENT} {_A_POD} goto refusing", "too short to see"

_REFUSE = "goto refusing"
_TO_A_VTEP = f"udp dport @tunnels {_REFUSE}", "to a VTEP"
_HARMLESS = [
    ("meta l4proto != udp return", "no VTEP takes it"),
    ("iifname @underlays return", "from outside"),
]
# Not what goes to all, which passes here too where br_netfilter shows bridged packets to these hooks.
_TO_NO_POD = "oifname @bridges meta pkttype host drop", "to no pod"


def chains(tracked: bool) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """Where packets come in, where they are for the node, and where they leave it again.

    `tracked` says that the kernel tracks connections of IPv4.
    """
    found = connections.chains(_REFUSE) if tracked else {}
    forms_from_a_pod = [*_forms(_A_POD, "from a pod", tracked), _TOO_SHORT]
    for family, forms in (("ip", forms_from_a_pod), ("ip6", [])):
        found[family, "refusing"] = "", _refusing(family)
        found[family, "fragments"] = _FIRST, shares.fragments(family, _REFUSE, tracked)
        found[family, "forward"] = _HOOK.format("forward"), _forward(family)
        found[family, "elsewhere"] = "", [*shares.new_hop(family, _REFUSE), ("goto onwards", "not too many")]
        # Into an overlay too: at its far end may be a node, and one that does not look.
        found[family, "onwards"] = "", [_HARMLESS[0], _TO_A_VTEP, *forms]
        out_of_an_overlay = _forms("iifname @vteps", "out of an overlay", tracked) if forms else []
        found[family, "input"] = (
            _HOOK.format("input"),
            [*_HARMLESS, _TO_A_VTEP, *forms, *out_of_an_overlay],
        )
    return found


def _refusing(family: str) -> list[Rule]:
    return [(f"iifname . {family} saddr @refused drop", "counted"), ("drop", "not counted")]


def _forward(family: str) -> list[Rule]:
    """What packets pay for: of nearly all that leave a pod for another node, one look-up."""
    to_a_pod = f"oifname . {family} daddr @ways return"
    return [
        (f'meta oifkind "bridge" {to_a_pod}', "to a pod of this node"),
        shares.known(family, "goto onwards"),
        (to_a_pod, "to a pod behind a veth"),
        *([_TO_NO_POD] if family == "ip" else []),
        (f"iifname . {family} saddr @ways goto elsewhere", "from a pod"),
        *_HARMLESS,
        _TO_A_VTEP,
    ]


def _forms(whose: str, of: str, tracked: bool) -> list[Rule]:
    """What a VTEP would take that nobody has read yet. What all packets are asked comes first."""
    never_answered = f" {_NEVER_ANSWERED}" if tracked else ""
    return [
        (f"{_LIKE_VXLAN} udp dport != {_NAMES} {whose}{never_answered} goto refusing", f"VXLAN {of}"),
        (f"{_PLAIN_VXLAN} {whose} goto refusing", f"plain VXLAN {of}"),
    ]


def elements(entry: Entry) -> list[Element]:
    """An attachment's elements: where what is refused to it is counted."""
    if not entry.host_interface:
        return []
    end = f'"{entry.host_interface}"'
    found = [("ip", "refused", f"{end} . {address}") for address in entry.ipv4]
    found += [("ip6", "ways", f"{end} . {address}") for address in entry.ipv6]
    ipv6 = [*entry.ipv6, *entry.link_local]
    return [*found, *(("ip6", "refused", f"{end} . {address}") for address in ipv6)]


def shared(entry: Entry) -> list[Element]:
    """Elements that several attachments have in common."""
    return [("ip", "bridges", f'"{entry.host_interface}"')] if entry.is_ours else []


def devices(found: list[Element]) -> list[str]:
    """The VTEPs' devices, of the elements that read() found."""
    return [text.strip('"') for family, name, text in found if (family, name) == ("ip", "vteps")]


def read(trees: Iterable[Tree]) -> list[Element]:
    """The elements that the node's VTEPs, its default route and the trees make. Raises OSError.

    Agents' ports are as VTEPs': no pod and no container has anything to say there.
    """
    found = rtnetlink.tunnels()
    trees = list(trees)
    ports = {str(tree.fabric.port) for tree in trees if tree.fabric is not None}
    outside = {name for name in (*(tree.uplink for tree in trees), uplinks.of_default_route() or "") if name}
    outside |= {tunnel.lower for tunnel in found if tunnel.lower}
    elements = []
    for family in ("ip", "ip6"):
        for tunnel in found:
            elements.append((family, "vteps", f'"{tunnel.device}"'))
            # Where nobody knows how its packets come, none may be taken for a stranger's.
            if outside:
                elements.append((family, "tunnels", str(tunnel.port)))
        elements += [(family, "tunnels", port) for port in sorted(ports)]
        elements += [(family, "underlays", f'"{name}"') for name in sorted(outside)]
    return elements
