"""What a node's nftables hold of one cluster's services: the text for nft, whole or what changed; pure.

A table a cluster, so that clusters on one node do not overwrite each other. Where a connection goes is found
by two look-ups, however many services there are: one for how many endpoints the service has, and one for the
endpoint with a random number below that. Each number of endpoints has a chain with its own modulus. The
number is the connection's mark meanwhile, until its first packet leaves the node or arrives, and then there
is none: packets have none, so no route is chosen by it, and chains for NAT see first packets alone. What all
packets pass is three rules.

Only elements change with services and endpoints, all in one transaction. A packet that was in its midst finds
no endpoint of its number, and is dropped: it comes again. If it passed, its connection would never be
translated.

Connections that are there are not touched: their translation is remembered by connection tracking. So their
packets must not be kept out of that, neither to services nor from their endpoints to pods of this node, for
as long as there may be a connection: a day after an endpoint went. Where a zone of connection tracking was
set, ``notrack`` of anybody else does nothing (net/netfilter/nft_ct.c, nft_notrack_eval); zone 0 is what all
have.

What an endpoint asks of itself comes from the node, or it would answer itself. The same goes for what pods of
one bridge ask of each other where bridged packets do not pass these tables: answers would be as little
translated. Source: net/bridge/br_netfilter_hooks.c.

The kernel has room for so many connections of all pods together, and who finds none opens none. So what one
address has of it is limited where its connections begin, which costs packets of others nothing: a quarter of
the room may be open; an eighth of it at once, and a fortieth each second, may begin. What was closed is kept
for 10 seconds in place of two minutes, longer than its last packet is sent again. Together that is five
eighths. Open ones are counted by a sample, since the kernel looks at all it has counted each time
(net/netfilter/nf_conncount.c); who has too many opens none for a while, and packets that would are dropped:
they come again. What endpoints say to others than services' clients may be tracked, too, but nobody answers
that as the kernel sees it, so it makes room for others (nf_conntrack_core.c, early_drop).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from ipaddress import IPv4Network
from socket import inet_aton
from typing import Any, NamedTuple

TCP, UDP = "tcp", "udp"
# How long after an endpoint went what it still says is translated: longer than pods take to end.
DEPARTED = "1d"
_PROTOCOLS = {6: TCP, 17: UDP}  # as nft -nn says them
PREFIX = "services-"  # of tables' names
# One connection in so many is counted; how long who has too many waits, and how long closed ones are kept.
LEAST_ROOM = 1024  # of which shares are taken
_SAMPLE, _PAUSE, _CLOSED_SECONDS = 16, "30s", 10
_PICKING = 3  # rules of a chain that picks
_LAYOUT, _PICK, _REFUSE = "layout-", "pick-", "refuse"
# Marks of connections from here on are numbers of endpoints, of which there are fewer.
_MARK, MOST_ENDPOINTS = 0x5E000000, 0x4000
_SERVICE = "ip daddr . meta l4proto . th dport"


class Port(NamedTuple):
    """A port of a service, or of a server: an IPv4 address, ``tcp`` or ``udp``, and a number."""

    address: str
    protocol: str
    number: int

    def __str__(self) -> str:
        return f"{self.address} . {self.protocol} . {self.number}"


class Target(NamedTuple):
    """Where an endpoint answers: an IPv4 address and a port."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"{self.address} . {self.port}"


class Frame(NamedTuple):
    """What does not change with services: whose they are, their range, and this node.

    ``pods`` are the networks of this node's own pods; ``bridged`` says whether what one bridge forwards
    passes these tables (bridge-nf-call-iptables). ``room`` is how many connections the kernel tracks for all
    together; 0 if it cannot count whose they are.
    """

    cluster: str
    services: IPv4Network
    pods: tuple[IPv4Network, ...] = ()
    bridged: bool = True
    room: int = 0

    @property
    def table(self) -> str:
        """The name of the cluster's table, of family ip."""
        return f"{PREFIX}{self.cluster}"

    def may_have(self, address: str) -> bool:
        """Whether an address may be of a pod of this node; of any, if it is not known which it has."""
        number = int.from_bytes(inet_aton(address), "big")
        return not self.pods or any(
            number & int(one.netmask) == int(one.network_address) for one in self.pods
        )

    @property
    def layout(self) -> str:
        """The name of an empty chain that says which rules the table has, and how many."""
        definitions = list(_definitions(self))
        digest = hashlib.sha256("".join(definitions).encode()).hexdigest()[:12]
        return f"{_LAYOUT}{digest}-{sum(map(_rules, definitions))}"


class State(NamedTuple):
    """What a table holds: a service's endpoints in the order of their numbers, and who else may still answer.

    ``servers`` are all who may have connections, also those who get no more; ``picks`` are the numbers of
    endpoints that have a chain.
    """

    endpoints: Mapping[Port, tuple[Target, ...]]
    servers: Set[Port] = frozenset()
    picks: Set[int] = frozenset()

    @property
    def counts(self) -> set[int]:
        """How many endpoints services have."""
        return {len(targets) for targets in self.endpoints.values() if targets}


NOTHING = State({})


def arranged(before: tuple[Target, ...], wanted: Collection[Target]) -> tuple[Target, ...]:
    """Return endpoints in such an order that as few as can be have another number than before."""
    if len(wanted) == len(before) and all(target in wanted for target in before):
        return before
    new = iter(sorted(set(wanted) - set(before)))
    kept = [target if target in wanted else next(new, None) for target in before] + list(new)
    last = [target for target in kept[len(wanted) :] if target is not None]
    return tuple(last.pop() if target is None else target for target in kept[: len(wanted)])


def whole(frame: Frame, state: State, departed: Iterable[Port] = ()) -> str:
    """Return the text that puts a table in place of the one that is there, if there is one."""
    name = f"ip {frame.table}"
    lines = [f"add table {name}\n", f"delete table {name}\n", f"table {name} {{\n", *_definitions(frame)]
    lines.append(f"  chain {frame.layout} {{\n  }}\n}}\n")
    for count in sorted(state.counts):
        lines += _pick(name, count)
    lines += _elements("add", name, _held(frame, state))
    gone = sorted(set(departed) - state.servers)
    lines += _elements("add", name, {"servers": [f"{port} timeout {DEPARTED}" for port in gone]})
    return "".join(lines)


def changes(frame: Frame, before: State, after: State) -> str:
    """Return the text that makes one state of a table the next; nothing if they are the same.

    Both may be of some ports and servers alone, but for ``picks``.
    """
    name = f"ip {frame.table}"
    old, new = _held(frame, _different(before, after)), _held(frame, _different(after, before))
    lines: list[str] = []
    for count in sorted(after.counts - before.counts - before.picks):
        lines += _pick(name, count)
    # A server that came back may be there with a time-out, or not any more.
    back = {"servers": new["servers"]}
    late = {"servers": [f"{server} timeout {DEPARTED}" for server in old["servers"]]}
    lines += _elements("add", name, back)
    lines += _elements("delete", name, _less(old, new))
    lines += _elements("delete", name, back)
    lines += _elements("add", name, _less(new, old))
    lines += _elements("add", name, late)
    return "".join(lines)


def read(listed: Mapping[str, Any]) -> tuple[str, State, frozenset[Port]]:
    """Return a table's layout, its state, and the servers that went, from what ``nft -j list table`` says.

    A table that lacks rules has no layout. Raises KeyError, TypeError or ValueError if it is none of ours.
    """
    chains = [one["chain"]["name"] for one in listed["nftables"] if "chain" in one]
    layout = next((name for name in chains if name.startswith(_LAYOUT)), "")
    picks = {int(name.removeprefix(_PICK)) for name in chains if name.startswith(_PICK)}
    rules = Counter(one["rule"]["chain"] for one in listed["nftables"] if "rule" in one)
    picking = sum(rules.pop(f"{_PICK}{count}", 0) for count in picks)
    if (picking, str(sum(rules.values()))) != (_PICKING * len(picks), layout.rpartition("-")[2]):
        layout = ""
    elements = {}
    for one in listed["nftables"]:
        for kind in ("map", "set"):
            if kind in one:
                elements[one[kind]["name"]] = one[kind].get("elem") or []
    numbered: dict[Port, dict[int, Target]] = {_port(key): {} for key, _ in elements["services"]}
    for key, value in elements["endpoints"]:
        address, protocol, port, number = key["concat"]
        numbered[_port({"concat": [address, protocol, port]})][number - _MARK] = Target(*value["concat"])
    endpoints = {port: tuple(known[at] for at in range(len(known))) for port, known in numbered.items()}
    stay = frozenset(_port(one) for one in elements["servers"] if "elem" not in one)
    departed = frozenset(_port(one["elem"]["val"]) for one in elements["servers"] if "elem" in one)
    return layout, State(endpoints, stay, picks), departed


def _port(key: Mapping[str, Any]) -> Port:
    address, protocol, number = key["concat"]
    return Port(address, _PROTOCOLS[protocol], number)


def _definitions(frame: Frame) -> Iterator[str]:
    """Yield maps, sets and chains: all of a table but elements, and the chains that pick endpoints."""
    port = "type ipv4_addr . inet_proto . inet_service"
    yield f"  map services {{\n    {port} : verdict\n  }}\n"
    yield f"  map endpoints {{\n    {port} . mark : ipv4_addr . inet_service\n  }}\n"
    yield f"  set servers {{\n    {port}\n    flags timeout\n  }}\n"
    yield "  set same {\n    type ipv4_addr . ipv4_addr . inet_proto . inet_service\n  }\n"
    refuse = ["meta l4proto tcp reject with tcp reset", "reject with icmp type port-unreachable"]
    yield _chain(_REFUSE, refuse)
    yield from _tracked(frame)
    translated = f"ip daddr {frame.services} {_SERVICE} vmap @services"
    begun: list[str] = []
    if frame.room:
        yield from _counted(frame.room)
        begun = [f"ip daddr {frame.services} jump begin"]
    yield _chain("nat-prerouting", [*begun, translated], "nat hook prerouting priority -100")
    # nft before 1.0.7 does not know dstnat in output.
    yield _chain("nat-output", [translated], "nat hook output priority -100")
    unmarked = f"ct mark & {0xFFFFFFFF - MOST_ENDPOINTS + 1:#x} == {_MARK:#x} ct mark set 0"
    # Before others' chains: the first that masquerades is the last that is asked (nf_nat_inet_fn).
    yield _chain("nat-postrouting", [unmarked, *_masqueraded(frame)], "nat hook postrouting priority 99")
    yield _chain("nat-input", [unmarked], "nat hook input priority 99")


def counts(room: int) -> str:
    """Return a table that has what counts connections, for nft to check whether the kernel can."""
    return f"table ip {PREFIX}check {{\n{''.join(_counted(room))}}}\n"


def _counted(room: int) -> Iterator[str]:
    """Yield what limits how many connections each address has of so many."""
    policy = f"policy = {{ time_wait : {_CLOSED_SECONDS} }}"
    yield f"  ct timeout closed {{\n    protocol tcp\n    l3proto ip\n    {policy}\n  }}\n"
    addresses = "type ipv4_addr\n    size 65536"
    yield f"  set beginning {{\n    {addresses}\n    flags dynamic,timeout\n    timeout {_PAUSE}\n  }}\n"
    yield f"  set open {{\n    {addresses}\n    flags dynamic\n  }}\n"
    yield f"  set full {{\n    {addresses}\n    flags dynamic,timeout\n    timeout {_PAUSE}\n  }}\n"
    rate = f"limit rate over {room // 40}/second burst {room // 8} packets"
    rules = [
        'meta l4proto tcp ct timeout set "closed"',
        "ip saddr @full drop",
        f"add @beginning {{ ip saddr {rate} }} drop",
        f"numgen random mod {_SAMPLE} 0 add @open {{ ip saddr ct count over {room // 4 // _SAMPLE} }} "
        "add @full { ip saddr } drop",
    ]
    yield _chain("begin", rules)


def _tracked(frame: Frame) -> Iterator[str]:
    """Yield the chains for what must not be kept out of connection tracking.

    All packets of everybody pass the last, so each is looked up once, and where it goes is asked of the few
    that come from a server.
    """
    here = [f"ip daddr {pods}" for pods in frame.pods]
    errors = "icmp type { destination-unreachable, time-exceeded, parameter-problem }"
    yield _chain("answers", [f"{match} ct zone set 0" for match in (*here, "fib daddr type local")])
    yield _chain("errors", [f"{match} {errors} ct zone set 0" for match in here])
    rules = [
        f"ip daddr {frame.services} ct zone set 0",
        "ip saddr . meta l4proto . th sport @servers goto answers",
        "ip protocol icmp goto errors",
    ]
    for hook in ("prerouting", "output"):
        yield _chain(f"raw-{hook}", rules, f"filter hook {hook} priority -301")


def _masqueraded(frame: Frame) -> Iterator[str]:
    """Yield the rules for whose answers would not pass here otherwise."""
    ours = f"ct status dnat ct original ip daddr {frame.services}"
    yield f"{ours} ip saddr . {_SERVICE} @same masquerade"
    if not frame.bridged:
        for pods in frame.pods:
            yield f"{ours} ip saddr {pods} ip daddr {pods} masquerade"


def _chain(name: str, rules: Iterable[str], hook: str = "") -> str:
    lines = [f"type {hook};", *rules] if hook else [*rules]
    return f"  chain {name} {{\n" + "".join(f"    {line}\n" for line in lines) + "  }\n"


def _rules(definition: str) -> int:
    """Return how many rules a definition has, if it is a chain's."""
    lines = definition.splitlines()[1:-1] if definition.startswith("  chain ") else []
    return sum(not line.startswith("    type ") for line in lines)


def _pick(name: str, count: int) -> Iterator[str]:
    """Yield what makes the chain that picks one of so many endpoints."""
    chain = f"{name} {_PICK}{count}"
    yield f"add chain {chain}\n"
    yield f"add rule {chain} ct mark set numgen random mod {count} offset {_MARK}\n"
    yield f"add rule {chain} dnat ip to {_SERVICE} . ct mark map @endpoints\n"
    yield f"add rule {chain} drop\n"


def _held(frame: Frame, state: State) -> dict[str, list[str]]:
    """Return what is in each map and set."""
    found: dict[str, list[str]] = {"services": [], "endpoints": []}
    for port, targets in state.endpoints.items():
        found["services"].append(f"{port} : goto {f'{_PICK}{len(targets)}' if targets else _REFUSE}")
        found["endpoints"] += (f"{port} . {_MARK + at:#x} : {target}" for at, target in enumerate(targets))
    servers = sorted(state.servers)
    found["servers"] = [str(port) for port in servers]
    found["same"] = [f"{port.address} . {port}" for port in servers if frame.may_have(port.address)]
    return found


def _different(state: State, other: State) -> State:
    """Return what a state has and another has not."""
    endpoints = {
        port: targets for port, targets in state.endpoints.items() if other.endpoints.get(port) != targets
    }
    return State(endpoints, state.servers - other.servers)


def _less(held: Mapping[str, list[str]], other: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return what is in maps and sets, and not in others."""
    found = {}
    for name, elements in held.items():
        there = set(other[name])
        found[name] = [element for element in elements if element not in there]
    return found


def _elements(verb: str, name: str, held: Mapping[str, list[str]]) -> Iterator[str]:
    for of, elements in held.items():
        if elements:
            yield f"{verb} element {name} {of} {{ {', '.join(elements)} }}\n"
