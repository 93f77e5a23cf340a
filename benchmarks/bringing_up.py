"""How long a testbed takes to come up and go down, beside Mininet building as many hosts and links.

The ContMEC scenario has 12 hosts (4 nodes, 6 pods, 2 containers), 7 bridges and 12 links; Mininet builds 12
hosts, 7 Linux bridges and 12 links. The testbed also programs two overlays, NAT, addresses through a CNI
plugin and shaping, Mininet nothing of the kind. Both by turns, imports not counted; Mininet runs in a sandbox
of its own, so that nothing of it stays. Needs Debian's mininet and bridge-utils for the comparison.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.assembly import assemble  # noqa: E402
from testbed.providers.netns.sandbox import Sandbox  # noqa: E402
from testbed.scenario import load  # noqa: E402

ROUNDS = 7
DOWN_GOAL_SECONDS = 0.2

MININET = """
import json, sys, time
from mininet.net import Mininet
from mininet.nodelib import LinuxBridge
begin = time.monotonic()
net = Mininet(controller=None, switch=LinuxBridge)
bridges = [net.addSwitch(f"s{number}") for number in range(7)]
for number in range(12):
    net.addLink(net.addHost(f"h{number}", ip=f"10.0.0.{number + 1}/24"), bridges[number % 7])
net.start()
up = time.monotonic()
hosts, bridges, links = len(net.hosts), len(net.switches), len(net.links)
net.stop()
print(json.dumps({"up": up - begin, "down": time.monotonic() - up, "built": [hosts, bridges, links]}))
"""


def main() -> None:
    """Measure and print."""
    scenario = load(ROOT / "scenarios" / "contmec.yaml")
    ours: list[tuple[float, float]] = []
    theirs: list[tuple[float, float]] = []
    for _ in range(ROUNDS):
        testbed = assemble(scenario, "netns", "cni")
        begin = time.monotonic()
        testbed.up()
        up = time.monotonic()
        testbed.down()
        ours.append((up - begin, time.monotonic() - up))
        if (measured := mininet()) is not None:
            theirs.append(measured)
    print(f"{ROUNDS} rounds by turns; seconds: median (least to most)")
    show("testbed up", [up for up, _ in ours])
    show("testbed down", [down for _, down in ours])
    if not theirs:
        print("mininet: not installed (apt-get install mininet bridge-utils)")
        return
    show("mininet up", [up for up, _ in theirs])
    show("mininet down", [down for _, down in theirs])
    ratio = statistics.median(up for up, _ in ours) / statistics.median(up for up, _ in theirs)
    print(f"up, testbed / mininet: {ratio:.2f} (goal: at most 1)")
    print(f"down: goal below {DOWN_GOAL_SECONDS:g} s")


def mininet() -> tuple[float, float] | None:
    """Return the seconds Mininet takes up and down, in a sandbox; None where it is not installed."""
    box = Sandbox.start("mininet.bench")
    try:
        done = box.switch.run(["/usr/bin/python3", "-"], stdin=MININET, check=False, timeout=120)
    finally:
        box.stop()
    if done.status != 0:
        print(done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    assert answer["built"] == [12, 7, 12], answer
    return answer["up"], answer["down"]


def show(what: str, seconds: list[float]) -> None:
    """Print one row."""
    print(f"{what:14} {statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})")


if __name__ == "__main__":
    subprocess.run(
        ["/usr/bin/python3", ROOT / "plugin" / "build.py", "--output", ROOT / "build" / "cni"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    main()
