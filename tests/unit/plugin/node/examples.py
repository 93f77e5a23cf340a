"""A node, its tree, an attachment, and what tc and nft print of them."""

from __future__ import annotations

import json
from typing import Any

from concorde.node import limits, observe, tables
from concorde.node.records import Entry, Tree

GIGA = 10**9
TREE = Tree("eth0", 9 * GIGA, 180_000_000, (22,), overhead=0)
MAC = "0a:58:ac:10:01:02"


def entry(name: str = "A-1", rate: int = GIGA, address: int = 0xAC100102, **keys: Any) -> Entry:
    where = {"host_interface": "cni-a", "port": "veth1", "mac": MAC}
    values = {"network": "cluster-a", "pod": "", **where, "ceil": 9 * GIGA, "uplink": "eth0", **keys}
    return Entry(
        container=name, interface="eth0", address=address, guarantee=rate or None, rate=rate, **values
    )


TC_CLASSES = """\
class htb c0de:10 parent c0de:1 leaf 10: prio 0 rate 1Gbit ceil 9Gbit burst 125000b cburst 1125000b
class htb c0de:4010 parent c0de:fffc leaf 4010: prio 0 rate 1Kbit ceil 9Gbit burst 25000b cburst 1125000b
class tbf 4010:1 parent 4010:
class htb c0de:1 root rate 9Gbit ceil 9Gbit burst 1125000b cburst 1125000b
class htb c0de:fffc parent c0de:1 rate 7820Mbit ceil 9Gbit burst 1b cburst 1125000b
class htb c0de:fffe parent c0de:fffc leaf fffe: prio 0 rate 3910Mbit ceil 9Gbit burst 1b cburst 1125000b
class tbf fffe:1 parent fffe:
class htb c0de:fffd parent c0de:1 leaf fffd: prio 0 rate 180Mbit ceil 9Gbit burst 65520b cburst 1125000b
"""
TC_QDISCS = """[
{"kind":"htb","handle":"c0de:","root":true,"refcnt":3,"options":{"r2q":10,"default":"0xfffe"}},
{"kind":"bfifo","handle":"10:","parent":"c0de:10","options":{"limit":1250000}},
{"kind":"bfifo","handle":"fffd:","parent":"c0de:fffd","options":{"limit":2250000}},
{"kind":"tbf","handle":"4010:","parent":"c0de:4010","options":{"rate":125000065536,"limit":2250000}},
{"kind":"tbf","handle":"fffe:","parent":"c0de:fffe","options":{"rate":125000065536,"limit":2250000}}]"""
# The same where flows take turns, by iproute2 6.1 and Linux 6.1.
_TURNS = '"limit":10240,"flows":256,"quantum":1514,"target":999999,"drop_batch":1,"memory_limit"'
TC_FAIR = f"""[
{{"kind":"htb","handle":"c0de:","root":true,"refcnt":3,"options":{{"r2q":10,"default":"0xfffe"}}}},
{{"kind":"fq_codel","handle":"10:","parent":"c0de:10","options":{{{_TURNS}:2500000}}}},
{{"kind":"fq_codel","handle":"fffd:","parent":"c0de:fffd","options":{{{_TURNS}:4500000}}}},
{{"kind":"fq_codel","handle":"8001:","parent":"4010:1","options":{{{_TURNS}:4500000}}}},
{{"kind":"fq_codel","handle":"8002:","parent":"fffe:1","options":{{{_TURNS}:4500000}}}},
{{"kind":"tbf","handle":"4010:","parent":"c0de:4010","options":{{"rate":125000065536,"limit":2250000}}}},
{{"kind":"tbf","handle":"fffe:","parent":"c0de:fffe","options":{{"rate":125000065536,"limit":2250000}}}}]"""
TC_FILTERS = """[{"protocol":"arp","pref":1,"kind":"u32","chain":0},
{"protocol":"arp","pref":1,"kind":"u32","chain":0,"options":{"fh":"800:","ht_divisor":1}},
{"protocol":"arp","pref":1,"kind":"u32","chain":0,"options":{"fh":"800::800","order":2048,"flowid":"c0de:fffd",
"match":{"value":"0","mask":"0","offmask":"","off":0}}}]"""


def listing(family: str, present: set[tuple[str, str, str]]) -> str:
    """What `nft -j list table` prints of elements, where all chains are as made."""
    objects: list[Any] = [{"metainfo": {"version": "1.0.6"}}]
    for (of, name), (kind, _) in tables.SETS.items():
        found = [said(text) for its, set_name, text in sorted(present) if (its, set_name) == (of, name)]
        if of == family:
            objects.append({kind: {"name": name, "elem": found}})
    for (of, name), (_, rules) in tables.chains([TREE]).items():
        if of == family:
            objects.append({"chain": {"name": name}})
            objects += [{"rule": {"chain": name, "comment": text}} for text in tables.comments(rules)]
    return json.dumps({"nftables": objects})


def said(text: str) -> Any:
    text, limit = limits.parted(text)
    if limit:
        rate, burst = (int(word) for word in limit.split() if word.isdigit())
        units = {"rate_unit": "bytes", "burst_unit": "bytes", "per": "second", "inv": True}
        return {"elem": {"val": said(text), "limit": {"rate": rate, "burst": burst, **units}}}
    key, mapped, value = text.partition(" : ")
    parts = [part.strip('"') for part in key.split(" . ")]
    whole: Any = {"concat": parts} if len(parts) > 1 else parts[0]
    return [whole, value] if mapped else whole


def whole() -> observe.State:
    state = observe.State()
    uplink = state.uplinks[TREE.uplink] = observe.read_qdiscs(TC_QDISCS)
    observe.read_classes(uplink, TC_CLASSES)
    observe.read_filters(uplink, TC_FILTERS)
    present = {*tables.elements(entry(minor=0x10))}
    for family in tables.families([entry()], ipv6=True):
        observe.read_table(state, family, listing(family, present))
    settings = {"learning": False, "flood": False, "multicast_router": 0, "group_fwd_mask": "0xfffd"}
    port = {"ifname": "veth1", "linkinfo": {"info_slave_data": settings}}
    fixed = {"ifname": "veth1", "mac": MAC, "state": "static", "flags": ["sticky"]}
    observe.read_ports(state, json.dumps([{}, port]), json.dumps([fixed]))
    return state
