"""Whether promises on a segment's link are kept while somebody floods it, on a gateway of namespaces.

Two pods are promised 20 and 60 of a segment of 100 Mbit/s, and a third, without a promise, floods it. A run
is held if each gets 0.95 of what its promise is worth to TCP. Needs root or user namespaces, iperf3, and an
idle machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.system.plugin.conftest import GUARANTEE, Node  # noqa: E402
from tests.system.plugin.runtimes import ANNOTATIONS  # noqa: E402
from tests.system.plugin.segment_lab import DEVICE, Lab, others  # noqa: E402

RUNS, SECONDS = 10, 4
HELD = 0.95
PROMISED = {"A-1": 20, "A-2": 60}  # Mbit/s of layer 2
FLOOD = "A-3"
PAYLOAD = 1448 / 1514  # of a full frame
# The device behind a switch with a slow port.
SWITCH = """\
-n device link set eth0 netns switch name node
-n switch link add lan type bridge
-n switch link set node master lan up
-n switch link set lan up
-n switch link add slow master lan type veth peer name eth0 netns device
-n switch link set slow up
-n device addr add 172.17.16.120/24 dev eth0
-n device link set eth0 up
-n device route add default via 172.17.16.1
"""
PORT = "qdisc add dev slow root tbf rate 100mbit burst 16kb limit 128kb\n"


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as output:
        subprocess.run([sys.executable, ROOT / "plugin/build.py", "--output", output], check=True)
        plugin = Path(output) / "concorde"
        for enforcement, kept in (("node", 9), ("none", 0)):
            held = sum(run(plugin, enforcement) for _ in range(RUNS))
            goal = f"at least {kept}" if kept else "none"
            print(f"{enforcement}: held in {held} of {RUNS} runs (goal: {goal})")


def run(plugin: Path, enforcement: str) -> bool:
    """One run, printed; whether it was held."""
    node = Node(plugin)
    try:
        got = rates(segment(node, enforcement))
    finally:
        node.close()
    print(enforcement, ", ".join(f"{pod} {rate:.2f} Mbit/s" for pod, rate in got.items()), flush=True)
    return all(got[pod] >= HELD * PAYLOAD * promised for pod, promised in PROMISED.items())


def segment(node: Node, enforcement: str) -> Lab:
    """The gateway with its pods, and the segment."""
    lab = Lab(node)
    node.run("ip", "netns", "add", "switch")
    for line in SWITCH.splitlines():
        node.run("ip", *line.split())
    node.in_pod("switch", "tc", "-batch", "-", stdin=PORT)
    lab.define(
        "plant",
        {
            **{"cniVersion": "1.1.0", "type": "concorde", "name": "plant", "bridge": "dev-plant"},
            **{"subnet": "100.64.0.0/24", "capabilities": {ANNOTATIONS: True}, "enforcement": enforcement},
            **{"uplink": "eth1", "capacity": "99M", "encapsulation": 0, "controlPorts": []},
        },
    )
    for pod in (*PROMISED, FLOOD):
        lab.others(pod)
        promises = {f"{GUARANTEE}.net1": f"{PROMISED[pod]}M"} if pod in PROMISED else {}
        answer = lab.call("ADD", pod, "plant", others(pod), promises=promises)
        assert "code" not in answer, answer
        node.in_pod(pod, *f"ip route add {DEVICE} via 100.64.0.1 dev net1".split())
    return lab


def rates(lab: Lab) -> Mapping[str, float]:
    """What the device got of each promised pod (Mbit/s of payload) while the third flooded it."""
    ports = {pod: 5200 + at for at, pod in enumerate((*PROMISED, FLOOD))}
    for port in ports.values():
        lab.node.in_pod("device", *f"iperf3 --server --daemon --one-off --port {port}".split())
    with flooding(lab, ports[FLOOD]):
        flows = {pod: started(lab, pod, f"--port {ports[pod]} --json") for pod in PROMISED}
        ends: dict[str, Any] = {pod: json.loads(flow.communicate()[0])["end"] for pod, flow in flows.items()}
    return {pod: end["sum_received"]["bits_per_second"] / 1e6 for pod, end in ends.items()}


@contextmanager
def flooding(lab: Lab, port: int) -> Iterator[None]:
    """Let the pod without a promise send three times what the segment carries."""
    flood = started(lab, FLOOD, f"--port {port} --udp --bitrate 300M --length 1400", SECONDS + 3)
    yield
    flood.communicate()


def started(lab: Lab, pod: str, options: str, seconds: int = SECONDS) -> subprocess.Popen[str]:
    """Start a flow to the device."""
    flow = f"iperf3 --client {DEVICE} --time {seconds} {options}".split()
    argv = lab.node.argv("nsenter", f"--net=/run/netns/{pod}", *flow)
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


if __name__ == "__main__":
    main()
