"""What the testbed itself costs a flow: an unshaped pod-to-pod flow beside the same path made by hand.

By hand: two namespaces joined by a bridge, in each what the cluster's backend needs, a bridge and a pod
behind a veth pair, nothing else; no daemon runs, whatever a daemon writes is written ahead. So each backend
has a path by hand of its own, and a share of that. Nothing guards that path: the testbed's own part is told
by its path while the plugin's tables are away, by turns, and what they cost by the path with them. A node
that has containers beside Kubernetes also translates their addresses, as with Docker; what that costs the
pods' flows is a row of its own. Two paths of one kind differ by several percent - where in memory and on
which processor things happen to be - so all are made afresh many times. The receiver's bytes count. Needs an
idle machine; backends and the number of rounds are options.

Throughput resolves some percent at best. So what the guard costs a packet is told in microseconds as well,
with `--packets` alone: a pod with a promise sends one packet after the other to a pod of another node, on one
processor, which does all that the kernels of both nodes do with it; with the tables and without, and with
enforcement `fabric` instead of `node`, by turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.studies.packets import End, throughput  # noqa: E402
from testbed.access.place import InNamespace, PodPlace  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.providers.netns.sandbox import Sandbox, node_directory  # noqa: E402
from testbed.scenario import load  # noqa: E402
from testbed.testbed import Testbed  # noqa: E402

ROUNDS = 12
TURNS = 3
SECONDS = 1
GOAL = 0.98
GUARD_GOAL = 0.99
FASTER = 1.1  # what is not wrapped, beside what is
ALIKE = 0.02  # how far two that send the same packets may be apart

# A packet costs at most so much more with the guard (microseconds).
PACKET_GOALS = {"TCP, full": 1.0, "TCP, no data": 1.0, "UDP, 64 bytes": 1.4}
# So few fit a socket's buffer. The 20th quickest batch of so many: less disturbed than most.
PACKETS, BATCHES, QUIETEST = 100, 1000, 20
SEND = f"""
import fcntl, os, socket, struct, sys, termios, time
kind, to = sys.argv[1:]
os.sched_setaffinity(0, {{max(os.sched_getaffinity(0))}})
os.nice(19)  # what the kernel puts off to its own thread goes first, and belongs to the time
if kind.startswith("UDP"):
    sender, packet = socket.socket(type=socket.SOCK_DGRAM), bytes(64)
    sender.connect((to, 9))
else:
    sender = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
    sender.connect((to, 0))
    push, data = (8, 1390) if kind == "TCP, full" else (0, 0)
    packet = struct.pack("!HHIIBBHHH", 4000, 9, 1, 1, 5 << 4, 16 | push, 65535, 0, 0) + bytes(data)
waiting = lambda: any(fcntl.ioctl(sender, termios.TIOCOUTQ, bytes(4)))
send, took = sender.send, []
for _ in range({BATCHES}):
    begun = time.perf_counter_ns()
    for _ in range({PACKETS}):
        send(packet)
    while waiting():  # what the kernel has put off
        os.sched_yield()
    took.append(time.perf_counter_ns() - begun)
print(sorted(took)[{QUIETEST}] / {PACKETS})
"""
PROMISED = ["containers={}", "disturbances=[]", "underlay.rate=40G", "pods.A-1.guarantee=16G"]

WITHOUT_CONTAINERS = ["enforcement=none", "containers={}", "disturbances=[]"]
WITH_CONTAINERS = ["enforcement=none"]
FIRST = "vxlan"  # of which containers are looked at, too
GUARDED, UNGUARDED, CONTAINERS = "testbed", "testbed without the guard", "testbed with container networks"
MAC = "0e:00:00:00:00:0{}"


class Hand(NamedTuple):
    """What joins a node to the other one."""

    links: str  # for ip -batch
    forwarding: str = ""  # for bridge -batch
    overhead: int = 0  # bytes


def vxlan(this: int, other: int) -> Hand:
    """A device, and three entries for the other node."""
    return Hand(
        f"link add vx address {MAC.format(this)} mtu 1450 type vxlan id 1 dev eth0 dstport 8472 nolearning\n"
        "link set vx up\n"
        f"address add 10.1.{this}.0/32 dev vx\n"
        f"neighbour add 10.1.{other}.0 lladdr {MAC.format(other)} dev vx nud permanent\n"
        f"route add 10.1.{other}.0/24 via 10.1.{other}.0 dev vx onlink\n",
        f"fdb add {MAC.format(other)} dev vx dst 192.168.1.{other}\n",
        overhead=50,
    )


def vxlan_miss(this: int, other: int) -> Hand:
    """A device to whose network all pods belong, and what the kernel would have asked for."""
    return Hand(
        f"link add vx address {MAC.format(this)} mtu 1450 type vxlan id 1 dev eth0 dstport 8472 nolearning "
        "proxy l2miss\n"
        "link set vx up\n"
        f"address add 10.1.{this}.0/16 dev vx\n"
        f"neighbour add 10.1.{other}.2 lladdr {MAC.format(other)} dev vx nud permanent\n",
        f"fdb add {MAC.format(other)} dev vx dst 192.168.1.{other}\n",
        overhead=50,
    )


def host_gw(this: int, other: int) -> Hand:
    """A route."""
    return Hand(f"route add 10.1.{other}.0/24 via 192.168.1.{other} dev eth0\n")


def bgp(this: int, other: int) -> Hand:
    """A route in a table of its own, as a BIRD would write it."""
    return Hand(
        "rule add to 10.1.0.0/16 lookup 101 priority 101\n"
        f"route add 10.1.{other}.0/24 via 192.168.1.{other} dev eth0 table 101 proto bird\n"
    )


def ipip(this: int, other: int) -> Hand:
    """A device that takes all that is sent to the node, and a route."""
    return Hand(
        f"link add tunnel mtu 1480 type ipip local 192.168.1.{this}\n"
        "link set tunnel up\n"
        f"address add 10.1.{this}.0/32 dev tunnel\n"
        f"route add 10.1.{other}.0/24 via 192.168.1.{other} dev tunnel onlink\n",
        overhead=20,
    )


BY_HAND: dict[str, Callable[[int, int], Hand]] = {
    "vxlan": vxlan,
    "vxlan-miss": vxlan_miss,
    "host-gw": host_gw,
    "ipip": ipip,
    "bgp": bgp,
}


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--backend", choices=BY_HAND, action="append", help="default: all that run here")
    options.add_argument("--rounds", type=int, default=ROUNDS, help=f"default: {ROUNDS}")
    options.add_argument("--packets", action="store_true", help="only what a packet costs")
    asked = options.parse_args()
    packets(asked.rounds)
    if asked.packets:
        return
    backends = [name for name in asked.backend or BY_HAND if runs_here(name)]
    rates: dict[str, list[float]] = {}
    for _ in range(asked.rounds):
        for name, values in one_round(backends).items():
            rates.setdefault(name, []).append(statistics.median(values))
    print(
        f"{asked.rounds} times fresh paths, on each {TURNS} flows of {SECONDS} s by turns; "
        "Gbit/s of payload: median (least to most), and the median share of the path by hand"
    )
    for name, values in rates.items():
        beside = by_hand_of(next(one for one in backends if name.startswith(f"{one}: ")))
        span = f"({min(values):.2f} to {max(values):.2f})"
        print(f"{name:46} {statistics.median(values):6.2f} {span:17} {share(values, rates[beside]):.3f}")
    for name in backends:
        with_guard, without = rates[guarded(name)], rates[in_testbed(name, UNGUARDED)]
        own, guard = share(without, rates[by_hand_of(name)]), share(with_guard, without)
        print(f"{name}: testbed's own part {own:.3f}, goal {GOAL}; guard's {guard:.3f}, goal {GUARD_GOAL}")
    compare(rates)


def carried(source: PodPlace, destination: PodPlace) -> float:
    """Return what one flow of TCP carries, Gbit/s."""
    return throughput(source, End.of(destination), SECONDS).bits_per_second / 1e9


def packets(rounds: int) -> None:
    """Print what the guard costs a packet, and what `fabric` costs it over `node`."""
    added: dict[tuple[str, str], list[float]] = {}
    bare: dict[str, list[float]] = {}
    with ExitStack() as stack:
        testbeds = {one: made(FIRST, [f"enforcement={one}", *PROMISED]) for one in ("node", "fabric")}
        flows: dict[str, list[float]] = {name: [] for name in testbeds}
        for testbed in testbeds.values():
            stack.enter_context(testbed.running())
        for _ in range(rounds):
            for name, testbed in testbeds.items():
                flows[name].append(carried(testbed.pods["A-1"], testbed.pods["A-4"]))
        print(f"a flow with fabric: {share(flows['fabric'], flows['node']):.3f} of what it is with node")
        for testbed in testbeds.values():
            drop = "table ip first { chain first { type filter hook prerouting priority -300; drop; }\n }\n"
            testbed.pods["A-4"].run(["nft", "-f", "-"], stdin=drop)  # nothing is answered
        for _ in range(rounds):
            guarded, fabric = cost(testbeds["node"]), cost(testbeds["fabric"])
            with without_guard(testbeds["node"]):
                unguarded = cost(testbeds["node"])
            for kind in PACKET_GOALS:
                bare.setdefault(kind, []).append(unguarded[kind])
                added.setdefault((kind, "the guard"), []).append(guarded[kind] - unguarded[kind])
                added.setdefault((kind, "fabric"), []).append(fabric[kind] - guarded[kind])
    print(
        f"microseconds a packet, {rounds} turns: median without the guard; and what the guard adds, "
        "and fabric to that"
    )
    for (kind, what), found in added.items():
        found.sort()
        quarter = len(found) // 4
        span = f"(middle half {found[quarter]:.2f} to {found[-1 - quarter]:.2f})"
        goal = f", goal {PACKET_GOALS[kind]}" if what == "the guard" else ""
        without = statistics.median(bare[kind])
        print(f"{kind:14} {without:5.2f} {what:9} {statistics.median(found):5.2f} {span}{goal}")


def cost(testbed: Testbed) -> dict[str, float]:
    """Return what a packet of each kind takes, microseconds."""
    sender, receiver = testbed.pods["A-1"], testbed.pods["A-4"]
    argv = ["/usr/bin/python3", "-c", SEND]
    return {kind: float(sender.run([*argv, kind, receiver.address]).stdout) / 1000 for kind in PACKET_GOALS}


def compare(rates: dict[str, list[float]]) -> None:
    """Print how backends are beside each other, in the testbed and by hand, where the two are there."""
    for one, other, goal in (
        ("host-gw", "vxlan", f"at least {FASTER}"),
        ("bgp", "host-gw", f"within {ALIKE} of 1"),
    ):
        pairs = [[of(name) for name in (one, other)] for of in (guarded, by_hand_of)]
        if all(name in rates for pair in pairs for name in pair):
            parts = [f"{share(rates[a], rates[b]):.3f}" for a, b in pairs]
            told = f"{parts[0]}, by hand {parts[1]}; goal: {goal}, or an explanation"
            print(f"{one} as a share of {other}: {told}")


def share(values: Sequence[float], beside: Sequence[float]) -> float:
    """Return the median share of the one in the other, round by round."""
    return statistics.median(a / b for a, b in zip(values, beside, strict=True))


def by_hand_of(backend: str) -> str:
    """Return what a backend's path by hand is called."""
    return f"{backend}: by hand"


def guarded(backend: str) -> str:
    """Return what a backend's path is called as the plugin makes it."""
    return in_testbed(backend, GUARDED)


def in_testbed(backend: str, kind: str) -> str:
    """Return what a backend's path in a testbed is called."""
    return f"{backend}: {kind}"


def made(backend: str, changes: Sequence[str]) -> Testbed:
    """Return a testbed, not yet up. Raises LookupError for a backend that this machine cannot run."""
    scenario = ROOT / "scenarios" / "kubernetes.yaml"
    return assemble(load(scenario, [*changes, f"clusters.a.backend={backend}"]), "netns", "cni")


def runs_here(backend: str) -> bool:
    """Tell whether this machine can run a backend, and say why if it cannot."""
    try:
        made(backend, WITHOUT_CONTAINERS)
    except LookupError as error:
        print(f"not run: {backend}: {str(error.args[0]).partition(chr(10))[0]}")
        return False
    return True


def one_round(backends: Sequence[str]) -> dict[str, list[float]]:
    """Make all paths afresh and return what each carried."""
    testbeds = {guarded(name): made(name, WITHOUT_CONTAINERS) for name in backends}
    if FIRST in backends:
        testbeds[in_testbed(FIRST, CONTAINERS)] = made(FIRST, WITH_CONTAINERS)
    with ExitStack() as stack:
        pairs: dict[str, tuple[PodPlace, PodPlace]] = {}
        for name in backends:
            box = Sandbox.start("path.bench")
            stack.callback(box.stop)
            pairs[by_hand_of(name)] = by_hand(box, BY_HAND[name])
        for name, testbed in testbeds.items():
            stack.enter_context(testbed.running())
            pairs[name] = testbed.pods["A-1"], testbed.pods["A-4"]
        rates: dict[str, list[float]] = {name: [] for name in pairs}
        for _ in range(TURNS):
            for name, (source, destination) in pairs.items():
                rates[name].append(carried(source, destination))
            for name in backends:
                with without_guard(testbeds[guarded(name)]):
                    found = carried(*pairs[guarded(name)])
                rates.setdefault(in_testbed(name, UNGUARDED), []).append(found)
        return rates


@contextmanager
def without_guard(testbed: Testbed) -> Iterator[None]:
    """Take the plugin's tables off the workers, and put them back."""
    kept = {}
    for node in testbed.nodes.values():
        tables = [
            entry["table"] for entry in node.run(["nft", "-j", "list", "tables"]).json()["nftables"][1:]
        ]
        named = [[table["family"], table["name"]] for table in tables if table["name"] == "concorde"]
        kept[node] = "".join(node.run(["nft", "list", "table", *name]).stdout for name in named)
        for name in named:
            node.run(["nft", "delete", "table", *name])
    yield
    for node, ruleset in kept.items():
        node.run(["nft", "-f", "-"], stdin=ruleset)


def by_hand(box: Sandbox, join: Callable[[int, int], Hand]) -> tuple[PodPlace, PodPlace]:
    """Make the path with nothing but ``ip`` and ``bridge``; return its two pods."""
    box.add_nodes(["n1", "n2"])
    lines = ["link add sw type bridge", "link set sw up"]
    for name in ("n1", "n2"):
        lines += [
            f"link add p-{name} type veth peer name eth0 netns {node_directory(name)}/ns/net",
            f"link set p-{name} master sw up",
        ]
    box.switch.run(["ip", "-batch", "-"], stdin="\n".join(lines) + "\n")
    pods = []
    for this, other in ((1, 2), (2, 1)):
        node, hand = box.node(f"n{this}"), join(this, other)
        mtu = 1500 - hand.overhead
        node.run(
            ["ip", "-batch", "-"],
            stdin=f"address add 192.168.1.{this}/24 dev eth0\nlink set eth0 up\n{hand.links}"
            f"link add name bridge0 type bridge\n"
            f"link set bridge0 mtu {mtu} up\n"
            f"address add 10.1.{this}.1/24 dev bridge0\n"
            "netns add pod\n"
            f"link add name veth0 mtu {mtu} type veth peer name eth0 mtu {mtu} netns pod\n"
            "link set veth0 master bridge0 up\n",
        )
        if hand.forwarding:
            node.run(["bridge", "-batch", "-"], stdin=hand.forwarding)
        node.run(["tee", "/proc/sys/net/ipv4/ip_forward"], stdin="1")
        pod = InNamespace("pod", node, "/run/netns/pod", f"10.1.{this}.2", "veth0")
        pod.run(
            ["ip", "-batch", "-"],
            stdin=f"address add {pod.address}/24 dev eth0\nlink set eth0 up\n"
            f"route add default via 10.1.{this}.1\n",
        )
        pods.append(pod)
    return pods[0], pods[1]


if __name__ == "__main__":
    main()
