"""What goes to other nodes without a promise: whose class a packet belongs to, and what is counted.

Only nft's sets, chains and elements. An overlay's packets are for the node that they are sent to, and others
for the next hop, where that is a node of the fabric. `peers` has the classes of nodes whose grant is fresh.
Its elements end in the kernel, and what has none is of the class with the safe rate (`htb.SAFE`), whether
this node's agent lives or not. Each message of the agent's to a node puts its element there, or lets it stay:
the message's priority says the class. No transaction is needed for that, which takes the kernel up to 25 ms.

What waits for a grant is counted in `asked`, what promised classes send in `sent`, and what came in
`came`, by the node that the packets name, or 0.0.0.0, and by the frame's hardware address, by which it is
found who routed them here (`concorde.fabric.arrivals`); all for a second at most.

It comes after the chains that give pods' packets their classes (`marks`), which an encapsulated packet keeps.
Without it the tree gives what is addressed to a node the safe rate (`htb.filters`); it knows no next hops.
"""

from __future__ import annotations

from .htb import CONTROL, FIRST_MINOR, LAST_MINOR, SAFE, handle
from .htb import PEERS as PEERS_MINORS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .limits import Rule
    from .records import Tree

PEERS, SENT, ASKED, ARRIVED = "peers", "sent", "asked", "came"
_COUNTED = "flags dynamic,timeout; timeout 1s; size 65536; counter"
SETS = {
    ("ip", PEERS): ("map", "type ipv4_addr : classid; flags dynamic,timeout; size 4096"),
    ("ip", SENT): ("set", f"type ipv4_addr . classid; {_COUNTED}"),
    ("ip", ASKED): ("set", f"type ipv4_addr; {_COUNTED}"),
    ("ip", ARRIVED): ("set", f"type ipv4_addr . ether_addr; {_COUNTED}"),
}
# Packets, or the agent every few milliseconds, put elements into these.
LEARNED = frozenset(SETS)
# How long what goes to a node keeps its class without another message to it (milliseconds).
LEASE = 400
# What promised classes count is kept no longer than a few rounds, each of which reads all of it.
_KEPT = "timeout 300ms"
_AGENTS = "type filter hook output priority 60"
_LEAVING = "type filter hook postrouting priority 60"
# After fragments are put together, and before anything else looks (NF_IP_PRI_RAW is -300).
_COMING = "type filter hook prerouting priority -290"
# Packets to nodes are logged to it, so many a second at most, to wake the agent.
LOG_GROUP, _LOGGED = 7473, 20
_DESTINATION, _NEXT_HOP = "ip daddr", "rt ip nexthop"
_OTHERS = "0.0.0.0"
# In alphabetical order none is removed before what leads there.
CHAINS = frozenset(
    {("ip", "agents"), ("ip", "arriving"), ("ip", "fabric"), ("ip", "through"), ("ip", "towards")}
)


def chains(trees: Sequence[Tree]) -> dict[tuple[str, str], tuple[str, list[Rule]]]:
    """The chains of a fabric; none without."""
    agents, leaving, coming = [], [], []
    for tree in trees:
        if tree.fabric is None:
            continue
        nodes = f"{{ {', '.join(tree.fabric.nodes)} }}"
        out, into = f'oifname "{tree.uplink}"', f'iifname "{tree.uplink}"'
        own = f"{out} meta skuid 0 udp dport {tree.fabric.port}"
        renew = f"update @{PEERS} {{ ip daddr timeout {LEASE}ms : meta priority }}"
        agents.append(
            (f"{own} {_between(PEERS_MINORS[0], PEERS_MINORS[-1])} {renew}", "a node's class goes on")
        )
        leaving += [
            (f"{own} meta priority set {handle(CONTROL)} return", "agents among themselves"),
            (f"{out} {_DESTINATION} {nodes} goto towards", "to a node"),
            (f"{out} {_NEXT_HOP} {nodes} goto through", "to a pod behind one"),
        ]
        coming += [
            (f"{into} ip saddr {nodes} update @{ARRIVED} {{ ip saddr . ether saddr }} return", "from a node"),
            (f"{into} update @{ARRIVED} {{ {_OTHERS} . ether saddr }}", "from behind one, or elsewhere"),
        ]
    if not leaving:
        return {}
    return {
        ("ip", "towards"): ("", _classes(_DESTINATION)),
        ("ip", "through"): ("", _classes(_NEXT_HOP)),
        ("ip", "agents"): (_AGENTS, agents),
        ("ip", "fabric"): (_LEAVING, leaving),
        ("ip", "arriving"): (_COMING, coming),
    }


def _between(first: int, last: int) -> str:
    return f"meta priority >= {handle(first)} meta priority <= {handle(last)}"


def _classes(node: str) -> list[Rule]:
    """What becomes of a packet to a node; `node` is how nft says which."""
    promised = _between(FIRST_MINOR, LAST_MINOR)
    return [
        (f"meta priority {handle(CONTROL)} return", "control traffic"),
        (f"limit rate {_LOGGED}/second burst 1 packets log group {LOG_GROUP}", "it wakes the agent"),
        (f"{promised} update @{SENT} {{ {node} . meta priority {_KEPT} }} return", "promised"),
        (f"meta priority set {node} map @{PEERS} return", "granted"),
        (f"meta priority set {handle(SAFE)} update @{ASKED} {{ {node} }}", "not granted"),
    ]
