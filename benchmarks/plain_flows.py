"""What services cost a flow that is to none: from pod to pod across two nodes, with and without their tables.

One flow of iperf3 goes on all the time, each end on a processor of its own, while the tables of both
clusters' services are dormant and not by turns, in random order within each pair. What arrives is counted by
the kernel at the pod's interface. Reported is the median of the pairs' ratios, with an interval of 95 % for
it, by order statistics. Needs a machine of two processors with nothing else to do.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.access.place import Node, PodPlace  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.scenario import load  # noqa: E402
from tests.waiting import until  # noqa: E402

GOAL = 0.97
SETTINGS = (
    "enforcement=none",
    "underlay.rate=100G",
    "services.web={cluster: a, pods: [A-2, A-3]}",
    "services.data={cluster: b, pods: [B-1, B-2]}",
)
WORKERS, TABLES = ("worker-01", "worker-02"), ("services-a", "services-b")
FROM, TO = "A-1", "A-4"
SETTLING_SECONDS = 0.1
NOWHERE = Path("/dev/null")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=100, help="of turns (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.3, help="of each turn (%(default)s)")
    told = parser.parse_args()
    testbed = assemble(load(ROOT / "scenarios" / "contmec.yaml", list(SETTINGS)), "netns", "cni")
    testbed.up()
    try:
        begin(testbed.pods[FROM], testbed.pods[TO])
        nodes = [testbed.nodes[name] for name in WORKERS]
        pairs = [pair(nodes, testbed.pods[TO], told.seconds) for _ in range(told.pairs)]
    finally:
        testbed.down()
    without, having = (statistics.median(rates) / 1e9 for rates in zip(*pairs, strict=True))
    ratios = sorted(having / without for without, having in pairs)
    # Of n values, the median of all is between those that are 0.98 sqrt(n) places from the middle.
    apart = 0.98 * len(ratios) ** 0.5
    low, high = (
        ratios[max(0, min(len(ratios) - 1, round(len(ratios) / 2 + side)))] for side in (-apart, apart)
    )
    print(f"{without:.2f} Gbit/s without services, {having:.2f} with: {statistics.median(ratios):.3f} "
          f"({low:.3f} to {high:.3f}) in {len(ratios)} pairs; goal {GOAL}")  # fmt: skip


def begin(sender: PodPlace, receiver: PodPlace) -> None:
    """Let a flow begin that goes on for as long as the testbed is there."""
    receiver.start(["iperf3", "-s", "-A", "1"], stdout=NOWHERE, stderr=NOWHERE)
    until(lambda: receiver.run(["ss", "-Hltn", "sport = :5201"]).stdout)
    sender.start(["iperf3", "-c", receiver.address, "-t", "3600", "-A", "0"], stdout=NOWHERE, stderr=NOWHERE)
    until(lambda: received(receiver) > 1e9)


def pair(nodes: list[Node], receiver: PodPlace, seconds: float) -> tuple[float, float]:
    """Return the rate without services, and with them (bit/s)."""
    rates = {}
    for dormant in random.sample((True, False), 2):
        for node in nodes:
            node.run(["nft", "-f", "-"], stdin="".join(state(table, dormant) for table in TABLES))
        time.sleep(SETTLING_SECONDS)
        before, begun = received(receiver), time.monotonic()
        time.sleep(seconds)
        rates[dormant] = (received(receiver) - before) * 8 / (time.monotonic() - begun)
    return rates[True], rates[False]


def state(table: str, dormant: bool) -> str:
    """Return what lets a table be looked at by no packet, or by all again."""
    return f"add table ip {table} {{ {'flags dormant;' if dormant else ''} }}\n"


def received(pod: PodPlace) -> int:
    """Return how many bytes have come to a pod."""
    return int(pod.run(["cat", "/proc/net/dev"]).stdout.partition("eth0:")[2].split()[0])


if __name__ == "__main__":
    main()
