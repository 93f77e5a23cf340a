"""For how long requests to a device are lost when proxy pods or gateways fail, on real Kubernetes.

The thesis' lab with two gateways and the operator on neither; a pod of another node asks the device a hundred
times a second, each time by a new connection. A trial begins when all pods serve, and is a line of JSON: how
many requests were lost, and when the last of these was begun, in seconds after the fault. Faults: ``killed``,
a pod's containers; ``deleted``, a pod; ``cut``, a gateway from the cluster; ``segment``, a gateway from the
device. At the end of each kind a line has all its trials.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugin")]

from tests.e2e.failing import TWO_GATEWAYS, WORKER, Failing, asked, lost  # noqa: E402
from tests.e2e.lab import laboratory  # noqa: E402
from tests.waiting import until  # noqa: E402

BEFORE_SECONDS, QUIET_SECONDS = 0.5, 2.0
FAULTS = ("killed", "deleted", "cut", "segment")
LONGEST_SECONDS = 300.0


def main() -> None:
    """Do the trials and print them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--trials", type=int, default=20, help="of each fault (%(default)s)")
    parser.add_argument("--replicas", type=int, nargs="*", default=[2, 1], help="(%(default)s)")
    parser.add_argument("--modes", nargs="*", default=["translate", "relay"], help="(%(default)s)")
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=FAULTS, help="(all)")
    told = parser.parse_args()
    with TemporaryDirectory() as place, laboratory(Path(place), *TWO_GATEWAYS, worker=WORKER) as lab:
        failing = Failing(lab)
        for mode in told.modes:
            for replicas in told.replicas:
                failing.connect(replicas, mode)
                for fault in told.faults:
                    series(failing, Path(place), fault, replicas, mode, told.trials)


def series(failing: Failing, place: Path, fault: str, replicas: int, mode: str, trials: int) -> None:
    """Do the trials of a fault; print each, and all."""
    of = {"mode": mode, "replicas": replicas, "fault": fault}
    found = []
    for _ in range(trials):
        failing.until_serving(replicas)
        found.append(trial(failing, place, fault))
        print(json.dumps({**of, **found[-1]}), flush=True)
    gaps = [one["until_s"] for one in found]
    summary = {"trials": trials, "median_s": round(statistics.median(gaps), 2), "most_s": max(gaps)}
    print(json.dumps({**of, **summary, "most_lost": max(one["lost"] for one in found)}), flush=True)


def trial(failing: Failing, place: Path, fault: str) -> dict[str, float]:
    """Let a pod fail, wait until all requests have been answered for a while, and put things right."""
    pod = failing.serving()[0]
    happen: Callable[[Any], None] = {
        "killed": failing.kill,
        "deleted": failing.delete,
        "cut": failing.cut_off,
        "segment": lambda pod: failing.cut_off(pod, "eth1"),
    }[fault]
    try:
        with failing.asking(place) as said:
            time.sleep(BEFORE_SECONDS)
            begun = time.monotonic()
            happen(pod)
            until(lambda: quiet(said, begun), failing.lab.words, patience=LONGEST_SECONDS, every=0.2)
        gone = lost(asked(said), begun)
        last = max((one.begun for one in gone), default=begun)
    finally:
        failing.mend(pod)
    return {"requests": len(asked(said)), "lost": len(gone), "until_s": round(max(0.0, last - begun), 2)}


def quiet(said: Path, begun: float) -> bool:
    """Whether a fault is over: all requests have been answered for a while."""
    ended = [one.begun + one.took for one in lost(asked(said), begun)]
    return time.monotonic() > max(ended, default=begun) + QUIET_SECONDS


if __name__ == "__main__":
    main()
