"""What the testbed itself costs a flow: an unshaped pod-to-pod flow beside the same path made by hand.

By hand: two namespaces joined by a bridge, in each a VXLAN device, a bridge and a pod behind a veth pair,
nothing else. Both paths exist all the time and take turns; the receiver's bytes count. Needs an idle machine.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.nodes import InNamespace, Place  # noqa: E402
from testbed.orchestrators import PodPlace  # noqa: E402
from testbed.providers.netns.sandbox import Sandbox, node_directory  # noqa: E402
from testbed.scenario import load  # noqa: E402
from testbed.testbed import assemble  # noqa: E402

ROUNDS = 7
SECONDS = 3
GOAL = 0.98
PORT = 5999


def main() -> None:
    """Measure and print."""
    testbed = assemble(load(ROOT / "scenarios" / "kubernetes.yaml", ["enforcement=none"]), "netns", "cni")
    testbed.up()
    box = Sandbox.start("path.bench")
    try:
        first, second = by_hand(box)
        pairs = {"testbed": (testbed.pods["A-1"], testbed.pods["A-4"]), "by hand": (first, second)}
        rates: dict[str, list[float]] = {name: [] for name in pairs}
        for number in range(ROUNDS + 1):
            for name, (source, destination) in pairs.items():
                rate = throughput(source, destination)
                if number:  # the first round warms up
                    rates[name].append(rate)
    finally:
        box.stop()
        testbed.down()
    print(f"{ROUNDS} rounds by turns, {SECONDS} s each; Gbit/s of payload: median (least to most)")
    for name, values in rates.items():
        print(f"{name:8} {statistics.median(values):6.2f} ({min(values):.2f} to {max(values):.2f})")
    ratio = statistics.median(a / b for a, b in zip(rates["testbed"], rates["by hand"], strict=True))
    print(f"testbed / by hand, median of the rounds: {ratio:.3f} (goal: at least {GOAL})")


def by_hand(box: Sandbox) -> tuple[InNamespace, InNamespace]:
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


def throughput(source: Place, destination: PodPlace) -> float:
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
