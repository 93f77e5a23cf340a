"""How long a testbed takes to come up and go down, beside Mininet building as many hosts and links.

The ContMEC scenario has 12 hosts (4 nodes, 6 pods, 2 containers), 7 bridges and 12 links; Mininet builds 12
hosts, 7 Linux bridges and 12 links. The testbed also programs two overlays, NAT, addresses through a CNI
plugin and shaping, Mininet nothing of the kind. Both by turns, imports not counted.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.beside import Measured, build_plugin, clock, mininet  # noqa: E402
from testbed.assembly import assemble  # noqa: E402
from testbed.scenario import load  # noqa: E402

ROUNDS = 7
DOWN_GOAL_SECONDS = 0.2


def main() -> None:
    """Measure and print."""
    scenario = load(ROOT / "scenarios" / "contmec.yaml")
    ours: list[Measured] = []
    theirs: list[Measured] = []
    for _ in range(ROUNDS):
        testbed = assemble(scenario, "netns", "cni")
        ours.append(clock(testbed.up, testbed.down))
        if (measured := mininet(switches=7, hosts=12)) is not None:
            theirs.append(measured)
    print(f"{ROUNDS} rounds by turns; seconds: median (least to most)")
    show("testbed up", [one.up for one in ours])
    show("testbed down", [one.down for one in ours])
    if not theirs:
        print("mininet: not installed (apt-get install mininet bridge-utils)")
        return
    show("mininet up", [one.up for one in theirs])
    show("mininet down", [one.down for one in theirs])
    ratio = statistics.median(one.up for one in ours) / statistics.median(one.up for one in theirs)
    print(f"up, testbed / mininet: {ratio:.2f} (goal: at most 1)")
    print(f"down: goal below {DOWN_GOAL_SECONDS:g} s")


def show(what: str, seconds: list[float]) -> None:
    """Print one row."""
    print(f"{what:14} {statistics.median(seconds):.3f} ({min(seconds):.3f} to {max(seconds):.3f})")


if __name__ == "__main__":
    build_plugin()
    main()
