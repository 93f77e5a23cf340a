"""How long two real Kubernetes clusters on the same two workers take to come up and go down.

The goals are for a machine with two processors that has the programs already (``./invokew kubernetes.get``).
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from testbed.assembly import assemble  # noqa: E402
from testbed.scenario import load  # noqa: E402

ROUNDS = 3
UP_GOAL_SECONDS, DOWN_GOAL_SECONDS = 40, 10


def main() -> None:
    """Measure and print."""
    scenario = load(ROOT / "scenarios" / "contmec.yaml")
    ups, downs = [], []
    for _ in range(ROUNDS):
        testbed = assemble(scenario, "netns", "kubernetes")
        begin = time.monotonic()
        testbed.up()
        up = time.monotonic()
        testbed.down()
        ups.append(up - begin)
        downs.append(time.monotonic() - up)
    print(f"{ROUNDS} rounds; seconds: median (least to most)")
    for what, seconds, goal in (("up", ups, UP_GOAL_SECONDS), ("down", downs, DOWN_GOAL_SECONDS)):
        median = statistics.median(seconds)
        print(f"{what:5}{median:6.1f} ({min(seconds):.1f} to {max(seconds):.1f}); goal: below {goal}")


if __name__ == "__main__":
    main()
