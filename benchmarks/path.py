"""What the testbed itself costs a flow: an unshaped pod-to-pod flow beside the same path made by hand.

By hand: two namespaces joined by a bridge, in each a VXLAN device, a bridge and a pod behind a veth pair,
nothing else. A node that has containers beside Kubernetes also translates their addresses, as with Docker;
what that costs the pods' flows is a row of its own. What the plugin's guard costs is told by the same path
without its tables, by turns. Two paths of one kind differ by several percent - where
in memory and on which processor things happen to be - so all are made afresh many times. The receiver's
bytes count. Needs an idle machine.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.access.place import InNamespace  # noqa: E402
from testbed.access.pods import PodPlace  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.providers.netns.sandbox import Sandbox, node_directory  # noqa: E402
from testbed.scenario import load  # noqa: E402
from testbed.testbed import Testbed  # noqa: E402

ROUNDS = 12
TURNS = 3
SECONDS = 1
GOAL = 0.98
GUARD_GOAL = 0.99
PORT = 5999
UNGUARDED = "testbed without the guard"

WITHOUT_CONTAINERS = ["enforcement=none", "containers={}", "disturbances=[]"]
WITH_CONTAINERS = ["enforcement=none"]


def main() -> None:
    """Measure and print."""
    rates: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, values in one_round().items():
            rates.setdefault(name, []).append(statistics.median(values))
    print(
        f"{ROUNDS} times fresh paths, on each {TURNS} flows of {SECONDS} s by turns; "
        "Gbit/s of payload: median (least to most), and the median share of the path by hand"
    )
    for name, values in rates.items():
        share = statistics.median(a / b for a, b in zip(values, rates["by hand"], strict=True))
        span = f"({min(values):.2f} to {max(values):.2f})"
        print(f"{name:34} {statistics.median(values):6.2f} {span:17} {share:.3f}")
    print(f"goal for the testbed's own part: at least {GOAL}")
    guarded = statistics.median(a / b for a, b in zip(rates["testbed"], rates[UNGUARDED], strict=True))
    print(f"with the guard as a share of without: {guarded:.3f}; goal: at least {GUARD_GOAL}")


def one_round() -> dict[str, list[float]]:
    """Make all paths afresh and return what each carried."""
    scenario = ROOT / "scenarios" / "kubernetes.yaml"
    testbeds = {
        "testbed": assemble(load(scenario, WITHOUT_CONTAINERS), "netns", "cni"),
        "testbed with container networks": assemble(load(scenario, WITH_CONTAINERS), "netns", "cni"),
    }
    box = Sandbox.start("path.bench")
    try:
        pairs = {"by hand": by_hand(box)}
        for name, testbed in testbeds.items():
            testbed.up()
            pairs[name] = testbed.pods["A-1"], testbed.pods["A-4"]
        rates: dict[str, list[float]] = {name: [] for name in [*pairs, UNGUARDED]}
        for _ in range(TURNS):
            for name, (source, destination) in pairs.items():
                rates[name].append(throughput(source, destination))
            with without_guard(testbeds["testbed"]):
                rates[UNGUARDED].append(throughput(*pairs["testbed"]))
        return rates
    finally:
        box.stop()
        for testbed in testbeds.values():
            testbed.down()


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


def by_hand(box: Sandbox) -> tuple[PodPlace, PodPlace]:
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
        node = box.node(f"n{this}")
        node.run(
            ["ip", "-batch", "-"],
            stdin=f"""
address add 192.168.1.{this}/24 dev eth0
link set eth0 up
link add vx address 0e:00:00:00:00:0{this} mtu 1450 type vxlan id 1 dev eth0 dstport 8472 nolearning
link set vx up
address add 10.1.{this}.0/32 dev vx
neighbour add 10.1.{other}.0 lladdr 0e:00:00:00:00:0{other} dev vx nud permanent
route add 10.1.{other}.0/24 via 10.1.{other}.0 dev vx onlink
link add name bridge0 type bridge
link set bridge0 mtu 1450 up
address add 10.1.{this}.1/24 dev bridge0
netns add pod
link add name veth0 mtu 1450 type veth peer name eth0 mtu 1450 netns pod
link set veth0 master bridge0 up
""".lstrip(),
        )
        node.run(
            ["bridge", "fdb", "add", f"0e:00:00:00:00:0{other}", "dev", "vx", "dst", f"192.168.1.{other}"]
        )
        node.run(["tee", "/proc/sys/net/ipv4/ip_forward"], stdin="1")
        pod = InNamespace("pod", node, "/run/netns/pod", f"10.1.{this}.2", "veth0")
        pod.run(
            ["ip", "-batch", "-"],
            stdin=f"address add {pod.address}/24 dev eth0\nlink set eth0 up\n"
            f"route add default via 10.1.{this}.1\n",
        )
        pods.append(pod)
    return pods[0], pods[1]


def throughput(source: PodPlace, destination: PodPlace) -> float:
    """Return the Gbit/s of payload that one TCP flow brings to the receiver."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        server = destination.start(["iperf3", "-s", "-1", "-J", "-p", str(PORT)], stdout=out, stderr=err)
        while not destination.run(["ss", "-Hltn", f"sport = :{PORT}"]).stdout:
            time.sleep(0.01)
        source.run(["iperf3", "-c", destination.address, "-p", str(PORT), "-t", str(SECONDS)], timeout=60)
        server.wait(10)
        end = json.loads(out.read_text())["end"]["sum_received"]
    return float(end["bytes"] * 8 / end["seconds"] / 1e9)


if __name__ == "__main__":
    main()
