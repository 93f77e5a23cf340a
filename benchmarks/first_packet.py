"""How long the first TCP connection takes to a node, and to a pod, that nobody has talked to yet.

By each of flannel's three generations: all entries when the kernel misses them, only neighbours so, and all
ahead; and by today's entries made by the testbed itself, without daemons. Each time on a fresh testbed, from
a pod of one worker to one of the other: to a pod of the node that is new, to another pod there, and once
more. The nodes know each other's hardware addresses on the underlay, as those of a cluster do.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.access.place import PodPlace  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.scenario import load  # noqa: E402

ROUNDS = 20
PORT = 5999
CASES = {
    "L2 and L3 by miss": ["clusters.a.resolve={l2: miss, l3: miss}"],
    "L3 by miss": ["clusters.a.resolve={l2: ahead, l3: miss}"],
    "all ahead": ["clusters.a.resolve={l2: ahead, l3: ahead}"],
    "all ahead, no daemons": ["clusters.a.backend=vxlan", "clusters.a.resolve=null"],
}
# The kernel makes connections that a program has not taken yet; nobody else is to run meanwhile.
SERVE = "import socket, time; s = socket.create_server(('', 5999)); time.sleep(60)"
# A connection to itself first, so that what is measured is not how Python loads.
CONNECT = """
import socket, sys, time
here = socket.create_server(("127.0.0.1", 0))
for address, port in (here.getsockname(), (sys.argv[1], 5999), (sys.argv[1], 5999)):
    begun = time.perf_counter()
    socket.create_connection((address, port), timeout=30)
    print((time.perf_counter() - begun) * 1000)
"""


def main() -> None:
    """Measure and print."""
    print(f"first TCP connection, ms: median, 95th percentile (most) of {ROUNDS} fresh testbeds")
    print(f"{'':24} {'new node':>26} {'new pod':>26} {'again':>26}")
    for name, changes in CASES.items():
        taken = [one_round(changes) for _ in range(ROUNDS)]
        columns = [shown(list(values)) for values in zip(*taken, strict=True)]
        print(f"{name:24} {columns[0]:>26} {columns[1]:>26} {columns[2]:>26}")


def one_round(changes: list[str]) -> tuple[float, float, float]:
    """Return how long the connections took to a new node, to a new pod of it, and once more; ms."""
    scenario = load(ROOT / "scenarios" / "examples" / "vxlan-miss.yaml", changes)
    with assemble(scenario, "netns", "cni").running() as testbed:
        for node, other in (("minion01", "minion02"), ("minion02", "minion01")):
            address = str(testbed.addressing.address(other))
            testbed.nodes[node].run(["ping", "-c", "1", "-W", "5", address])
        pods = testbed.pods
        first, again = connected(pods["A-1"], pods["A-3"])
        other_pod, _ = connected(pods["A-2"], pods["A-4"])
        return first, other_pod, again


def connected(source: PodPlace, destination: PodPlace) -> tuple[float, float]:
    """Return how long two connections take, one after the other; ms."""
    nowhere = Path("/dev/null")
    serving = destination.start(["python3", "-c", SERVE], stdout=nowhere, stderr=nowhere)
    try:
        while not destination.run(["ss", "-Hltn", f"sport = :{PORT}"]).stdout:
            assert serving.wait(0.01) is None
        said = source.run(["python3", "-c", CONNECT, destination.address], timeout=60).stdout.split()
    finally:
        serving.kill()
    return float(said[1]), float(said[2])


def shown(values: list[float]) -> str:
    """Return median, 95th percentile and the most."""
    last = statistics.quantiles(values, n=20, method="inclusive")[-1] if len(values) > 1 else values[0]
    return f"{statistics.median(values):.2f}, {last:.2f} ({max(values):.2f})"


if __name__ == "__main__":
    main()
