"""A promise at its receiver while agents, what is between them and the kernel's state fail, and under attack.

The nodes, pods and noise of `benchmarks/fabric.py`. A promised flow and best effort go on all the time.

`--events N`: random ones, each for a second and then healed, half of them beside TCP, half beside UDP. The
promised flow's next second, and its least 100 ms from the event until two seconds after healing, are of the
promise; best effort is back once a twentieth of a second has 0.8 of what there was before. Who has lost its
agent sends at the safe rate 600 ms later, or less. At the end `concorde reconcile` must find nothing.

`--attacks`: datagrams forged by a pod and by a machine on the wire; grants and reports replayed; an agent
that lies about what waits; nodes without agent, and without anything of ours. Needs what the other one does.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugin")]

from benchmarks.fabric import INCAST, NOISES, PROMISE, READY_S, Counted, Lab, lab  # noqa: E402
from testbed.access.components import Component  # noqa: E402
from testbed.access.place import Place  # noqa: E402
from testbed.resources import BUILT_PLUGIN  # noqa: E402

WORKERS = ("worker-01", "worker-02", "worker-03", "worker-04")
OTHERS = ("worker-02", "worker-03")
AGENTS = 7473
BEFORE_S, FOR_S, AFTER_S, BACK = 0.7, 1.0, 2.0, 0.8
EVENT_S = BEFORE_S + FOR_S + AFTER_S + 0.9
ATTACK_S = 4.0
HELD, HELD_IN_EVENTS = 0.95, 0.9
SIGNAL = 'pid=$(cat "$1/pid"); kill -"$2" $pid $(cat /proc/$pid/task/$pid/children)'
CUT = """
table inet cut {{
    chain coming {{ type filter hook prerouting priority -400; {coming} drop; }}
    chain leaving {{ type filter hook output priority -400; {leaving} drop; }}
}}
"""
# Takes from the wire what agents say, and says it again: to whom, as from whom.
AGAIN = """
import socket, struct, sys, time
sort, until, *ends = sys.argv[1:]
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
heard = None
if sort == "again":
    heard = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
    heard.setblocking(False)
kept, sent = [], 0
while time.monotonic() < float(until):
    while heard:
        try:
            packet = heard.recv(2048)
        except OSError:
            break
        if packet[9] == 17 and struct.unpack_from("!HH", packet, 20) == (7473, 7473):
            kept = [*kept[-400:], packet]
            raw.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
            sent += 1
    if heard:
        for packet in kept[::40]:
            raw.sendto(packet, (socket.inet_ntoa(packet[16:20]), 0))
            sent += 1
    for source in ends:
        for to in ends:
            if source == to or heard:
                continue
            seen = bytes(8), sent + 1, bytes(8), 1
            head = struct.pack("!2sBB8sQ8sQBBB", b"CF", 1, 1 + sent % 2, *seen, 0, 1, 1)
            body = head + bytes(20) + struct.pack("!HHQ", 400, 0x7000, 8000)
            ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(body), 0, 0, 64, 17, 0,
                             socket.inet_aton(source), socket.inet_aton(to))
            try:
                raw.sendto(ip + struct.pack("!HHHH", 7473, 7473, 8 + len(body), 0) + body, (to, 0))
            except OSError:
                pass
            sent += 1
    time.sleep(0.001)
print(sent)
"""
# An agent that says that each class sends very much, and that more waits; if told so, that all of the link is
# promised to them, or that there are so many more, each with a promise of 1 bit/s.
LIAR = """
import os, sys
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from concorde.fabric import loop, sending
from concorde.fabric.division import Claim
said, seen = sending.Sending._claim, sending.Sending.look
more = dict.fromkeys(range(0x1000, 0x1000 + int(sys.argv[4])), Claim(1, 1e12, 1 << 31, False))

def claim(self, node, minor, part):
    guarantee = float(sys.argv[3]) or said(self, node, minor, part).guarantee
    return Claim(guarantee, 1e12, 1 << 31, False)

def look(self, now):
    return {node: {**claims, **more} for node, claims in seen(self, now).items()}

sending.Sending._claim, sending.Sending.look = claim, look
loop.run("/run/concorde", os.pipe()[0])
"""


class Failing:
    """A lab in which things fail."""

    def __init__(self, own: Lab) -> None:
        self.own = own
        self.nodes = own.testbed.nodes
        self.addresses = {name: str(own.testbed.addressing.address(name)) for name in WORKERS}

    def agent(self, node: str) -> Component:
        """The agent of a node."""
        assert self.own.testbed.agents is not None
        return next(one for one in self.own.testbed.agents.components if one.place.name == node)

    def program(self, node: str, *words: str) -> str:
        """What a verb of the plugin's program says."""
        argv = ["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", *words]
        return self.nodes[node].run(argv, check=False).stdout

    def killed(self, node: str) -> Callable[[], None]:
        """An agent ends."""
        self.agent(node).kill()
        return self.agent(node).start

    def restarted(self, node: str) -> Callable[[], None]:
        """An agent ends and begins again."""
        self.agent(node).restart()
        return lambda: None

    def stopped(self, node: str) -> Callable[[], None]:
        """An agent gets no processor."""
        directory = self.agent(node).directory

        def signal(name: str) -> None:
            self.nodes[node].run(["sh", "-c", SIGNAL, "sh", directory, name])

        signal("STOP")
        return lambda: signal("CONT")

    def cut(self, nodes: Sequence[str], what: str) -> Callable[[], None]:
        """Nothing goes between nodes, or nothing of agents."""
        for node in nodes:
            others = ", ".join(self.addresses[name] for name in nodes if name != node)
            coming, leaving = f"ip saddr {{ {others} }} {what}", f"ip daddr {{ {others} }} {what}"
            self._nft(node, "-f", "-", stdin=CUT.format(coming=coming, leaving=leaving))

        def heal() -> None:
            for node in nodes:
                self._nft(node, "delete", "table", "inet", "cut")

        return heal

    def deleted(self, node: str, what: str) -> Callable[[], None]:
        """Something of the kernel's state is gone; whoever looks after the node is to see it."""
        if what == "root":
            self.nodes[node].run(["tc", "qdisc", "delete", "dev", "eth0", "root"])
        else:
            self._nft(
                node,
                *("flush map ip concorde peers" if what == "map" else "delete table ip concorde").split(),
            )
        return lambda: None

    def _nft(self, node: str, *words: str, stdin: str = "") -> None:
        self.nodes[node].run(["nft", *words], stdin=stdin)

    def event(self, chance: random.Random) -> tuple[str, Sequence[str], Callable[[], Callable[[], None]]]:
        """One of all that may happen: in words, whose agent it takes, and how it is made to happen."""
        node = chance.choice(WORKERS)
        pair = chance.choice(list(combinations(WORKERS, 2)))
        without_flow = chance.choice(
            [one for one in combinations(WORKERS, 2) if set(one) != {"worker-01", "worker-04"}]
        )
        port = f"udp dport {AGENTS}"
        return chance.choice(
            [
                (f"agent of {node} killed", [node], lambda: self.killed(node)),
                (f"agent of {node} stopped", [node], lambda: self.stopped(node)),
                (f"agent of {node} restarted", [], lambda: self.restarted(node)),
                (f"agents of {' and '.join(pair)} cut", [], lambda: self.cut(pair, port)),
                (f"{' and '.join(without_flow)} cut", [], lambda: self.cut(without_flow, "")),
                ("all agents cut", [], lambda: self.cut(WORKERS, port)),
                (f"root of {node} deleted", [], lambda: self.deleted(node, "root")),
                (f"map of {node} deleted", [], lambda: self.deleted(node, "map")),
                (f"table of {node} deleted", [], lambda: self.deleted(node, "table")),
            ]
        )

    @contextmanager
    def traffic(self, noise: str, seconds: float) -> Iterator[float]:
        """All that is sent; when the promised flow has been there for a while."""
        begin = time.monotonic() + READY_S
        self.own.noise(noise, begin, begin + seconds)
        self.own.send("promised", "receiver", "tcp", 0, begin, begin + seconds)
        time.sleep(begin + 2 - time.monotonic())
        yield begin + seconds
        time.sleep(max(begin + seconds - time.monotonic(), 0))

    def safe(self, node: str) -> float:
        """The safe rate of a node (bits per second of the wire)."""
        asked = ["tc", "class", "show", "dev", "eth0", "classid", "c0de:fffb"]
        number, unit = re.findall(r" ceil (\d+)([KMG]?)bit", self.nodes[node].run(asked).stdout)[0]
        return float(number) * {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9}[unit]

    def happens(self, noise: str, chance: random.Random) -> dict[str, Any]:
        """Let something happen and heal it; what became of everybody."""
        words, without_agent, do = self.event(chance)
        end = time.monotonic() + BEFORE_S + FOR_S + AFTER_S + 0.6
        with ExitStack() as stack:
            counted = stack.enter_context(self.own.counting(end))
            nodes = {
                one: stack.enter_context(self.own.counting(end, one))
                for one in without_agent
                if one in OTHERS
            }
            time.sleep(BEFORE_S)
            at = time.monotonic()
            heal = do()
            done = time.monotonic()
            time.sleep(max(at + FOR_S - done, 0))
            heal()
            healed = time.monotonic()
            time.sleep(max(healed + AFTER_S + 0.2 - time.monotonic(), 0))
        found = self._judged(counted, noise, at, healed)
        for node, own in nodes.items():
            size = own.between("eth0", done + 0.6, at + FOR_S)[0] if at + FOR_S > done + 0.8 else 0
            rate = 8 * size / max(at + FOR_S - done - 0.6, 0.1)
            found["of_safe_rate"] = round(rate / self.safe(node), 2)
        return {"event": words, "beside": noise, **found}

    def _judged(self, counted: Counted, noise: str, at: float, healed: float) -> dict[str, Any]:
        own = self.own
        promise = PROMISE * own.rate
        to, others = own.interface("receiver"), own.interface("sink")
        before = counted.rate(others, noise, at - BEFORE_S + 0.1, at)
        last = counted.lines[-1]["at"]
        back = counted.reached(others, noise, BACK * before, healed, last)
        return {
            "next_second": round(counted.rate(to, "tcp", at, at + 1) / promise, 2),
            "least_100_ms": round(counted.least(to, "tcp", at, last - 0.1) / promise, 2),
            "back_s": round(back, 2),
        }

    def reconciled(self) -> list[str]:
        """What `concorde reconcile` finds on each node."""
        said = {node: self.program(node, "reconcile").strip() for node in WORKERS}
        return [f"{node}: {words}" for node, words in said.items() if words != "nothing to repair"]

    def attacked(self, name: str, noise: str) -> dict[str, Any]:
        """Let an attack go on for a while beside traffic; before and during it."""
        with self.traffic(noise, ATTACK_S * 2 + 3):
            begin = time.monotonic()
            end = begin + 2 * ATTACK_S
            with self.own.counting(end) as counted:
                time.sleep(ATTACK_S - 0.5)
                undo = self.attack(name, end)
                time.sleep(max(end - time.monotonic(), 0))
            undo()
        to, others = self.own.interface("receiver"), self.own.interface("sink")
        at, promise = begin + ATTACK_S, PROMISE * self.own.rate
        before = counted.rate(others, noise, begin, begin + ATTACK_S - 0.6)
        return {
            "attack": name,
            "beside": noise,
            "mean": round(counted.rate(to, "tcp", at, end) / promise, 2),
            "least_100_ms": round(counted.least(to, "tcp", at, end - 0.1) / promise, 2),
            "best_effort_of_before": round(counted.rate(others, noise, at, end) / before, 2),
        }

    def attack(self, name: str, until: float) -> Callable[[], None]:
        """Begin it; what ends it."""
        ends = list(self.addresses.values())
        python = ["/usr/bin/python3", "-I", "-c"]
        if name in ("forged by a pod", "forged on the wire", "replayed on the wire"):
            at: Place = self.own.testbed.pods["small"] if name.endswith("pod") else self.nodes["worker-03"]
            sort = "again" if name.startswith("replayed") else "forged"
            process = self.own.run(at, [*python, AGAIN, sort, str(until), *ends])
            said = self.own.said
            return lambda: self._ended(process.wait(10), said)
        if name in LIARS:
            self.agent("worker-02").kill()
            share, more = LIARS[name]
            words = [str(ROOT / "plugin"), str(ROOT), str(self.own.rate * share), str(more)]
            liar = self.own.run(self.nodes["worker-02"], ["/usr/bin/python3", "-c", LIAR, *words])

            def honest() -> None:
                liar.kill()
                self.agent("worker-02").start()

            return honest
        back = self.killed("worker-02")
        if name != "no agent":
            self.deleted("worker-02", "root")
            self.deleted("worker-02", "table")
        return back

    @staticmethod
    def _ended(status: int | None, said: Path) -> None:
        words = said.with_suffix(".err").read_text()
        assert status == 0, words


# What an agent says is promised to each of its classes (of the link), and how many more it says that it has.
# No report has room for many more than 900.
LIARS = {
    "an agent that lies": (0, 0),
    "an agent that lies of promises": (1, 0),
    "an agent of 100 promises": (0, 100),
    "an agent of 900 promises": (0, 900),
}
ATTACKS = (
    "forged by a pod",
    "forged on the wire",
    "replayed on the wire",
    *LIARS,
    "no agent",
    "nothing of ours",
)


def events(failing: Failing, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Let random things happen; what became of each, and at the end of all."""
    chance, found = random.Random(seed), []
    for noise in NOISES:
        left = count // 2
        while left:
            with failing.traffic(noise, 3 + min(left, 20) * EVENT_S) as end:
                while left and time.monotonic() + EVENT_S < end:
                    left -= 1
                    found.append(failing.happens(noise, chance))
                    yield found[-1]
    yield {
        "events": len(found),
        "seed": seed,
        "next_second_at_0.9": sum(one["next_second"] >= HELD_IN_EVENTS for one in found),
        "least_next_second": min(one["next_second"] for one in found),
        "back_within_2_s": sum(one["back_s"] <= AFTER_S for one in found),
        "most_of_safe_rate": max((one.get("of_safe_rate", 0) for one in found), default=0),
        "reconcile": failing.reconciled(),
    }


def main() -> None:
    """Let things fail, and print what became of them, a line of JSON each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=float, default=200e6, help="of links, bits per second (%(default)g)")
    parser.add_argument("--events", type=int, default=0, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the events (%(default)s)")
    parser.add_argument("--attacks", nargs="*", choices=ATTACKS, help="these; all, without a name")
    told = parser.parse_args()
    with lab("fabric", told.rate, INCAST) as own:
        failing = Failing(own)
        for name in [] if told.attacks is None else told.attacks or ATTACKS:
            for noise in NOISES:
                print(json.dumps(failing.attacked(name, noise)), flush=True)
        for line in events(failing, told.events, told.seed) if told.events else ():
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
