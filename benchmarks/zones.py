"""What a trunk's relay costs, and how late it is: round trips, and a gigabit in large and small packets.

Two nodes, a trunk of 1 Gbit/s between their zones that takes 5 ms each way. Round trips are one datagram at a
time, 100 a second, beside the same nodes with a trunk that takes no time. A gigabit is iperf3's, from node to
node and from pod to pod (VXLAN), and as datagrams of 1,400 bytes. Processor time is the relay's own, by
``/proc/PID/schedstat``. Needs an idle machine, and one without netem: with it there is no relay.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.access.place import Place  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.links.trunks import Counted  # noqa: E402
from testbed.scenario.model import Scenario  # noqa: E402
from testbed.testbed import Testbed  # noqa: E402

ROUNDS = 5
TRIPS, GAP = 1000, 0.01  # of a round; seconds from one to the next
SECONDS = 5
PORT, ECHO_PORT = 5999, 7000
DELAY = 0.005
ROUND_TRIPS = ["/usr/bin/python3", "-I", "-S", str(ROOT / "tests/system/testbed/round_trips.py")]
UDP = ("-u", "-b", "900M", "-l", "1400")


def scenario(delay: float) -> Scenario:
    """Return two workers, of which one is that far away."""
    return Scenario.model_validate(
        {
            "name": "relay",
            "zones": {"here": {}, "there": {"rate": "1G", "delay": delay}},
            "nodes": {"m": {"zone": "here"}, "near": {"zone": "here"}, "far": {"zone": "there"}},
            "clusters": {"a": {"master": "m", "workers": ["near", "far"], "pod_cidr": "172.16.0.0/16"}},
            "enforcement": "none",
            "pods": {"P": {"cluster": "a", "node": "near"}, "Q": {"cluster": "a", "node": "far"}},
            "flows": [{"from": "P", "to": "Q"}],
        }
    )


def main() -> None:
    """Measure and print."""
    print(f"{ROUNDS} rounds: median (least to most)")
    for delay in (0.0, DELAY):
        with assemble(scenario(delay), "netns", "cni").running() as testbed:
            rounds = [trips(testbed) for _ in range(ROUNDS)]
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            found = [sorted(one)[int(share * len(one))] * 1000 for one in rounds]
            shown(f"round trip {name}, trunk of {delay * 1000:g} ms, ms", found)
    with assemble(scenario(DELAY), "netns", "cni").running() as testbed:
        near, far = testbed.nodes["near"], testbed.nodes["far"]
        address, pods = str(testbed.addressing.address("far")), testbed.pods
        ways: dict[str, tuple[Place, Place, str, Sequence[str]]] = {
            "TCP, node to node": (near, far, address, ()),
            "TCP, pod to pod": (pods["P"], pods["Q"], pods["Q"].address, ()),
            f"UDP, {UDP[-1]} bytes, node to node": (near, far, address, UDP),
        }
        for name, (source, destination, to, more) in ways.items():
            print(name)
            done = [gigabit(testbed, source, destination, to, more) for _ in range(ROUNDS)]
            for column, title in enumerate(("Mbit/s received", "% of a processor", "% of frames late")):
                shown(f"  {title}", [row[column] for row in done])


def shown(title: str, values: Sequence[float]) -> None:
    """Print a row."""
    print(f"{title:44} {statistics.median(values):9.3f} ({min(values):.3f} to {max(values):.3f})")


@contextmanager
def server(place: Place, argv: Sequence[str], sign: Sequence[str]) -> Iterator[Callable[[], str]]:
    """Run a server until the end of the block, which begins once ``sign`` says something.

    What is yielded waits for its end and returns what it said.
    """
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory, "out")
        running = place.start(argv, stdout=out, stderr=Path(directory, "err"))
        try:
            while not place.run(sign).stdout:
                time.sleep(0.01)

            def said() -> str:
                running.wait(10)
                return out.read_text()

            yield said
        finally:
            running.kill()


def trips(testbed: Testbed) -> list[float]:
    """Return how long round trips from node to node took, seconds."""
    address = str(testbed.addressing.address("far"))
    listening = ["ss", "-Hlun", f"sport = :{ECHO_PORT}"]
    asked = [*ROUND_TRIPS, "ask", address, str(ECHO_PORT)]
    with server(testbed.nodes["far"], [*ROUND_TRIPS, "answer", address, str(ECHO_PORT)], listening):
        testbed.nodes["near"].run([*asked, "5", str(GAP)])  # who has which address
        said = testbed.nodes["near"].run([*asked, str(TRIPS), str(GAP)]).json()
    return [seconds for seconds in said if seconds is not None]


def gigabit(
    testbed: Testbed, source: Place, destination: Place, address: str, more: Sequence[str]
) -> tuple[float, float, float]:
    """Return Mbit/s received, and percent: of a processor that the relay took, of frames that were late."""
    listening = ["ss", "-Hltn", f"sport = :{PORT}"]
    with server(destination, ["iperf3", "-s", "-1", "-J", "-p", str(PORT)], listening) as said:
        counted(testbed)
        begun, used = time.monotonic(), processor(testbed)
        source.run(["iperf3", "-c", address, "-p", str(PORT), "-t", str(SECONDS), *more], timeout=60)
        share = (processor(testbed) - used) / (time.monotonic() - begun)
        told = counted(testbed)
        end = json.loads(said())["end"]
    received = end["sum_received"]
    late = sum(one.late for one in told) / sum(one.frames for one in told)
    return received["bytes"] * 8 / received["seconds"] / 1e6, share * 100, late * 100


def counted(testbed: Testbed) -> list[Counted]:
    """Return what the trunk counted since this was asked last."""
    told = [one.counted for trunk in testbed.provider.trunks for one in trunk.delayed()]
    if None in told:
        sys.exit("netem makes the delay here: there is no relay to measure")
    return [one for one in told if one is not None]


def processor(testbed: Testbed) -> float:
    """Return the processor time that the relay has had, seconds."""
    (switch,) = testbed.provider.hops
    look = ["sh", "-c", "cat /proc/$(cat /run/testbed/relays/trunk1/pid)/schedstat"]
    return int(switch.run(look).stdout.split()[0]) / 1e9


if __name__ == "__main__":
    main()
