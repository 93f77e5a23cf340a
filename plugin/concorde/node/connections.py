"""How many of the connections that the node tracks a pod may have opened.

Only nft's sets, rules and elements, and what the kernel is asked.

Where addresses are translated, the kernel tracks connections, UDP's too, and has room for so many: a program
without any right fills it in two seconds, and then nobody on the node opens another. Where it tracks none, a
rule that asks for them would make it begin, and every packet pay for that. So there is none until the kernel
tracks some; then it stays.

The connections are counted where a pod opens them (net/netfilter/nft_connlimit.c): one look at all of its own
for each that it opens, half a microsecond for each hundred. Of a known connection no packet is looked up.
"""

from __future__ import annotations

from .. import files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .parts import Element, Rule
    from .records import Entry

# An eighth of what Linux has room for (nf_conntrack_max, from 4 GB of memory on), a quarter of the least that
# kube-proxy sets.
MOST = 32_768
SETS = {("ip", "connections"): ("set", "type ifname . ipv4_addr; flags dynamic; size 65536")}
LEARNED = frozenset(SETS)
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
    counted = f"add @connections {{ {key} ct count over {MOST} }}"
    return {
        CHAIN: (
            _HOOK,
            [(f"ct status & {_CONFIRMED} == 0 {key} @ways {counted} {refuse}", "too many connections")],
        )
    }


def elements(entry: Entry) -> list[Element]:
    """What is known of an attachment's connections, if it has opened any."""
    if not entry.way:
        return []
    return [("ip", "connections", f'"{entry.way}" . {address}') for address in entry.ipv4]
