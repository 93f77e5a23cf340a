"""What requests to services pay when endpoints, programs and hints change, on a real API server.

All is in a network namespace of its own: etcd, the API server, and nodes that are namespaces with a pod and a
proxy each; endpoints are addresses of one server, which notes who asked for which of them when. Nodes are
objects, no kubelet runs. One clock is everybody's. Five trials, each a line of JSON:

* ``gone``: an endpoint leaves its slice: until which moment was anything sent to it, from any node;
* ``zero``: a service is scaled to zero: when is it refused;
* ``switch``: hints are switched on and off under load: is a request lost;
* ``flood``: one pod opens 100,000 connections and keeps them, of which the kernel has room for 90,000: how
  many of another pod's fail, with the limit of the proxy's table and without;
* ``kills``: SIGKILLs of proxies and publisher while services change: when is the kernel as the API justifies,
  and does a UDP flow move whose endpoint stayed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from edge.http import MERGE, Question  # noqa: E402
from edge.services.annotations import AWARE_HINTS  # noqa: E402
from edge.services.rules import Port, Target, read  # noqa: E402
from tests import hinted  # noqa: E402
from tests.apis import NODES, Api, Controller, served  # noqa: E402
from tests.waiting import until  # noqa: E402

SERVICES = "/api/v1/namespaces/default/services"
SLICES = "/apis/discovery.k8s.io/v1beta1/namespaces/default/endpointslices"
RANGE, HUB = "10.96.0.0/16", "10.60.0.1"
KUBERNETES, WEB, STEADY, EXTRA = "10.96.0.1", "10.96.0.10", "10.96.0.11", "10.96.0.12"
ENDPOINTS = 8
REFUSED = "ConnectionRefusedError"
ROUNDS = {"gone": 10, "zero": 10, "switch": 100, "flood": 100_000, "kills": 100}
FIXED = {1: "a", 2: "b", 3: "a"}  # endpoints that stay
NODES_OF = {"switch": 3, "flood": 1, "kills": 2}
HUB_LINKS = """
ip link set lo up && ip route add local 10.62.0.0/24 dev lo
ip link add lan type bridge && ip link set lan up && ip address add 10.60.0.1/24 dev lan
echo 1 >/proc/sys/net/ipv4/ip_forward
"""
NODE_LINKS = """
ip netns add node-{0} && ip netns add pod-{0}
ip link add n{0} type veth peer name eth0 netns node-{0} && ip link set n{0} master lan up
ip -n node-{0} link add pod type veth peer name eth0 netns pod-{0}
for each in node-{0} pod-{0}; do ip -n $each link set lo up && ip -n $each link set eth0 up; done
ip -n node-{0} address add 10.60.0.{1}/24 dev eth0 && ip -n node-{0} route add default via 10.60.0.1
ip -n node-{0} address add 10.61.{0}.1/24 dev pod && ip -n node-{0} link set pod up
ip -n pod-{0} address add 10.61.{0}.2/24 dev eth0 && ip -n pod-{0} route add default via 10.61.{0}.1
ip route add 10.61.{0}.0/24 via 10.60.0.{1}
ip netns exec node-{0} sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
"""
# Answers with the address that was asked, and notes when, by whom and which; says all when its input ends.
SERVE = """
import json, selectors, socket, sys, time
chosen, asked = selectors.DefaultSelector(), []
listening = socket.create_server(("", 8080), backlog=4096)
chosen.register(listening, selectors.EVENT_READ)
for number in range(1, int(sys.argv[1]) + 1):
    datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    datagrams.bind((f"10.62.0.{number}", 8053))
    chosen.register(datagrams, selectors.EVENT_READ)
chosen.register(sys.stdin, selectors.EVENT_READ)
print("ready", flush=True)
while True:
    for key, _ in chosen.select():
        if key.fileobj is sys.stdin:
            print(json.dumps(asked))
            sys.exit()
        if key.fileobj is listening:
            connection, whom = listening.accept()
            which = connection.getsockname()[0]
            connection.sendall(which.encode())
            connection.close()
        else:
            _, whom = key.fileobj.recvfrom(99)
            which = key.fileobj.getsockname()[0]
            key.fileobj.sendto(which.encode(), whom)
        asked.append((time.monotonic(), whom[0], which, key.fileobj is listening))
"""
# Asks by new connections at a rate, and by UDP flows that each ask every 50 ms; says when, how long it took
# and who answered when its input ends.
ASK = """
import json, socket, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
address, rate, flows = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
over, found = threading.Event(), []
def note(kind, ask):
    begun = time.monotonic()
    try:
        answer = ask()
    except OSError as error:
        answer = type(error).__name__
    found.append((begun, time.monotonic() - begun, kind, answer))
def connect():
    with socket.create_connection((address, 80), timeout=5) as connection:
        return connection.recv(99).decode()
def flow(number):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        datagrams.bind(("", 20000 + number))
        datagrams.connect((address, 53))
        datagrams.settimeout(0.5)
        def ask():
            datagrams.send(b"who?")
            return datagrams.recv(99).decode()
        while not over.wait(0.05):
            note(number, ask)
threads = [threading.Thread(target=flow, args=(number,)) for number in range(1, flows + 1)]
threads.append(threading.Thread(target=lambda: (sys.stdin.read(), over.set())))
for thread in threads:
    thread.start()
print("ready", flush=True)
due = time.monotonic()
with ThreadPoolExecutor(16) as pool:
    while rate and not over.wait(max(0.0, due - time.monotonic())):
        due += 1 / rate
        pool.submit(note, 0, connect)
    pool.shutdown(cancel_futures=True)  # where none is answered, most have not been begun
for thread in threads:
    thread.join()
print(json.dumps(found))
"""
# A pod whose connections stay open for the kernel between, without a process that has to hold so many: what
# either end says when it closes them is lost.
FLOODER = """
ip netns add flooder && ip -n node-1 link add flooder type veth peer name eth0 netns flooder
ip -n flooder link set lo up && ip -n flooder link set eth0 up
ip -n flooder address add 10.63.0.2/24 dev eth0
ip -n flooder route add default via 10.63.0.1 && ip route add 10.63.0.0/24 via 10.60.0.11
ip -n node-1 address add 10.63.0.1/24 dev flooder && ip -n node-1 link set flooder up
nft 'table ip silent { chain ends { type filter hook output priority 0
  ip daddr 10.63.0.2 tcp flags & (fin | rst) != 0 drop; }; }'
ip netns exec flooder nft 'table ip silent { chain ends { type filter hook output priority 0
  tcp flags & (fin | rst) != 0 drop; }; }'
"""
# Opens so many connections, from each port to addresses by turns. What comes to nothing within a second, it
# leaves. Is ready when it has them, or after some seconds, and says how many when its input ends.
FLOOD = """
import itertools, json, select, socket, struct, sys, time
count, seconds, addresses = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
ways = itertools.product(range(1024, 65536), addresses)
answers, begun, tried, opened = select.epoll(), {}, 0, 0
end = time.monotonic() + seconds
while opened < count and time.monotonic() < end:
    for port, address in itertools.islice(ways, min(1000, count - opened) - len(begun)):
        one = socket.socket()
        one.setblocking(False)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.bind(("", port))
        one.connect_ex((address, 80))
        tried += 1
        begun[one.fileno()] = one, time.monotonic()
        answers.register(one, select.EPOLLIN)
    for number, _ in answers.poll(0.1):
        with begun.pop(number)[0] as one:
            try:
                opened += bool(one.recv(99))
            except OSError:
                pass
    late = time.monotonic() - 1
    for number in [number for number, (_, when) in begun.items() if when < late]:
        begun.pop(number)[0].close()
print("ready", flush=True)
sys.stdin.read()
print(json.dumps([tried, opened]))
"""
FLOOD_SECONDS = 30
# Forgets all connections, and lets the kernel track some of nobody, until there is room for so many.
FILL = """
import socket, sys
from pathlib import Path
from struct import pack
sys.path.insert(0, sys.argv[1])
from edge import netlink as nl
for _ in nl.ask(1 << 8 | 2, nl.ACK, pack("=BBH", 2, 0, 0), protocol=nl.NETFILTER):
    pass
known = Path("/proc/sys/net/netfilter")
most, now = (int((known / f"nf_conntrack_{name}").read_text()) for name in ("max", "count"))
kernel = nl.opened(nl.NETFILTER)
def end(kind, source, target, ports):
    addresses = nl.attribute(1, socket.inet_aton(source)) + nl.attribute(2, socket.inet_aton(target))
    protocol = nl.attribute(1, b"\6") + nl.attribute(2, pack("!H", ports[0]))
    protocol += nl.attribute(3, pack("!H", ports[1]))
    return nl.nested(kind, nl.nested(1, addresses) + nl.nested(2, protocol))
rest = nl.attribute(3, pack("!I", 2 | 4 | 8)) + nl.attribute(7, pack("!I", 600))
rest += nl.nested(4, nl.nested(1, nl.attribute(1, b"\3")))
batch = []
for number in range(most - now - int(sys.argv[2])):
    host, ports = f"10.200.{number >> 24}.{number >> 16 & 255}", (number & 65535 or 1, 80)
    body = pack("=BBH", 2, 0, 0) + end(1, host, "10.201.0.1", ports)
    body += end(2, "10.201.0.1", host, ports[::-1]) + rest
    batch.append(nl.message(1 << 8, 0x600, body))
    if len(batch) == 100:
        kernel.send(b"".join(batch))
        batch = []
print(most - int((known / "nf_conntrack_count").read_text()))
"""
# Says for how many more connections there is room.
LEFT = """
known = "/proc/sys/net/netfilter/nf_conntrack_"
print(int(open(known + "max").read()) - int(open(known + "count").read()))
"""
PYTHON = [sys.executable, "-ISc"]
Document = dict[str, Any]
Holding = Mapping[Port, frozenset[Target]]


def inside(namespace: str, *argv: str) -> list[str]:
    """Return a command as it is run in a network namespace."""
    return ["ip", "netns", "exec", namespace, *argv]


def run(argv: Sequence[str]) -> str:
    """Run a command, and return what it says."""
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


class Telling:
    """A program that says all it noted when its input ends."""

    def __init__(self, namespace: str, text: str, *arguments: object) -> None:
        argv = [*PYTHON, text, *map(str, arguments)]
        argv = inside(namespace, *argv) if namespace else argv
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def said(self) -> list[Any]:
        """End it, and return what it noted."""
        found: list[Any] = json.loads(self._process.communicate()[0])
        return found


class World:
    """Nodes with their proxies, and what they are told by an API."""

    def __init__(self, api: Api, nodes: int, zones: str) -> None:
        self.api, self.zones = api, zones
        self.nodes = range(1, nodes + 1)
        for number in self.nodes:
            document = hinted.node(f"node-{number}", self.zone(number))
            document["spec"] = {"podCIDR": f"10.61.{number}.0/24"}
            api.post(NODES, document)
            path = f"{NODES}/node-{number}/status"
            api.client.ask(Question("PATCH", path, {"status": document["status"]}, MERGE))
        self.proxies = {number: self._proxy(number) for number in self.nodes}
        self.publisher = Controller(api, program="hints")

    def zone(self, number: int) -> str:
        """Return the zone of a node."""
        return self.zones[number % len(self.zones)]

    def close(self) -> None:
        """End all programs."""
        for program in (*self.proxies.values(), self.publisher):
            program.kill()

    def service(self, name: str, address: str) -> None:
        """Make a service, with a slice without endpoints."""
        ports = [
            {"name": "web", "protocol": "TCP", "port": 80},
            {"name": "dns", "protocol": "UDP", "port": 53},
        ]
        self.api.post(SERVICES, {"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": ports}})
        made = hinted.endpoint_slice(name, "", of=name)
        made["ports"] = [{**ports[0], "port": 8080}, {**ports[1], "port": 8053}]
        self.api.post(SLICES, made)

    def remove(self, name: str) -> None:
        """Delete a service and its slice."""
        self.api.delete(f"{SERVICES}/{name}")
        self.api.delete(f"{SLICES}/{name}")

    def hint(self, name: str, mode: str | None) -> None:
        """Switch a service's hints."""
        self.api.patch(f"{SERVICES}/{name}", {"metadata": {"annotations": {AWARE_HINTS: mode}}})

    def scale(self, name: str, endpoints: Mapping[int, str]) -> float:
        """Let a service have endpoints, by number and zone; return when that was asked for."""
        told = [
            hinted.endpoints(zone, number)[0] | {"addresses": [f"10.62.0.{number}"]}
            for number, zone in endpoints.items()
        ]
        begun = time.monotonic()
        self.api.patch(f"{SLICES}/{name}", {"endpoints": told})
        return begun

    def holds(self, number: int) -> Holding:
        """Return to which endpoints a node's kernel lets connections go, the API's own left out."""
        command = inside(f"node-{number}", "nft", "-j", "-nn", "list", "table", "ip", "services-bench")
        listed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        try:
            held = read(json.loads(listed))[1].endpoints
        except (KeyError, ValueError):  # there is no table, or it is about to be
            return {}
        return {port: frozenset(targets) for port, targets in held.items() if port.address != KUBERNETES}

    def until_all_hold(self, *expected: Holding) -> float:
        """Wait until each node holds what is expected in its zone, or everywhere; return when (monotonic)."""
        for number in self.nodes:
            self._until_holds(number, expected[number % len(expected)])
        return time.monotonic()

    def _until_holds(self, number: int, expected: Holding) -> None:
        until(lambda: self.holds(number) == expected, lambda: self._differ(number, expected))

    def _differ(self, number: int, expected: Holding) -> str:
        there, log = self.holds(number), self.proxies[number].said()[-1500:]
        return f"node-{number} has {there}, not {expected}\n{log}\n{self.publisher.said()[-1500:]}"

    def _proxy(self, number: int) -> Controller:
        told = ["--cluster=bench", f"--services={RANGE}", f"--node=node-{number}"]
        return Controller(self.api, *told, program="services-proxy", inside=inside(f"node-{number}"))


def main() -> None:
    """Try and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=10, help="how many, each with a proxy (%(default)s)")
    parser.add_argument(
        "--seed", type=int, default=1, help="of what is changed and killed when (%(default)s)"
    )
    for name, rounds in ROUNDS.items():
        parser.add_argument(f"--{name}", type=int, default=rounds, help="how often (%(default)s; 0: not)")
    told = parser.parse_args()
    if "BENCH_APART" not in os.environ:
        apart = [
            "unshare",
            *(["-r"] if os.geteuid() else []),
            "--net",
            "--mount",
            "--pid",
            "--fork",
            "--mount-proc",
        ]
        command = [*apart, "--kill-child", sys.executable, *sys.argv]
        sys.exit(subprocess.run(command, env={**os.environ, "BENCH_APART": "1"}, check=False).returncode)
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    links = "".join(NODE_LINKS.format(number, 10 + number) for number in range(1, max(told.nodes, 3) + 1))
    subprocess.run(["sh", "-ec", HUB_LINKS + links], check=True)
    with tempfile.TemporaryDirectory() as directory, served(Path(directory), kinds=False, address=HUB) as api:
        for name, trial in (
            ("gone", gone),
            ("zero", zero),
            ("switch", switch),
            ("flood", flood),
            ("kills", kills),
        ):
            if rounds := getattr(told, name):
                with prepared(api, NODES_OF.get(name, told.nodes)) as world:
                    found = trial(world, rounds, random.Random(told.seed))
                print(
                    json.dumps({"trial": name, "rounds": rounds, "nodes": len(world.nodes), **found}),
                    flush=True,
                )


@contextmanager
def prepared(api: Api, nodes: int) -> Iterator[World]:
    """Lend a world with a service, and nothing else."""
    for path in (NODES, SERVICES, SLICES):
        for one in (api.get(path) or {})["items"]:
            if one["metadata"]["name"] != "kubernetes":
                api.delete(f"{path}/{one['metadata']['name']}")
    world = World(api, nodes, "ab" if nodes == 2 else "abc")
    try:
        world.service("web", WEB)
        yield world
    finally:
        world.close()


def gone(world: World, rounds: int, chance: random.Random) -> Document:
    """Take an endpoint away, and give it back."""
    whole = {number: world.zone(number) for number in range(1, ENDPOINTS + 1)}
    world.scale("web", whole)
    world.until_all_hold(ports(WEB, whole))
    server = Telling("", SERVE, ENDPOINTS)
    clients = [Telling(f"pod-{number}", ASK, WEB, 20, 4) for number in world.nodes]
    away: list[tuple[float, float, str]] = []
    for _ in range(rounds):
        time.sleep(0.5)
        number = chance.choice(list(whole))
        begun = world.scale("web", {one: zone for one, zone in whole.items() if one != number})
        time.sleep(1.5)
        away.append((begun, world.scale("web", whole), f"10.62.0.{number}"))
    asked = [client.said() for client in clients]
    heard = server.said()
    late = [
        max(
            (
                when - begun
                for when, whom, which, _ in heard
                if (whom, which) == (f"10.61.{node}.2", gone) and begun < when < back
            ),
            default=0.0,
        )
        for begun, back, gone in away
        for node in world.nodes
    ]
    moved = [each for said in asked for begun, _, gone in away for each in moves(said, begun, gone)]
    return {
        "requests": sum(map(len, asked)), **lost(asked), "last_to_it_s": spread(late),
        "udp_flows_moved": len(moved), "udp_moved_s": spread(moved),
    }  # fmt: skip


def moves(said: list[Any], begun: float, gone: str) -> Iterator[float]:
    """Yield when flows that went to an endpoint before some moment went to another, in seconds since."""
    for flow in {kind for _, _, kind, _ in said} - {0}:
        own = sorted(one for one in said if one[2] == flow)
        before = [one for one in own if one[0] + one[1] < begun]
        if before and before[-1][3] == gone:
            yield (
                min(
                    when + took
                    for when, took, _, who in own
                    if when > begun and who.startswith("10.") and who != gone
                )
                - begun
            )


def zero(world: World, rounds: int, chance: random.Random) -> Document:
    """Take all endpoints away, and give them back."""
    del chance  # nothing is left to it
    whole = {number: world.zone(number) for number in range(1, 4)}
    world.scale("web", whole)
    world.until_all_hold(ports(WEB, whole))
    server = Telling("", SERVE, ENDPOINTS)
    clients = [Telling(f"pod-{number}", ASK, WEB, 20, 2) for number in world.nodes]
    away = []
    for _ in range(rounds):
        time.sleep(0.4)
        begun = world.scale("web", {})
        time.sleep(1.2)
        away.append((begun, world.scale("web", whole)))
    asked = [client.said() for client in clients]
    server.said()
    refused: dict[bool, list[float]] = {True: [], False: []}
    served_late = 0
    for said in asked:
        for begun, back in away:
            for tcp in (True, False):
                own = [one for one in said if (one[2] == 0) == tcp and begun < one[0] < back]
                first = min((when + took for when, took, _, who in own if who == REFUSED), default=back)
                answered = [when for when, _, _, who in own if who.startswith("10.")]
                refused[tcp].append(max([first, *answered]) - begun)
                served_late += sum(when > begun + 1 for when in answered)
    return {
        "tcp_refused_s": spread(refused[True]), "udp_refused_s": spread(refused[False]),
        "answered_after_1_s": served_late,
    }  # fmt: skip


def switch(world: World, rounds: int, _: random.Random) -> Document:
    """Switch hints on and off, each time until slices and kernels say so."""
    zones = dict(zip(range(1, 7), "abcabc", strict=True))
    world.scale("web", zones)
    world.until_all_hold(ports(WEB, zones))
    server = Telling("", SERVE, ENDPOINTS)
    clients = [Telling(f"pod-{number}", ASK, WEB, 500 / len(world.nodes), 0) for number in world.nodes]
    begun = time.monotonic()
    for number in range(rounds):
        on = number % 2 == 0
        world.hint("web", "Auto" if on else None)
        world.until_all_hold(
            *(
                ports(WEB, {one: zone for one, zone in zones.items() if not on or zone == own})
                for own in "abc"
            )
        )
    took = time.monotonic() - begun
    asked = [client.said() for client in clients]
    server.said()
    times = [took for said in asked for _, took, _, _ in said]
    return {
        "requests": len(times),
        **lost(asked),
        "seconds": round(took, 1),
        "request_s": spread(times),
    }


def flood(world: World, rounds: int, chance: random.Random) -> Document:
    """Open more connections than the kernel has room for, with the limit and without."""
    del chance  # nothing is left to it
    run(["sh", "-ec", FLOODER])
    services = {"web": WEB, "steady": STEADY, "extra": EXTRA}
    world.service("steady", STEADY)
    world.service("extra", EXTRA)
    found: Document = {}
    half = ENDPOINTS // 2  # an address has 64,511 ports for each endpoint, and servers remember whom they had
    for first, which in ((1, "limited"), (half + 1, "unlimited")):
        endpoints = dict.fromkeys(range(first, first + half), "a")
        for name in services:
            world.scale(name, endpoints)
        world.until_all_hold(
            {port: to for one in services.values() for port, to in ports(one, endpoints).items()}
        )
        if which == "unlimited":
            world.proxies[1].freeze(True)  # it would mend it
            run(inside("node-1", "nft", "flush", "chain", "ip", "services-bench", "begin"))
        room = int(run(inside("node-1", *PYTHON, FILL, str(ROOT), "90000")))
        server, client = Telling("", SERVE, ENDPOINTS), Telling("pod-1", ASK, WEB, 50, 0)
        flooding = Telling("flooder", FLOOD, rounds, FLOOD_SECONDS, *services.values())
        left = int(run(inside("node-1", *PYTHON, LEFT)))
        asked = client.said()
        tried, opened = flooding.said()
        server.said()
        found[which] = {
            "room": room,
            "tried": tried,
            "opened": opened,
            "left": left,
            "others": len(asked),
            **lost([asked]),
            "others_s": spread([took for _, took, _, _ in asked]),
        }
    return found


def kills(world: World, rounds: int, chance: random.Random) -> Document:
    """Kill a program in the midst of changes, start it again, and look at the kernel once all is quiet."""
    world.hint("web", "Auto")
    world.service("steady", STEADY)
    changing = Changing(world, chance)
    changing.step()
    changing.until_justified()
    server = Telling("", SERVE, ENDPOINTS)
    clients = [Telling(f"pod-{number}", ASK, STEADY, 10, 12) for number in world.nodes]
    took, killed = [], {"publisher": 0, "proxy": 0}
    for _ in range(rounds):
        victim = chance.choice([world.publisher, *world.proxies.values()])
        killed["publisher" if victim is world.publisher else "proxy"] += 1
        steps = chance.randrange(3, 12)
        moment = chance.randrange(steps)
        for step in range(steps):
            changing.step()
            time.sleep(chance.random() * 0.03)
            if step == moment:
                victim.kill()
                victim.start()
        quiet = time.monotonic()
        took.append(changing.until_justified() - quiet)
    asked = [client.said() for client in clients]
    server.said()
    flows = [flow for said in asked for flow in flows_of(said).values()]
    stay = {f"10.62.0.{number}" for number in FIXED}
    moved = sum(one in stay and one != other for flow in flows for one, other in itertools.pairwise(flow))
    return {
        "killed": killed, "as_justified_s": spread(took), "udp_flows": len(flows), "udp_moved": moved,
        "requests": sum(map(len, asked)), **lost(asked),
    }  # fmt: skip


def flows_of(said: list[Any]) -> dict[int, list[str]]:
    """Return who answered each UDP flow, in order."""
    found: dict[int, list[str]] = {}
    for _, _, kind, who in sorted(said):
        if kind and who.startswith("10."):
            found.setdefault(kind, []).append(who)
    return found


class Changing:
    """Services whose endpoints come and go, and what that justifies."""

    def __init__(self, world: World, chance: random.Random) -> None:
        self._world, self._chance = world, chance
        self._web: dict[int, str] = {}
        self._steady: dict[int, str] = {}
        self._extra = False

    def step(self) -> None:
        """Change something of each."""
        counts = self._chance.choice([(0, 0), (1, 1), (2, 2), (3, 3), (2, 1), (1, 2), (3, 2), (2, 3)])
        self._web = {}
        for zone, first, count in zip("ab", (1, 2), counts, strict=True):
            self._web |= dict.fromkeys(self._chance.sample(range(first, ENDPOINTS + 1, 2), count), zone)
        self._steady = FIXED | dict(list({4: "b", 5: "a", 6: "b"}.items())[: self._chance.randrange(4)])
        self._world.scale("web", self._web)
        self._world.scale("steady", self._steady)
        if self._chance.random() < 0.2:
            if self._extra:
                self._world.remove("extra")
            else:
                self._world.service("extra", EXTRA)
            self._extra = not self._extra

    def until_justified(self) -> float:
        """Wait until all nodes hold what the API justifies; return when (monotonic)."""
        return self._world.until_all_hold(*map(self._justified, self._world.zones))

    def _justified(self, zone: str) -> Holding:
        """Return what is so in a zone: of these counts, hints if both zones have as many endpoints."""
        zones = list(self._web.values())
        even = zones and zones.count("a") == zones.count("b")
        web = {number: own for number, own in self._web.items() if not even or own == zone}
        return ports(WEB, web) | ports(STEADY, self._steady) | (ports(EXTRA, {}) if self._extra else {})


def ports(address: str, endpoints: Mapping[int, str]) -> dict[Port, frozenset[Target]]:
    """Return both ports of a service with such endpoints."""
    return {
        Port(address, protocol, port): frozenset(Target(f"10.62.0.{number}", target) for number in endpoints)
        for protocol, port, target in (("tcp", 80, 8080), ("udp", 53, 8053))
    }


def lost(asked: list[list[Any]]) -> Document:
    """Return how many connections got no answer, and how many datagrams."""
    none = [kind for said in asked for _, _, kind, who in said if not who.startswith("10.")]
    return {"connections_lost": none.count(0), "datagrams_lost": len(none) - none.count(0)}


def spread(values: list[float]) -> Document:
    """Return median, 95th and 99th percentile and the largest."""
    ordered = sorted(values) or [0.0]
    at = {
        name: ordered[min(len(ordered) - 1, int(len(ordered) * part))]
        for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }
    return {name: round(value, 4) for name, value in {**at, "max": ordered[-1]}.items()}


if __name__ == "__main__":
    main()
