"""What a node's agent takes of a processor, by itself: its own loop, in a namespace, with others made up.

Real are the code of the loop, which runs in this process, the ledger, the tree with its classes and tables in
the kernel, the packets and the messages. Made up are the pods, of which there is only what the ledger says;
their packets, which a program sends in their place with the classes' marks, one of each class in `PACKETS`
seconds by turns to all nodes; and the other nodes: one program has all their addresses, and says every 20 ms
for each that its part of its 250 promised classes sends here, and grants what this one sends there.

    steady   others' promised classes say in each report that they send
    seldom   in one of ten: their promises are idle in between, for which rounds are 10 ms
    asleep   nobody sends or says anything
    all      nothing of other nodes is made up: eight have each their loop, and their classes

Printed are rounds and looks at messages a second, processor time of a round and of a look (median and 99th
percentile), and of all, of one core. With `--profile` where it goes, by cProfile, which makes it slower.

Needs root or user namespaces, and an idle machine.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import os
import pstats
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugin")]

from concorde import addresses  # noqa: E402
from concorde.fabric import keys, loop, messages  # noqa: E402
from concorde.fabric.division import Claim  # noqa: E402
from concorde.fabric.talk import Talk  # noqa: E402
from concorde.node import htb, kernel, ledger  # noqa: E402
from concorde.node.records import Entry, Fabric, Tree  # noqa: E402

GIGA, PORT, KEY = 10**9, 7473, b"a key of 32 bytes, which is none"
OWN, FIRST, POD, MAC = "10.7.0.1", "10.7.1.1", "172.16.0.2", "02:00:00:00:00:01"
PROMISE = 3_000_000
BURSTS, BURST, APART = 0.8, 4, 0.015  # seconds, packets, seconds
EVERY, SETTLES, WIDE = 0.02, 4.0, 8.0
ROWS = ("steady", "seldom", "asleep", "all")
ALL = 8
# Sends bursts of packets of 1,000 bytes from so many addresses from a first one on, each to one of the nodes,
# and from each address one burst in so many seconds.
PODS = """
import ipaddress, socket, sys, time
first, count, seconds, burst, apart, *nodes = sys.argv[1:]
count, burst = int(count), int(burst)
out = []
for number in range(count):
    out.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    out[-1].bind((str(ipaddress.ip_address(first) + number), 0))
step, late = float(seconds) / count, int(float(apart) * count / float(seconds))
at, due = 0, time.monotonic()
while True:
    for one in range(burst):
        number = (at - one * late) % count
        out[number].sendto(bytes(1000), (nodes[number % len(nodes)], 9))
    at += 1
    due += step
    time.sleep(max(0, due - time.monotonic()))
"""


def node(number: int) -> str:
    """Another node's address."""
    return addresses.dotted(addresses.parse(FIRST) + number)


def planted(state: str, classes: int, known: int) -> None:
    """Write the ledger, and let the kernel have what it says."""
    tree = Tree("eth0", GIGA, GIGA // 50, (22,), fabric=Fabric(("10.7.0.0/16",), GIGA // 40, PORT))
    directory = f"{state}/node"
    Path(directory).mkdir(parents=True)
    book = ledger.Ledger(directory)
    with book:
        for number in range(classes):
            address = addresses.parse(POD) + number
            book.admit(
                tree,
                Entry(
                    *("made-up", str(number), "eth0", f"default/pod-{number}", address, "pods", ""),
                    *(PROMISE, PROMISE, GIGA),
                    mac=MAC,
                    uplink="eth0",
                    ingress=PROMISE,
                    inward=PROMISE,
                ),
            )
        for number in range(known):
            book.add_peer(tree, addresses.parse(node(number)))
    kernel.repair(book.trees(), book.entries())
    book.close()


def others(nodes: int, claims: int, seldom: bool) -> None:
    """Be all other nodes, until killed: each reports so many classes, and grants what this one reports."""
    talks = [Talk(node(number), PORT, [KEY]) for number in range(nodes)]
    granted: dict[int, dict[int, float]] = {}
    due = [time.monotonic() + EVERY * random.random() for _ in talks]
    while True:
        at = min(range(nodes), key=due.__getitem__)
        time.sleep(max(0.0, due[at] - time.monotonic()))
        due[at] += EVERY
        now = time.monotonic()
        for _, heard in talks[at].heard(now):
            if heard.kind in (messages.REPORT, messages.BOTH):
                granted[at] = {minor: claim.guarantee or GIGA / 10 for minor, claim in heard.claims.items()}
        rates = [0 if seldom and random.random() < 0.9 else 0.9 * PROMISE for _ in range(claims)]
        said = {htb.FIRST_MINOR + one: Claim(PROMISE, rate) for one, rate in enumerate(rates)}
        body = messages.both(messages.report(said), messages.grant(granted.get(at, {}), 0.3))
        talks[at].tell(OWN, messages.BOTH, body, now, None)


class Times:
    """How much processor time each call took (seconds)."""

    def __init__(self) -> None:
        self.took: dict[str, list[float]] = {"round": [], "look": []}

    def of(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed."""

        def timed(*given: Any) -> Any:
            before = time.thread_time()
            try:
                return function(*given)
            finally:
                self.took[name].append(time.thread_time() - before)

        return timed


@contextmanager
def running(argv: list[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that is ended with the block."""
    process = subprocess.Popen(argv, **options)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def sh(*argv: str) -> None:
    """Do something that succeeds."""
    subprocess.run(argv, check=True)


@contextmanager
def place(own: str, other: str, lines: Sequence[str]) -> Iterator[list[str]]:
    """A network at the other end of a device, set up by these lines of ip's; how to run something there."""
    holding = ["unshare", "--net", "sh", "-c", "echo; exec cat"]
    with running(holding, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        there = ["nsenter", "-t", str(holder.pid), "--net"]
        sh("ip", "link", "add", own, "type", "veth", "peer", "name", other, "netns", str(holder.pid))
        subprocess.run([*there, "ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)
        yield there


@contextmanager
def pods(count: int) -> Iterator[list[str]]:
    """A network where all of a node's pods are; how to run something there."""
    first = addresses.parse(POD)
    lines = [f"addr add {addresses.dotted(first + number)}/32 dev pod" for number in range(count)]
    up = [f"link set pod address {MAC} up", "route add default dev pod"]
    with place("pods", "pod", [*lines, *up]) as there:
        sh("ip", "link", "set", "pods", "up")
        sh("ip", "route", "add", "172.16.0.0/16", "dev", "pods")
        for name in ("conf/pods/proxy_arp", "ip_forward"):
            Path("/proc/sys/net/ipv4", name).write_text("1")
        yield there


def measured(told: argparse.Namespace, row: str) -> Iterator[dict[str, Any]]:
    """One row: this is the network between the nodes."""
    own = [node(number) for number in range(ALL)] if row == "all" else [OWN]
    numbers = [f"--{name}={getattr(told, name)}" for name in ("nodes", "known", "classes", "seconds")]
    profile = ["--profile"] if told.profile else []
    with ExitStack() as stack:
        sh("ip", "link", "add", "between", "type", "bridge")
        sh("ip", "link", "set", "between", "up")
        places = []
        for number, address in enumerate(own):
            lines = [f"addr add {address}/16 dev eth0", "link set eth0 up"]
            places.append(stack.enter_context(place(f"far{number}", "eth0", lines)))
            sh("ip", "link", "set", f"far{number}", "master", "between", "up")
        if row in ("steady", "seldom"):
            for number in range(told.nodes):
                sh("ip", "addr", "add", f"{node(number)}/16", "dev", "between")
            claims = str(-(-told.classes // told.nodes))
            stack.enter_context(running([sys.executable, __file__, "--others", str(told.nodes), claims, row]))
        members = []
        for there, address in zip(places, own, strict=True):
            argv = [*there, "unshare", "--mount", sys.executable, __file__, *numbers, *profile]
            argv += ["--member", address, "--rows", row]
            members.append(stack.enter_context(running(argv, stdout=subprocess.PIPE)))
        for member in members:
            said, _ = member.communicate()
            yield json.loads(said)


def member(told: argparse.Namespace, address: str, row: str) -> dict[str, Any]:
    """A node of which nothing is made up but the pods: this is its network."""
    sh("mount", "-t", "tmpfs", "tmpfs", "/run")
    with ExitStack() as stack:
        state = stack.enter_context(TemporaryDirectory(dir="/run"))
        others = [one for one in map(node, range(ALL if row == "all" else told.nodes)) if one != address]
        there = stack.enter_context(pods(told.classes))
        planted(state, told.classes, told.known)
        keys.leave(f"{state}/made-up", KEY)
        if row != "asleep":
            words = [POD, *map(str, (told.classes, BURSTS, BURST, APART)), *others]
            stack.enter_context(running([*there, sys.executable, "-c", PODS, *words]))
        settles = {"asleep": WIDE, "all": 1.5 * SETTLES}.get(row, SETTLES)
        return timed(state, told.seconds, settles, told.profile)


class EndedError(Exception):
    """The loop ran for long enough."""


def timed(state: str, seconds: float, settles: float, profile: bool) -> dict[str, Any]:
    """Run the loop for a while, and time it."""
    times, own = Times(), loop.Loop(state)
    one_round = times.of("round", own._round)
    loop.Node.hear = times.of("look", loop.Node.hear)  # type: ignore[method-assign]
    ended = threading.Event()
    found: dict[str, Any] = {}
    profiler = cProfile.Profile()

    def watch() -> None:
        time.sleep(settles)
        for took in times.took.values():
            took.clear()
        before, since = time.process_time(), time.monotonic()
        time.sleep(seconds)
        lasted = time.monotonic() - since
        found["of_a_core"] = f"{100 * (time.process_time() - before) / lasted:.3f} %"
        for name, took in times.took.items():
            its = sorted(took) or [0.0]
            found[name] = {
                "a_second": round(len(took) / lasted, 1),
                "median_ms": round(1e3 * statistics.median(its), 2),
                "p99_ms": round(1e3 * its[int(len(its) * 0.99)], 2),
            }
        ended.set()

    def until_ended(now: float) -> float:
        if ended.is_set():
            raise EndedError
        lasts: float = one_round(now)
        return lasts

    own._round = until_ended  # type: ignore[method-assign]
    watching = threading.Thread(target=watch)
    watching.start()
    if profile:
        profiler.enable()
    with suppress(EndedError):
        own.run()
    if profile:
        profiler.disable()
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    watching.join()
    node_ = own._node
    assert node_ is not None
    found["refused"] = {reason: count for reason, count in node_._talk.refused.items() if count}
    found["told"] = {"nodes": len(node_._reported), "claims": sum(map(len, node_._reported.values()))}
    node_.close()
    return found


def main() -> None:
    """Measure and print; each row in namespaces of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=20, help="that talk to it (%(default)s)")
    parser.add_argument("--known", type=int, default=300, help="that have a class there (%(default)s)")
    parser.add_argument("--classes", type=int, default=250, help="with promises (%(default)s)")
    parser.add_argument("--seconds", type=float, default=10, help="(%(default)s)")
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=ROWS, help="(all)")
    parser.add_argument("--profile", action="store_true", help="say where the time goes")
    parser.add_argument("--others", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--member", help=argparse.SUPPRESS)
    parser.add_argument("--within", action="store_true", help=argparse.SUPPRESS)
    told = parser.parse_args()
    if told.others:
        nodes, claims, row = told.others
        others(int(nodes), int(claims), row == "seldom")
    elif told.member:
        (row,) = told.rows
        print(json.dumps({"row": row, **member(told, told.member, row)}), flush=True)
    elif told.within:
        (row,) = told.rows
        for found in measured(told, row):
            print(json.dumps(found), flush=True)
    else:
        own = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        namespaces = ["unshare", *own, "--net", "--mount", "--kill-child", "--fork", "--pid", "--mount-proc"]
        for row in told.rows:
            sh(*namespaces, sys.executable, __file__, *sys.argv[1:], "--within", "--rows", row)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    main()
