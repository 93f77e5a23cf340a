"""How much of a table that all of a node share one pod may take. Only nft's sets, rules and elements.

*Neighbours*: all networks of a machine have one table, with room for 1,024 (gc_thresh3), and whoever sends to
an address on a link makes an entry there, whether or not somebody has it. So each pod has so many next hops;
those of its last minute are known, and pass.

*Fragments*: what is put together again on the node waits for its rest, all pods' in the same 4 MB
(net.ipv4.ipfrag_high_thresh; 30 s, ip6 60 s). So each pod may send the node so many of them.

Shares are of a pod's address. What is more is dropped and counted for that pod.

How large the table of neighbours may be is an administrator's, and only looked at. Only the machine's own
network namespace tells (net/core/neighbour.c, neigh_sysctl_register); elsewhere nothing is said.
"""

from __future__ import annotations

from .. import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .limits import Element, Rule
    from .records import Entry


# Next hops that a pod may take up at once, and each second.
HOPS_AT_ONCE, HOPS = 64, 1
# How long one is known (seconds).
KNOWN = 60
# How long the kernel keeps an entry that nobody uses any more: gc_stale_time, and until it looks again
# (seconds; net/core/neighbour.c, neigh_periodic_work).
KEPT = 60 + 15
# The most entries of the neighbour table that are there for one address of a pod: a fifth of 1,024.
NEIGHBOURS = HOPS_AT_ONCE + HOPS * (KNOWN + KEPT)
_SYSCTL = "/proc/sys/net"
# As many as a kubelet starts unless it is told otherwise (maxPods).
PODS = 110
# Entries, with one for each pod itself.
WANTED = PODS * (NEIGHBOURS + 1)

# Fragments that a pod may send the node at once, and each second. Of 1,500 bytes one takes 2,504 of memory
# (/proc/net/sockstat), so one pod's take a quarter of 4 MB in 30 seconds, or in 60 not half.
FRAGMENTS_AT_ONCE, FRAGMENTS = 120, 10

# More than the known next hops of a thousand addresses.
_MOST = 1 << 17
_ADDRESSES = {"ip": "ipv4_addr", "ip6": "ipv6_addr"}


def _sets(family: str) -> dict[str, tuple[str, str]]:
    address = _ADDRESSES[family]
    of_a_pod = f"type ifname . {address}"
    return {
        "hops": ("set", f"type {address} . {address}; flags dynamic,timeout; timeout {KNOWN}s; size {_MOST}"),
        "new_hops": ("set", f"{of_a_pod}; limit rate over {HOPS}/second burst {HOPS_AT_ONCE} packets"),
        "fragments": (
            "set",
            f"{of_a_pod}; limit rate over {FRAGMENTS}/second burst {FRAGMENTS_AT_ONCE} packets",
        ),
    }


SETS = {(family, name): content for family in _ADDRESSES for name, content in _sets(family).items()}
LEARNED = frozenset((family, "hops") for family in _ADDRESSES)

_FRAGMENT = {"ip": "ip frag-off & 0x3fff != 0", "ip6": "exthdr frag exists"}


def known(family: str, then: str) -> Rule:
    """Whatever goes where its sender has sent before."""
    return f"{family} saddr . rt nexthop @hops {then}", "to a next hop of before"


def new_hop(family: str, refuse: str) -> list[Rule]:
    """What a pod sends elsewhere."""
    return [
        (f"iifname . {family} saddr @new_hops {refuse}", "too many next hops"),
        (f"add @hops {{ {family} saddr . rt nexthop }}", "one more"),
    ]


def fragments(family: str, refuse: str, tracked: bool) -> list[Rule]:
    """Fragments that the node would keep: those to itself, or to all; every one if it tracks connections."""
    kept = _FRAGMENT[family] + ("" if tracked else " fib daddr type != unicast")
    return [(f"{kept} iifname . {family} saddr @fragments {refuse}", "too many fragments")]


def elements(entry: Entry) -> list[Element]:
    """An attachment's elements: each has a limit of its own."""
    if not entry.host_interface:
        return []
    end = f'"{entry.host_interface}"'
    found = [
        (family, name, f"{end} . {address}")
        for family, own in (("ip", entry.ipv4), ("ip6", entry.ipv6))
        for address in own
        for name in ("new_hops", "fragments")
    ]
    # What is sent from there goes to the node, and never further.
    return [*found, *(("ip6", "fragments", f"{end} . {local}") for local in entry.link_local)]


def narrow() -> list[str]:
    """In words, where there is no room for what a node full of pods may take."""
    return [
        f"{_name(version)} is {room}; {PODS} pods may take {WANTED}: set that (sysctl -w, /etc/sysctl.d)"
        for version, room in _found()
        if room < WANTED
    ]


def too_narrow(pods: int) -> list[str]:
    """In words, where one pod's share alone would leave no room for so many pods themselves."""
    least = pods + NEIGHBOURS
    return [
        f"{_name(version)} is {room}; with {pods} pods it must be {least} at least"
        for version, room in _found()
        if room < least
    ]


def _name(version: str) -> str:
    return f"net.{version}.neigh.default.gc_thresh3"


def _found() -> list[tuple[str, int]]:
    """How many entries each table may have, where that can be read."""
    found = []
    for version in ("ipv4", "ipv6"):
        try:
            room = int(files.read(f"{_SYSCTL}/{version}/neigh/default/gc_thresh3", 32))
        except (OSError, ValueError):
            continue
        found.append((version, room))
    return found
