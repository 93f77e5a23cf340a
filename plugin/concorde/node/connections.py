"""How many of the connections that the node tracks a pod may have opened.

Only nft's sets, rules and elements, and what the kernel is asked.

Where addresses are translated, the kernel tracks connections, UDP's too, and has room for so many: a program
without any right fills it in two seconds, and then nobody on the node opens another. Where it tracks none, a
rule that asks for them would make it begin, and every packet pay for that. So there is none until the kernel
tracks some; then it stays.

So many may be opened at once and each second; most are forgotten in 30 seconds. Those that stay are counted
by a sample, for the kernel looks at all it has counted each time (net/netfilter/nf_conncount.c: 0.24 us each,
so of all that a pod may have, 8 ms): who has too many opens none for a while.
"""

from __future__ import annotations

from .. import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .limits import Element, Rule
    from .records import Entry

# Connections that a pod may open at once, and each second. One of UDP without an answer is kept for 30 s:
# together an eighth of what Linux has room for (nf_conntrack_max, from 4 GB of memory on), a quarter of the
# least that kube-proxy sets.
AT_ONCE, A_SECOND = 4_096, 1_000
# One in so many is counted, and so many of these may there be: together the same.
SAMPLE = 16
COUNTED = 2_048
MOST = SAMPLE * COUNTED
# How long who has more opens none (seconds).
PAUSE = 30
_OF_A_POD = "type ifname . ipv4_addr"
SETS = {
    ("ip", "opening"): ("set", f"{_OF_A_POD}; limit rate over {A_SECOND}/second burst {AT_ONCE} packets"),
    ("ip", "connections"): ("set", f"{_OF_A_POD}; flags dynamic; size 65536"),
    ("ip", "full"): ("set", f"{_OF_A_POD}; flags dynamic,timeout; timeout {PAUSE}s; size 65536"),
}
# Packets put elements into these.
LEARNED = frozenset({("ip", "connections"), ("ip", "full")})
CHAIN = "ip", "tracked"
TRACKED = "/proc/sys/net/netfilter/nf_conntrack_count"

# After the kernel has found the connection (NF_IP_PRI_CONNTRACK is -200).
_HOOK = "type filter hook prerouting priority -190"
_CONFIRMED = 8  # IPS_CONFIRMED: it has got through before


def are_tracked() -> bool:
    """Whether the kernel tracks connections in this network namespace: then there are some."""
    try:
        return int(files.read(TRACKED, 32)) > 0
    except (OSError, ValueError):
        return False


def chains(refuse: str) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """Where pods open connections, if any are tracked."""
    key = "iifname . ip saddr"
    counted = f"add @connections {{ {key} ct count over {COUNTED} }}"
    rules = [
        # What is not to be tracked, or is of no connection, has no status.
        ("ct state != new return", "of no new connection"),
        (f"ct status & {_CONFIRMED} != 0 return", "of a known connection"),
        (f"{key} @opening {refuse}", "too many at once"),
        (f"{key} @full {refuse}", "too many"),
        (
            f"{key} @ways numgen random mod {SAMPLE} 0 {counted} add @full {{ {key} }} {refuse}",
            "too many by now",
        ),
    ]
    return {CHAIN: (_HOOK, rules)}


def elements(entry: Entry) -> list[Element]:
    """An attachment's own elements."""
    return _of(entry, "opening")


def learned(entry: Entry) -> list[Element]:
    """What packets may have told of an attachment."""
    return [element for _, name in sorted(LEARNED) for element in _of(entry, name)]


def _of(entry: Entry, name: str) -> list[Element]:
    if not entry.host_interface:
        return []
    return [("ip", name, f'"{entry.host_interface}" . {address}') for address in entry.ipv4]
