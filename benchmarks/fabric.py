"""A promise that reaches its receiver, beyond scenario `incast`: how soon, at what cost, and when changed.

On links of 200 Mbit/s (`--rate`), with enforcement `node` and `fabric` by turns; beside TCP, four streams of
each of two nodes, and UDP of 0.95 of the link each. All rates are layer 2 in full frames of the receiving
node's link, by the counters of its pods' interfaces, every 10 ms.

    returns  the promise, half of the link, comes back to a full receiver: its first 100 ms, of the promise
    use      of the link, with the promise idle, half used, full
    stops    how long after a promised flow stops until the others have 0.95 of what they have without it
    bursts   of the promise, beside UDP of 1.4 of the link in all that is on for 30 ms and off for 15
    many     a flow against 1, 10 and 100 of another pod, 0.45 of the link promised to each: of it
    rtt      of a promised small pod's packets, meanwhile
    agent    processor time of each node's agent, of one core: beside noise, little traffic, and asleep
    change   of a running promise: how long it takes, lost packets, least 100 ms of promised pods, of promises

Needs root or user namespaces, ping, and an idle machine.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugin")]

from testbed.access.place import Place, Process  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.orchestrators.cni import ATTACHMENTS  # noqa: E402
from testbed.resources import BUILT_PLUGIN  # noqa: E402
from testbed.scenario import load  # noqa: E402
from testbed.testbed import Testbed  # noqa: E402
from tests.waiting import until  # noqa: E402

TRAFFIC = Path(__file__).resolve().with_name("fabric_traffic.py")
NOISES = ("tcp", "udp")
ROWS = ("incast", "bursts", "many", "change")
CHANGED = {"none": (), "node": ("egress",), "fabric": ("egress", "ingress")}  # what promises there are
BURST_S, PAUSE_S, BURSTS_S = 0.030, 0.015, 8.0
PORT, EVERY = 5300, 0.01
READY_S, BEFORE_S = 1.0, 1.5  # to connect; of noise alone
ON_S, OFF_S, STEADY_S, SETTLED_S = 0.6, 0.9, 2.0, 0.5
FIRST_S, WINDOW_S, MANY_S, CHANGE_S = 0.1, 0.05, 4.0, 1.0
# A full frame of an overlay's packets, and what is payload of it, by protocol (bytes); what is counted at a
# pod's interface besides payload, a packet.
FRAME, PAYLOAD, COUNTED = 1514, {"tcp": 1398, "udp": 1400}, {"tcp": 66, "udp": 42}
DATAGRAM_FRAME = 1400 + 42 + 50
# Shares of the link.
PROMISE, SMALL, MANY, NOISE = 0.5, 0.02, 0.45, 0.95
SCENARIO = """\
name: fabric
title: "Whoever sends to one node"
underlay: {{rate: {rate}}}
nodes: {{master-01: , worker-01: , worker-02: , worker-03: , worker-04: }}
clusters:
  a: {{master: master-01, workers: [worker-01, worker-02, worker-03, worker-04], pod_cidr: 172.16.0.0/16}}
enforcement: {enforcement}
pods:
{pods}
flows:
  - {{name: promised, from: promised, to: receiver, duration: 1}}
"""


class Lab:
    """A testbed that is up, and what sends in it."""

    def __init__(self, testbed: Testbed, rate: float, place: Path) -> None:
        self.testbed, self.rate, self.place = testbed, rate, place
        self._started = 0
        for pod in self.at("worker-04"):
            self.start(self.testbed.pods[pod], "sink", PORT)
            until(self.said.read_text)

    def at(self, node: str) -> list[str]:
        """The pods of a node."""
        return [name for name, pod in self.testbed.scenario.pods.items() if pod.node == node]

    def start(self, place: Place, *words: object) -> Process:
        """Start a part of the traffic, or another program if it says so."""
        return self.run(place, ["/usr/bin/python3", "-I", str(TRAFFIC), *map(str, words)])

    def run(self, place: Place, argv: Sequence[str]) -> Process:
        """Start a program; what it says is in `said`."""
        self._started += 1
        name = self.place / str(self._started)
        self.said = name.with_suffix(".out")
        return place.start(list(argv), stdout=self.said, stderr=name.with_suffix(".err"))

    def send(self, pod: str, to: str, how: str, share: float, *times: float, streams: int = 1) -> Process:
        """Let a pod send a share of the link (layer 2); 0 is all that TCP takes."""
        of_frame = PAYLOAD["tcp"] / FRAME if how == "tcp" else 1400 / DATAGRAM_FRAME
        rate = int(share * self.rate * of_frame)
        words = [self.testbed.pods[to].address, PORT, *([streams] if how == "tcp" else []), rate, *times]
        return self.start(self.testbed.pods[pod], how, *words)

    def noise(self, how: str, *times: float) -> None:
        """Let the pods without a promise send."""
        for pod in ("other-1", "other-2"):
            if how == "tcp":
                self.send(pod, "sink", how, 0, *times, streams=4)
            else:
                self.send(pod, "sink", how, NOISE, *times)

    @contextmanager
    def counting(self, until: float, node: str = "worker-04") -> Iterator[Counted]:
        """Count what comes to a node's pods until a time; the counts are there after the block."""
        counter, counted = self.start(self.testbed.nodes[node], "count", until, EVERY), Counted()
        said = self.said
        yield counted
        counter.wait(max(until - time.monotonic(), 0) + 20)
        counted.lines = [json.loads(line) for line in said.read_text().splitlines()]

    def interface(self, pod: str) -> str:
        """A pod's end on its node."""
        return self.testbed.pods[pod].host_interface


class Counted:
    """What interfaces have received and sent, as often as it was looked at."""

    lines: Sequence[Mapping[str, Any]] = ()

    def between(self, interface: str, begin: float, until: float, sent: bool = True) -> tuple[int, int]:
        """Bytes and packets that it has sent, to the pod, or received."""
        inside = [line for line in self.lines if begin <= line["at"] <= until]
        first, last, at = inside[0][interface], inside[-1][interface], 2 if sent else 0
        return last[at] - first[at], last[at + 1] - first[at + 1]

    def rate(self, interface: str, how: str, begin: float, until: float) -> float:
        """What it has sent to its pod, in bits per second of layer 2."""
        inside = [line["at"] for line in self.lines if begin <= line["at"] <= until]
        size, packets = self.between(interface, begin, until)
        frame = FRAME if how == "tcp" else DATAGRAM_FRAME
        wire = (size - COUNTED[how] * packets) * frame / PAYLOAD[how]
        return 8 * wire / float(inside[-1] - inside[0])

    def least(self, interface: str, how: str, begin: float, until: float) -> float:
        """The least rate of 100 ms."""
        return min(self.slots(interface, how, begin, until))

    def slots(self, interface: str, how: str, begin: float, until: float) -> list[float]:
        """The rates of 100 ms each."""
        return [
            self.rate(interface, how, begin + at * 0.1 - 0.002, begin + (at + 1) * 0.1 + 0.008)
            for at in range(int((until - begin) / 0.1 + 1e-6))
        ]

    def reached(self, interface: str, how: str, rate: float, since: float, until: float) -> float:
        """After how many seconds an interface first has a rate for a while; infinite if never."""
        times = [line["at"] for line in self.lines if since <= line["at"] <= until - WINDOW_S - EVERY]
        for at in times:
            if self.rate(interface, how, at, at + WINDOW_S + 0.002) >= rate:
                return float(at) - since
        return float("inf")


@contextmanager
def lab(enforcement: str, rate: float, pods: Mapping[str, tuple[str, float]]) -> Iterator[Lab]:
    """Bring up the nodes with these pods: each on which, and what share of the link it is promised."""
    lines = []
    for name, (node, share) in pods.items():
        word = "ingress" if node == "worker-04" else "guarantee"
        is_kept = share and (word == "guarantee" or enforcement == "fabric")
        promised = f", {word}: {int(share * rate)}" if is_kept else ""
        lines.append(f"  {name}: {{cluster: a, node: {node}{promised}}}")
    text = SCENARIO.format(rate=int(rate), enforcement=enforcement, pods="\n".join(lines))
    with TemporaryDirectory() as place:
        file = Path(place, "scenario.yaml")
        file.write_text(text)
        with assemble(load(file), "netns", "cni").running() as testbed:
            yield Lab(testbed, rate, Path(place))


INCAST = {
    "promised": ("worker-01", PROMISE),
    "small": ("worker-01", SMALL),
    "other-1": ("worker-02", 0.0),
    "other-2": ("worker-03", 0.0),
    "receiver": ("worker-04", PROMISE),
    "echo": ("worker-04", SMALL),
    "sink": ("worker-04", 0.0),
}
TWO = {
    "promised": ("worker-01", MANY),
    "many": ("worker-02", MANY),
    "receiver": ("worker-04", MANY),
    "receives-many": ("worker-04", MANY),
}


def incast(own: Lab, noise: str, trials: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """The promise returns again and again, then is idle, half used and full."""
    begin = time.monotonic() + READY_S
    first = begin + BEFORE_S
    idle = first + trials * (ON_S + OFF_S)
    phases = {"idle": idle, "half": idle + STEADY_S, "full": idle + 2 * STEADY_S}
    end = idle + 3 * STEADY_S
    own.noise(noise, begin, end)
    own.send("promised", "receiver", "tcp", 0, first, idle, ON_S, OFF_S)
    own.send("promised", "receiver", "tcp", PROMISE / 2, phases["half"], phases["full"])
    own.send("promised", "receiver", "tcp", 0, phases["full"], end)
    seconds = end - time.monotonic()
    asked = ["ping", "-n", "-i", "0.01", "-s", "200", "-c", str(int(seconds / 0.01)), "-w", str(int(seconds))]
    pinged = own.run(own.testbed.pods["small"], [*asked, own.testbed.pods["echo"].address])
    said = own.said
    took = processor(own)
    with own.counting(end) as counted:
        time.sleep(max(end - time.monotonic(), 0))
    spent = {node: (after - took[node]) / seconds for node, after in processor(own).items()}
    pinged.wait(10)
    to, others = own.interface("receiver"), own.interface("sink")
    windows = [first + at * (ON_S + OFF_S) for at in range(trials)]
    back = [counted.rate(to, "tcp", at, at + FIRST_S + 0.002) / (PROMISE * own.rate) for at in windows]
    yield (
        "returns",
        {
            "first_100_ms": [round(one, 2) for one in back],
            "at_0.9": sum(one >= 0.9 for one in back),
            "of": trials,
            "rest_least": round(
                min(counted.least(to, "tcp", at + 0.1, at + ON_S - 0.01) for at in windows)
                / PROMISE
                / own.rate,
                2,
            ),
        },
    )
    use = {}
    for name, at in phases.items():
        part = at + SETTLED_S, at + STEADY_S
        use[name] = (counted.rate(to, "tcp", *part) + counted.rate(others, noise, *part)) / own.rate
    yield "use", {name: round(one, 3) for name, one in use.items()}
    alone = counted.rate(others, noise, idle + SETTLED_S, phases["half"])
    after = [counted.reached(others, noise, 0.95 * alone, at + ON_S, at + ON_S + OFF_S) for at in windows]
    yield "stops", {"median_ms": round(1e3 * statistics.median(after)), "most_ms": round(1e3 * max(after), 0)}
    yield "rtt", round_trips(said.read_text())
    if spent:
        yield "agent", {node: f"{100 * part:.2f} %" for node, part in spent.items()}


def round_trips(said: str) -> dict[str, Any]:
    """What ping says."""
    times = sorted(float(one) for one in re.findall(r"time=([\d.]+) ms", said))
    lost = re.search(r"([\d.]+)% packet loss", said)
    if not times:
        return {"answers": 0}
    return {
        "answers": len(times),
        "p50_ms": times[len(times) // 2],
        "p99_ms": times[int(len(times) * 0.99)],
        "most_ms": times[-1],
        "lost_percent": float(lost[1]) if lost else None,
    }


def processor(own: Lab) -> dict[str, float]:
    """The processor time of each node's agent and all its children so far (seconds); none without agents."""
    agents = own.testbed.agents.components if own.testbed.agents else ()
    return {one.place.name: _spent(one.place, one.directory) for one in agents}


# Of living processes to the nanosecond; of the agent's ended children, looks and scrapes, in ticks.
SPENT = """
pid=$(cat "$1/pid")
cat /proc/$pid/schedstat
for child in $(cat /proc/$pid/task/$pid/children); do cat /proc/$child/schedstat; done
ended=$(sed 's/.*) //' /proc/$pid/stat | cut -d ' ' -f 14,15)
echo $(( (${ended% *} + ${ended#* }) * (1000000000 / $(getconf CLK_TCK)) ))
"""


def _spent(place: Place, directory: str) -> float:
    shown = place.run(["sh", "-c", SPENT, "sh", directory]).stdout
    return sum(int(line.split()[0]) for line in shown.splitlines()) / 1e9


def asleep(own: Lab) -> dict[str, Any]:
    """What agents take while nothing is sent."""
    time.sleep(8)
    return shares(own, 15)


def talking(own: Lab) -> dict[str, Any]:
    """What agents take while everybody sends a little: rounds alone, without others' packets in them."""
    begin, share = time.monotonic() + READY_S, 0.005
    for pod, to in (("promised", "receiver"), ("other-1", "sink"), ("other-2", "sink")):
        own.send(pod, to, "tcp", share, begin, begin + 9)
    time.sleep(READY_S + 1)
    return shares(own, 8)


def shares(own: Lab, seconds: float) -> dict[str, str]:
    """What each node's agent takes of a core, from now on for so long."""
    before = processor(own)
    time.sleep(seconds)
    return {node: f"{100 * (at - before[node]) / seconds:.3f} %" for node, at in processor(own).items()}


def bursts(own: Lab) -> dict[str, Any]:
    """The promise beside what comes and goes within few rounds of an agent."""
    begin = time.monotonic() + READY_S
    end = begin + BURSTS_S
    own.send("promised", "receiver", "tcp", 0, begin, end)
    own.noise("udp", begin, end, BURST_S, PAUSE_S)
    with own.counting(end) as counted:
        time.sleep(max(end - time.monotonic(), 0))
    to, promised = own.interface("receiver"), PROMISE * own.rate
    steady = begin + SETTLED_S, end - 0.05
    slots = [one / promised for one in counted.slots(to, "tcp", *steady)]
    return {
        "mean": round(counted.rate(to, "tcp", *steady) / promised, 3),
        "at_0.9": round(sum(one >= 0.9 for one in slots) / len(slots), 3),
        "others": round(counted.rate(own.interface("sink"), "udp", *steady) / own.rate, 3),
    }


def many(own: Lab, flows: int) -> dict[str, Any]:
    """A flow against many of another pod."""
    begin = time.monotonic() + READY_S
    end = begin + MANY_S
    own.send("promised", "receiver", "tcp", 0, begin, end)
    own.send("many", "receives-many", "tcp", 0, begin, end, streams=flows)
    with own.counting(end) as counted:
        time.sleep(max(end - time.monotonic(), 0))
    got = {
        pod: counted.rate(own.interface(pod), "tcp", begin + SETTLED_S, end) / (MANY * own.rate)
        for pod in ("receiver", "receives-many")
    }
    return {"one": round(got["receiver"], 3), "many": round(got["receives-many"], 3)}


def changes(own: Lab, noise: str, direction: str, trials: int) -> dict[str, Any]:
    """The promise of a running pod goes up and down, while its flow is what it is promised at least."""
    pod, where = {"egress": ("promised", "worker-01"), "ingress": ("receiver", "worker-04")}[direction]
    least, most = PROMISE - 0.1, PROMISE - 0.02
    begin = time.monotonic() + READY_S
    end = begin + BEFORE_S + trials * CHANGE_S + 1
    # A promise that wakes on a full link may lose packets; one that is under way loses none by this.
    own.send("promised", "receiver", "udp", least, begin, end - 0.5)
    own.noise(noise, begin + SETTLED_S, end)
    node, took = own.testbed.nodes[where], []
    program = ["/usr/bin/python3", "-IS", f"{BUILT_PLUGIN}/concorde", "change", f"default/{pod}"]
    with own.counting(end) as counted, own.counting(end, "worker-01") as left:
        time.sleep(begin + BEFORE_S - time.monotonic())
        for at in range(trials):
            since = time.monotonic()
            share = most if at % 2 else least + 0.02
            asked = f"{direction}-guarantee={int(share * own.rate)}"
            node.run([*program, asked, "--cache", ATTACHMENTS])
            took.append(time.monotonic() - since)
            time.sleep(max(CHANGE_S - took[-1], 0))
    to = own.interface("receiver")
    first, last = begin + BEFORE_S, end - 0.6
    _, came = counted.between(to, begin - 0.5, end)
    _, went = left.between(own.interface("promised"), begin - 0.5, end, sent=False)
    return {
        "command_ms": round(1e3 * max(took)),
        "sent": went,
        "lost": went - came,
        "least_100_ms": round(counted.least(to, "udp", first, last) / (least * own.rate), 2),
    }


def measured(told: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Measure everything that was asked for, with each enforcement."""
    for enforcement in told.enforcements:

        def line(row: str, noise: object, found: object, of: str = enforcement) -> dict[str, Any]:
            return {"enforcement": of, "row": row, "beside": noise, "found": found}

        if {"incast", "bursts", "change"} & set(told.rows):
            with lab(enforcement, told.rate, INCAST) as own:
                for noise in NOISES if "incast" in told.rows else ():
                    for row, found in incast(own, noise, told.trials):
                        yield line(row, noise, found)
                if "bursts" in told.rows:
                    yield line("bursts", "udp", bursts(own))
                for noise in NOISES if "change" in told.rows else ():
                    for direction in CHANGED[enforcement]:
                        found = changes(own, noise, direction, told.trials)
                        yield line("change", f"{noise} {direction}", found)
                if "incast" in told.rows and own.testbed.agents:
                    yield line("agent", "little", talking(own))
                    yield line("agent", "nothing", asleep(own))
                for fault in own.testbed.check():
                    yield line("fault", "", fault)
        if "many" in told.rows:
            with lab(enforcement, told.rate, TWO) as own:
                for flows in (1, 10, 100):
                    yield line("many", f"{flows} flows", many(own, flows))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rate", type=float, default=200e6, help="of links, bits per second (%(default)g)")
    parser.add_argument("--trials", type=int, default=10, help="of each kind (%(default)s)")
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=ROWS, help="(all)")
    parser.add_argument(
        "--enforcements", nargs="*", choices=CHANGED, default=["node", "fabric"], help="(%(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print lines of JSON")
    told = parser.parse_args()
    for line in measured(told):
        if told.json:
            print(json.dumps(line), flush=True)
        else:
            found = line["found"]
            words = ", ".join(f"{k} {v}" for k, v in found.items()) if isinstance(found, dict) else found
            print(f"{line['enforcement']:7} {line['row']:8} {line['beside']:11} {words}", flush=True)


if __name__ == "__main__":
    main()
