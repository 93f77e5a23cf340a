"""A node as versions before left it: guards for guarantees only, other sets, stores and an older ledger."""

from __future__ import annotations

from pathlib import Path

from tests.paths import ROOT
from tests.system.plugin.conftest import Node

FILES = Path(__file__).with_name("former_files.py")
# What that version made for A-1 (a guarantee, enforcement node); other pods had nothing.
TABLES = """\
table ip concorde {
  map classes { type ipv4_addr : classid; elements = { 172.16.1.2 : c0de:10 }; }
  set ways { type ifname . ipv4_addr; elements = { "cni-a" . 172.16.1.2 }; }
  chain postrouting {
    type filter hook postrouting priority 50; policy accept;
    meta skuid >= 0 tcp sport { 22, 6443, 10250 } meta priority set c0de:fffd return \
comment "control traffic from 22, 6443, 10250"
    meta skuid >= 0 tcp dport { 22, 6443, 10250 } meta priority set c0de:fffd return \
comment "control traffic to 22, 6443, 10250"
    meta skuid >= 0 meta priority set none return comment "processes of the node"
    iifname . ip saddr @ways meta priority set ip saddr map @classes comment "pods with a guarantee"
  }
}
table ip6 concorde {
  chain postrouting {
    type filter hook postrouting priority 50; policy accept;
    meta skuid >= 0 meta priority set none return comment "processes of the node"
  }
}
table bridge concorde {
  set ports { type ifname; elements = { "PORT" }; }
  set senders { type ifname . ipv4_addr; elements = { "PORT" . 172.16.1.2 }; }
  set addresses { type ipv4_addr; elements = { 172.16.1.2 }; }
  chain prerouting {
    type filter hook prerouting priority -300; policy accept;
    iifname . ip saddr @senders return comment "IPv4: a pod from its address"
    ip saddr @addresses drop comment "IPv4: another from a pod's address"
    ether type ip iifname @ports drop comment "IPv4: a pod from another address"
    iifname . arp saddr ip @senders return comment "ARP: a pod from its address"
    arp saddr ip @addresses drop comment "ARP: another from a pod's address"
    ether type arp iifname @ports drop comment "ARP: a pod from another address"
  }
}
"""


def keep(node: Node, version: int = 4) -> None:
    """Have a store of leases a network and a ledger of that version (0: none) in place of the node's ledger.

    Of version 1, what was promised on the uplink alone is written down.
    """
    node.run("/usr/bin/python3", FILES, str(ROOT), "/run/concorde", str(version))


def set_back(node: Node, port: str) -> None:
    """Make of a node with A-1, whose port is given, and others, what the version before would have made."""
    node.run("nft", "flush", "ruleset")
    node.run("nft", "-f", "-", stdin=TABLES.replace("PORT", port))
    for link in node.show("bridge", "-j", "link"):
        node.run("bridge", "link", "set", "dev", link["ifname"], "learning", "on", "flood", "on")
    for entry in node.show("bridge", "-j", "fdb"):
        if entry.get("state") == "static":
            node.run("bridge", "fdb", "delete", entry["mac"], "dev", entry["ifname"], "master")
    node.run("ip", "link", "set", "dev", "cni-a", "type", "bridge", "mcast_snooping", "1")
    keep(node, 1)


def count_layer_2(node: Node, rates: dict[str, tuple[int, int]]) -> None:
    """Give classes these rates and ceils (kbit/s) and no count of the wire, as an older ledger has it.

    Best effort of that version was one class below the root.
    """
    gone = "c0de:4010", "c0de:fffe", "c0de:fffc"
    lines = [f"class delete dev eth0 classid {name}\n" for name in gone]
    lines.append("class add dev eth0 parent c0de:1 classid c0de:fffe htb rate 8kbit quantum 65536\n")
    lines.append("qdisc add dev eth0 parent c0de:fffe handle fffe: bfifo limit 250000\n")
    lines += [
        f"class change dev eth0 parent {'c0de:' if name == 'c0de:1' else 'c0de:1'} classid {name} htb prio 0"
        f" rate {rate}kbit ceil {ceil}kbit burst 65536b cburst 65536b quantum 65536\n"
        for name, (rate, ceil) in rates.items()
    ]
    node.run("tc", "-batch", "-", stdin="".join(lines))
    keep(node, 2)
