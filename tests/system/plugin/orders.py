"""Chains of Debian's reference plugins with Concorde at any place of them, and what becomes of a pod there.

A scene is a pair of nodes, with a neighbour on the near one that stays. There one chain after another brings
up a pod, is judged by what packets and the kernel say, and takes the pod down. As a program it tries what
docs/chains.json lacks, and makes the page of it (docs/parts/chains.py).
"""

from __future__ import annotations

import itertools
import json
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from concorde.node import tables as made

from docs.parts import chains as page
from testbed.runtime.cni import Attachment, NetworkList, cached, cached_name
from tests.links import lasting
from tests.paths import ROOT
from tests.system.plugin.conftest import GUARANTEE, REFERENCE, Document, Node
from tests.system.plugin.inside import Inside
from tests.system.plugin.overhear import mark
from tests.system.plugin.runtimes import ANNOTATIONS, CACHE
from tests.system.plugin.uplinks import HOST, Pair

CONCORDE = page.CONCORDE
MAINS = (*page.MAINS, CONCORDE)
BANDWIDTH = ("bandwidth egress", "bandwidth ingress", "bandwidth both")
OTHERS = ("portmap", "firewall", "tuning", *BANDWIDTH)
LONGER = (*OTHERS, "tuning mac")  # in longer chains
ENFORCEMENTS = page.ENFORCEMENTS
NEEDED = ("bridge", "ptp", "macvlan", "host-local", "portmap", "firewall", "tuning", "bandwidth")

POD, NEIGHBOUR, GONE = "A-1", "A-2", "A-3"
LISTS = "/run/net.d"
MAC = "c2:b0:57:49:47:f1"  # what tuning gives a pod
PORTS = {"host": 8080, "pod": 80}
RATE = 200_000_000  # bits per second, of bandwidth
LAST = 900_000  # serial numbers of ordinary frames
SEED, LONGER_ONES = 1, 30  # of the longer chains that the page has
AT_A_TIME = 2
FAILS = "FAILS"


@dataclass(frozen=True)
class Chain:
    """A network's plugins in their order, the first the main one unless Concorde stands before it."""

    plugins: tuple[str, ...]
    enforcement: str

    def __str__(self) -> str:
        return f"{', '.join(self.plugins)} ({self.enforcement})"

    @property
    def main(self) -> str:
        """What is to make the interface."""
        return next((name for name in self.plugins if name in page.MAINS), CONCORDE)


def every() -> list[Chain]:
    """Every order with none, one or two of the others, each with every enforcement."""
    return [
        Chain(plugins, enforcement)
        for main in MAINS
        for others in selections()
        for plugins in arrangements(main, others)
        for enforcement in ENFORCEMENTS
    ]


def selections() -> list[tuple[str, ...]]:
    """None, one or two of the others; of bandwidth's forms one at most."""
    chosen = [few for number in range(3) for few in itertools.combinations(OTHERS, number)]
    return [few for few in chosen if len(set(few) & set(BANDWIDTH)) < 2]


def arrangements(main: str, others: Sequence[str]) -> list[tuple[str, ...]]:
    """Every order of them; Concorde, where it is not the main plugin, also stands before that."""
    if main == CONCORDE:
        return [(CONCORDE, *order) for order in itertools.permutations(others)]
    behind = [(main, *order) for order in itertools.permutations((*others, CONCORDE))]
    return behind + [(CONCORDE, main, *order) for order in itertools.permutations(others)]


def longer(seed: int, number: int) -> list[Chain]:
    """Chains of three to five others at random."""
    draw, found = random.Random(seed), []
    for _ in range(number):
        others = [name for name in LONGER if name not in BANDWIDTH] + [draw.choice(BANDWIDTH)]
        order = draw.sample(others, draw.randint(3, 5))
        main = draw.choice(MAINS)
        if main != CONCORDE:
            order.insert(draw.randint(0, len(order)), CONCORDE)
        found.append(Chain((main, *order), draw.choice(ENFORCEMENTS)))
    return found


def listed(chain: Chain) -> NetworkList:
    """The list as an administrator writes it."""
    return NetworkList("cluster-a", [configuration(chain, name) for name in chain.plugins], "1.0.0")


def configuration(chain: Chain, name: str) -> Document:
    kind = name.partition(" ")[0]
    if kind == CONCORDE:
        own: Document = {"subnet": "172.16.1.0/24", "bridge": "cni-a"} if chain.main == CONCORDE else {}
        uplink = {"uplink": "eth0", "capacity": "1G"} if chain.enforcement == "node" else {}
        more = {"mtu": 1450, "enforcement": chain.enforcement, "confDir": LISTS}
        return {"type": kind, **more, **own, **uplink, "capabilities": {ANNOTATIONS: True}}
    pods: Document = {"subnet": "172.16.1.0/24", "routes": [{"dst": "0.0.0.0/0"}]}
    if kind == "macvlan":
        pods |= {"subnet": "192.168.9.0/24", "rangeStart": "192.168.9.100", "gateway": HOST["two"]}
    if kind in MAINS:
        ipam = {"type": "host-local", "dataDir": "/run/host-local", **pods}
        own = {"master": "eth0"} if kind == "macvlan" else {"mtu": 1450}
        if kind == "bridge":
            own |= {"bridge": "cni-b", "isGateway": True}
        return {"type": kind, "ipam": ipam, **own}
    plain: dict[str, Document] = {
        "portmap": {"capabilities": {"portMappings": True}},
        "firewall": {"backend": "iptables"},
        "tuning": {"sysctl": {"net.core.somaxconn": "500"}},
        "tuning mac": {"mac": MAC},
    }
    if kind == "bandwidth":
        return {"type": kind, "capabilities": {"bandwidth": True}}
    return {"type": kind, **plain.get(name, {})}


def attachment(chain: Chain, pod: str) -> Attachment:
    """What a runtime offers to the plugins for a pod."""
    directions = next((name.partition(" ")[2] for name in chain.plugins if name in BANDWIDTH), "")
    rates = {
        key: value
        for direction in ("ingress", "egress")
        if directions in (direction, "both")
        for key, value in ((f"{direction}Rate", RATE), (f"{direction}Burst", 8 * RATE // 100))
    }
    mapping = {"hostPort": PORTS["host"] + (pod != POD), "containerPort": PORTS["pod"], "protocol": "tcp"}
    offered = {
        ANNOTATIONS: {GUARANTEE: "100M"},
        "bandwidth": rates,
        "portMappings": [mapping],
    }
    return Attachment(pod, f"/run/netns/{pod}", capabilities=offered)


class RefusedError(Exception):
    """A plugin refused."""

    def __init__(self, plugin: Document, verb: str, answer: Document) -> None:
        words = answer.get("msg") or str(answer)
        super().__init__(f"{plugin['type']} {verb}: {words} {answer.get('details', '')}".strip())
        self.kind = plugin["type"]
        self.code = answer.get("code")
        self.words = words


class Runtime:
    """Calls the plugins of a list one after another, as libcni does."""

    def __init__(self, node: Node, network: NetworkList) -> None:
        self.node = node
        self.network = network

    def add(self, attached: Attachment) -> Document:
        result: Document | None = None
        for plugin in self.network.plugins:
            result = self.call("ADD", plugin, attached, result)
        assert result is not None
        name, content = cached_name(self.network, attached), cached(self.network, attached, result)
        self.node.run("sh", "-c", f'mkdir -p {CACHE} && cat >{CACHE}/"$1"', "sh", name, stdin=content)
        return result

    def check(self, attached: Attachment, result: Document) -> None:
        for plugin in self.network.plugins:
            self.call("CHECK", plugin, attached, result)

    def delete(self, attached: Attachment, result: Document | None) -> None:
        for plugin in reversed(self.network.plugins):
            self.call("DEL", plugin, attached, result)
        self.node.run("rm", "-f", f"{CACHE}/{cached_name(self.network, attached)}")

    def status(self) -> Document:
        """What Concorde says before, in the first version of the protocol that asks."""
        (own,) = [plugin for plugin in self.network.plugins if plugin["type"] == CONCORDE]
        plain = {key: value for key, value in own.items() if key != "capabilities"}
        return self.node.call("STATUS", "", {**plain, "name": self.network.name, "cniVersion": "1.1.0"})

    def call(self, verb: str, plugin: Document, attached: Attachment, previous: Document | None) -> Document:
        declared = plugin.get("capabilities", {})
        offered = {name: value for name, value in attached.capabilities.items() if declared.get(name)}
        given = {key: value for key, value in plugin.items() if key != "capabilities"}
        given |= {"name": self.network.name, "cniVersion": self.network.cni_version}
        given |= {"runtimeConfig": offered} if offered else {}
        given |= {"prevResult": previous} if previous is not None else {}
        kind = plugin["type"]
        program = self.node.plugin if kind == CONCORDE else REFERENCE / kind
        started = self.node.start(verb, attached.container_id, given, plugin=program)
        output = started.communicate()[0]
        answer: Document = json.loads(output or b"{}")
        if started.returncode:
            raise RefusedError(plugin, verb, answer)
        return answer


class Scene(Pair):
    """The pair, a neighbour of what a main plugin and Concorde bring up, and pods that come and go."""

    def __init__(self, node: Node, main: str, enforcement: str) -> None:
        super().__init__(node)
        self.main = main
        node.add_pod_namespace(NEIGHBOUR)
        plugins = (main,) if main in (CONCORDE, "macvlan") else (main, CONCORDE)
        first = Chain(plugins, enforcement)
        self.neighbour = Runtime(node, listed(first)).add(attachment(first, NEIGHBOUR))
        node.run("mkdir", LISTS)
        self.plug_in()
        self.before: dict[str, Any] = {}
        self.plain: dict[tuple[str, ...], set[str]] = {}
        self.program = Inside(node, Path(__file__).with_name("reach.py"), path=ROOT)

    def __enter__(self) -> Scene:
        return self

    def __exit__(self, *_: object) -> None:
        self.program.close()

    def outcome(self, chain: Chain) -> str:
        """What becomes of a pod by it: `works`, or why not."""
        network, attached = listed(chain), attachment(chain, POD)
        runtime = Runtime(self.node, network)
        shown = {"cniVersion": "1.0.0", "name": network.name, "plugins": network.plugins}
        self.node.run("sh", "-c", f"cat >{LISTS}/10-a.conflist", stdin=json.dumps(shown))
        before = self.before or self.state()
        self.node.add_pod_namespace(POD)
        status = runtime.status()
        faults: list[str] = []
        result, refused = None, None
        try:
            result = runtime.add(attached)
        except RefusedError as error:
            refused = error
        else:
            if status:
                faults.append(f"STATUS: {status['msg']}")
            faults += self.faults(chain, runtime, attached, result)
        try:
            runtime.delete(attached, result)
        except RefusedError as error:
            faults.append(str(error))
        self.node.run("ip", "netns", "del", POD)
        self.before = self.state()
        faults += differences("DEL left", before, self.before)
        if faults:
            self.before = {}
            return f"{FAILS}: " + "; ".join(faults)
        if refused is None:
            return page.WORKS
        others = [name for name in chain.plugins if name not in (CONCORDE, chain.main)]
        if refused.kind != CONCORDE and "ADD" in self.plainly(chain.main, *others):
            return f"fails without Concorde, too: {refused}"
        said = status.get("code"), status.get("msg")
        if refused.kind != CONCORDE or said != (refused.code, refused.words):
            return f"{FAILS}: {refused}; STATUS said {status}"
        return f"refused: {refused.words}"

    def plainly(self, main: str, *others: str) -> set[str]:
        """Which calls fail without Concorde: `ADD` and `CHECK`, of whatever plugin. Each is tried once."""
        main = "ptp" if main == CONCORDE else main
        if (main, *others) not in self.plain:
            chain = Chain((main, *others), "none")
            runtime, attached, result = Runtime(self.node, listed(chain)), attachment(chain, GONE), None
            failed = self.plain[main, *others] = set()
            self.node.add_pod_namespace(GONE)
            try:
                result = runtime.add(attached)
                runtime.check(attached, result)
            except RefusedError:
                failed.add("ADD" if result is None else "CHECK")
            runtime.delete(attached, result)
            self.node.run("ip", "netns", "del", GONE)
        return self.plain[main, *others]

    def faults(self, chain: Chain, runtime: Runtime, attached: Attachment, result: Document) -> Iterator[str]:
        """What is wrong while the pod lives."""
        pod = Pod(self.node, result)
        yield from self.unreached(chain, pod)
        yield from self.forged(pod)
        yield from self.misplaced(pod)
        for name, plugin in zip(chain.plugins, runtime.network.plugins, strict=True):
            try:
                runtime.call("CHECK", plugin, attached, result)
            except RefusedError as error:
                if plugin["type"] == CONCORDE or "CHECK" not in self.plainly(chain.main, name):
                    yield str(error)
        before = self.state(), pod.state()
        said = self.node.run(self.node.plugin, "reconcile")
        if said != "nothing to repair\n":
            yield f"reconcile: {said}"
        said = self.node.run(self.node.plugin, "rebuild", "--cache", CACHE)
        if strange := [line for line in said.splitlines() if not line.startswith("made: ")]:
            yield f"rebuild: {strange}"
        for what, old, new in zip(("the node", "the pod"), before, (self.state(), pod.state()), strict=True):
            yield from differences(f"reconcile and rebuild changed {what}", old, new)

    @property
    def far(self) -> tuple[str, str]:
        """Who is beyond the uplink: an address, and the interface where packets for it come out."""
        return (HOST["two"], "eth0") if self.main == "macvlan" else ("172.16.2.0", "flannel.1")

    def unreached(self, chain: Chain, pod: Pod) -> Iterator[str]:
        node, two, there = "/proc/1/ns/net", "/run/netns/two", f"/run/netns/{NEIGHBOUR}"
        own, far, neighbour = pod.namespace, self.far[0], address(self.neighbour)
        asked = {
            "the pod reaches the far node": (own, two, far, 7, 7),
            "the pod reaches its neighbour": (own, there, neighbour, 7, 7),
            "the far node reaches the pod": (two, own, pod.address, PORTS["pod"], PORTS["pod"]),
            "its neighbour reaches the pod": (there, own, pod.address, 7, 7),
        }
        if self.main != "macvlan":
            gateway = pod.gateway
            asked["the pod reaches its gateway"] = own, node, gateway, 7, 7
            asked["the node reaches the pod"] = node, own, pod.address, 7, 7
            if "portmap" in chain.plugins:
                mapped = (two, own, HOST["one"], PORTS["host"], PORTS["pod"])
                asked["the far node reaches the pod by the node's port"] = mapped
        before = self.classes() if chain.enforcement == "node" else {}
        answers = self.program.ask({"converse": list(asked.values())})
        for words, answer in zip(asked, answers, strict=True):
            if not answer:
                yield f"not so: {words}"
        if chain.enforcement == "node":
            ((minor,),) = self.program.ask({"rows": CLASS})
            own = f"c0de:{minor:x}"
            if self.classes().get(own, 0) == before.get(own, 0):
                yield f"nothing of what the pod sent is in its class {own}"

    def forged(self, pod: Pod) -> Iterator[str]:
        """What a pod sends as somebody else, and what comes of it."""
        destinations = (self.far[0], address(self.neighbour))
        hops = pod.next_hops(destinations)
        frames: list[str] = []
        kinds = {}
        for hop, destination in zip(hops, destinations, strict=True):
            for kind, mac, source in (
                ("a foreign address", pod.mac, "10.99.0.9"),
                ("another pod's address", pod.mac, "172.16.1.250"),
                ("a foreign hardware address", "02:00:00:00:00:99", pod.address),
            ):
                serial = len(frames)
                kinds[serial] = f"{kind} to {destination}"
                frames.append(udp(hop, mac, source, destination, serial))
        last: dict[str, list[Any]] = {
            "far": ["/run/netns/two", self.far[1]],
            "neighbour": [f"/run/netns/{NEIGHBOUR}", "eth0"],
        }
        for at, (ear, hop, destination) in enumerate(zip(last.values(), hops, destinations, strict=True)):
            ear += [udp(hop, pod.mac, pod.address, destination, LAST + at), LAST + at]
        asked = {"pod": pod.namespace, "interface": "eth0", "frames": frames, "last": last}
        heard = self.program.ask({"forge": asked})
        for place, serials in heard.items():
            for serial in sorted({*serials} & kinds.keys()):
                yield f"a frame from {kinds[serial]} came to {place}"
            if last[place][3] not in serials:
                yield f"no ordinary frame came to {place}"

    def misplaced(self, pod: Pod) -> Iterator[str]:
        """Where the guard is, but for the neighbour's."""
        guarded = guarded_interfaces(self.node)
        guarded -= {end["name"] for end in self.neighbour["interfaces"]}
        if guarded != {pod.host_end}:
            yield f"the guard is at {sorted(guarded)}, and the pod's packets come in by {pod.host_end}"

    def state(self) -> dict[str, Any]:
        """What the node has that Concorde may change."""
        *shown, ruleset, classes = self.node.run("sh", "-c", STATE).split("\n---\n")
        ledger = self.program.ask({"rows": LEDGER})
        return {
            **network_state(*(json.loads(part or "[]") for part in shown)),
            "nft": tables(json.loads(ruleset)),
            "classes": sorted(classes.splitlines()),
            "ledger": ledger,
            "leases": self.program.ask({"rows": LEASES}),
        }


class Pod:
    """What the kernel says of a pod's interface."""

    def __init__(self, node: Node, result: Document) -> None:
        self.node = node
        self.namespace = f"/run/netns/{POD}"
        self.address = address(result)
        self.gateway = result["ips"][0].get("gateway", "")
        (link,) = node.show("ip", "-j", "-d", "link", "show", "eth0", pod=POD)
        self.mac: str = link["address"]
        index = link.get("link_index")
        ends = [end["ifname"] for end in node.show("ip", "-j", "link", "show") if end["ifindex"] == index]
        self.host_end = ends[0] if ends else ""

    def next_hops(self, destinations: Iterable[str]) -> list[str]:
        """The hardware addresses to which it sends what is for these addresses; it has sent there before."""
        shown = self.node.show("ip", "-j", "neigh", "show", "dev", "eth0", pod=POD)
        known = {each["dst"]: each["lladdr"] for each in shown if "lladdr" in each}
        return [known.get(to) or known.get(self.gateway, "ff:ff:ff:ff:ff:ff") for to in destinations]

    def state(self) -> dict[str, Any]:
        """What its namespace has."""
        shown = self.node.in_pod(POD, "sh", "-c", POD_STATE).split("\n---\n")
        return network_state(*(json.loads(part or "[]") for part in shown))


LEDGER = "/run/concorde/node/ledger.sqlite", "SELECT * FROM attachment ORDER BY network, container"
LEASES = LEDGER[0], "SELECT * FROM promise ORDER BY network, container"
CLASS = LEDGER[0], f"SELECT minor FROM promise WHERE container = '{POD}' AND rate"
# In one process: each part is JSON, but for tc's classes.
POD_STATE = "ip -j -d addr; echo '\n---'; ip -j route show table all; echo '\n---'; tc -j qdisc show"
STATE = f"{POD_STATE}; echo '\n---'; bridge -j fdb show; echo '\n---'; nft -j list ruleset"
STATE += "; echo '\n---'; tc class show dev eth0"
COUNTED = ("hops", "connections", "full")  # sets that packets fill


def network_state(links: Any, routes: Any, qdiscs: Any, fdb: Any = ()) -> dict[str, Any]:
    """What was shown, without what changes by itself."""
    timers = ("timer", "age", "ticks", "_id")
    return {
        "links": [
            {
                **{key: link.get(key) for key in ("ifname", "address", "mtu", "master", "altnames")},
                "flags": lasting(link["flags"]),
                "kind": link.get("linkinfo", {}).get("info_kind"),
                "port": {
                    key: value
                    for key, value in link.get("linkinfo", {}).get("info_slave_data", {}).items()
                    if not any(word in key for word in timers)
                },
            }
            for link in links
            if link
        ],
        "addresses": [
            (link["ifname"], each["local"], each["prefixlen"])
            for link in links
            if link
            for each in link.get("addr_info", ())
        ],
        "routes": [
            {key: value for key, value in route.items() if key != "flags"}
            for route in routes
            if ":" not in route["dst"]  # of IPv6 the kernel makes them when a link has its carrier
        ],
        "qdiscs": qdiscs,
        "fdb": [each for each in fdb if each.get("state") in ("permanent", "static")],
    }


def tables(ruleset: Any) -> list[str]:
    """Concorde's tables, in lines that can be compared; what packets count and fill is left out.

    So is what comes of it that the kernel begins to track connections.
    """
    lines = []
    for entry in ruleset["nftables"]:
        ((kind, what),) = entry.items()
        if kind == "metainfo" or what.get("table", what["name"] if kind == "table" else "") != CONCORDE:
            continue
        what = {key: value for key, value in what.items() if key not in ("handle", "index")}
        if kind in ("set", "map"):
            elements = [] if what["name"] in COUNTED else what.get("elem", [])
            what["elem"] = sorted(map(element, elements))
        if what.get("name") == "tracked" or what.get("comment") in of_tracking():
            continue
        lines.append(json.dumps({kind: what}, sort_keys=True))
    return sorted(lines)


@cache
def of_tracking() -> set[str]:
    """What rules are known by that are otherwise, or only there, once the kernel tracks connections."""
    without, with_it = (
        {comment for _, rules in made.chains(tracked=tracked).values() for comment in made.comments(rules)}
        for tracked in (False, True)
    )
    return without ^ with_it


def element(shown: Any) -> str:
    if isinstance(shown, dict) and "elem" in shown:
        shown = shown["elem"]["val"]
    return json.dumps(shown)


def guarded_interfaces(node: Node) -> set[str]:
    """Every interface at which Concorde looks at what comes in."""
    ruleset = json.loads(node.run("nft", "-j", "list", "ruleset"))
    found = set()
    for entry in ruleset["nftables"]:
        ((kind, what),) = entry.items()
        if what.get("table") != CONCORDE:
            continue
        if kind == "set" and (what["family"], what["name"]) == ("bridge", "guarded"):
            found |= {str(each) for each in what.get("elem", ())}
        if kind == "chain" and what["family"] == "netdev" and what["name"].startswith("at-"):
            found.add(what["name"].removeprefix("at-"))
    return found


def differences(words: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for part in before:
        old, new = before[part], after[part]
        if old != new:
            more = [one for one in new if one not in old]
            less = [one for one in old if one not in new]
            yield f"{words} {part}: more {more} less {less}"


def address(result: Document) -> str:
    stated: str = result["ips"][0]["address"]
    return stated.partition("/")[0]


def udp(to_mac: str, from_mac: str, source: str, to: str, serial: int) -> str:
    """A frame of UDP that carries a serial number, in hexadecimal."""
    payload = mark(serial) * 4
    load = struct.pack("!HHHH", 9, 9, 8 + len(payload), 0) + payload
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(load), 0, 0, 64, socket.IPPROTO_UDP, 0) + ends
    header = header[:10] + struct.pack("!H", checksum(header)) + header[12:]
    frame = bytes.fromhex((to_mac + from_mac).replace(":", "")) + b"\x08\x00" + header + load
    return frame.hex()


def checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    return ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF


def lacking() -> list[str]:
    return [name for name in NEEDED if not (REFERENCE / name).exists()]


def grouped(chains: Iterable[Chain]) -> dict[tuple[str, str], list[Chain]]:
    """By what a scene is made for."""
    found: dict[tuple[str, str], list[Chain]] = {}
    for chain in chains:
        found.setdefault((chain.main, chain.enforcement), []).append(chain)
    return found


def tried(plugin: Path, chains: Sequence[Chain], each: Callable[[Chain, str], None]) -> None:
    """Try chains, and tell what becomes of each; after a fault their scene is made anew."""
    for of_scene in grouped(chains).values():
        left = list(of_scene)
        while left:
            node = Node(plugin)
            try:
                with Scene(node, left[0].main, left[0].enforcement) as scene:
                    while left:
                        chain = left.pop(0)
                        each(chain, outcome := scene.outcome(chain))
                        if outcome.startswith(FAILS):
                            break
            finally:
                node.close()


def main() -> None:
    """Try what is not recorded, two scenes at a time; record and page are written after each chain."""
    record = page.read()

    def each(chain: Chain, outcome: str) -> None:
        with lock:
            page.note(record, chain.plugins, chain.enforcement, outcome)
            page.write(record)

    lock = threading.Lock()
    asked = [*every(), *longer(SEED, LONGER_ONES)]
    missing = [chain for chain in asked if not page.noted(record, chain.plugins, chain.enforcement)]
    with tempfile.TemporaryDirectory() as output, ThreadPoolExecutor(AT_A_TIME) as pool:
        subprocess.run([sys.executable, ROOT / "plugin/build.py", "--output", output], check=True)
        plugin = Path(output) / CONCORDE
        list(pool.map(lambda chains: tried(plugin, chains, each), grouped(missing).values()))


if __name__ == "__main__":
    main()
