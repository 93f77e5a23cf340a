"""For how long requests to a device are lost when proxy pods or gateways fail, on real Kubernetes.

The thesis' lab with two gateways and the operator on neither, and in it a connection of each mode and number
of replicas; by each that is to fail a pod of another node asks the device a hundred times a second, each time
anew. A trial begins when all pods serve. Of each connection it is a line of JSON: how many requests were
lost, and when the last was begun, in seconds after the fault. Faults: ``killed``, a pod's containers,
for the first time; ``deleted``, a pod; ``cut``, a gateway from the cluster, for all at once; ``segment``,
one from the device. At the end of each kind a line for each connection has all its trials.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugin")]

from tests.e2e.failing import TWO_GATEWAYS, WORKER, Failing, asked, lost  # noqa: E402
from tests.e2e.lab import Lab, laboratory  # noqa: E402
from tests.waiting import until  # noqa: E402

BEFORE_SECONDS, QUIET_SECONDS = 0.5, 1.5
CUTS = {"cut": "eth0", "segment": "eth1"}  # a gateway's interface, by the fault
FAULTS = ("killed", "deleted", *CUTS)
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
        ways = [Way(lab, *of) for of in itertools.product(told.modes, told.replicas)]
        for fault in told.faults:
            series(ways, Path(place), fault, told.trials)


class Way(Failing):
    """A connection of a mode and with so many replicas, and what was seen of it in trials of a fault."""

    def __init__(self, lab: Lab, mode: str, replicas: int) -> None:
        super().__init__(lab, f"{mode}-{replicas}")
        self.of, self.replicas = {"mode": mode, "replicas": replicas}, replicas
        self.found: list[dict[str, float]] = []
        self.connect(replicas, mode)


def series(ways: Sequence[Way], place: Path, fault: str, trials: int) -> None:
    """Do the trials of a fault; print each, and of each way all."""
    for way in ways:
        way.found.clear()
    while lacking := [way for way in ways if len(way.found) < trials]:
        for way in ways:
            way.until_serving(way.replicas)
        for way, found in trial(dict(victims(lacking, fault)), place, fault):
            way.found.append(found)
            print(json.dumps({**way.of, "fault": fault, **found}), flush=True)
    for way in ways:
        gaps = [one["until_s"] for one in way.found]
        summary = {"trials": len(gaps), "median_s": round(statistics.median(gaps), 2), "most_s": max(gaps)}
        most = max(one["lost"] for one in way.found)
        print(json.dumps({**way.of, "fault": fault, **summary, "most_lost": most}), flush=True)


def victims(ways: Sequence[Way], fault: str) -> Iterator[tuple[Way, Any]]:
    """Yield ways, each with the pod that a fault is to strike: of a gateway's, where the last way has one."""
    gateway = ways[-1].serving()[0]["spec"]["nodeName"]
    for way in ways:
        for pod in way.serving():
            if fault not in CUTS or pod["spec"]["nodeName"] == gateway:
                yield way, pod
                break


def trial(struck: dict[Way, Any], place: Path, fault: str) -> Iterator[tuple[Way, dict[str, float]]]:
    """Let pods fail, wait until all requests have been answered for a while, and put things right."""
    try:
        yield from (cut if fault in CUTS else one_by_one)(struck, place, fault)
    finally:
        for way, pod in struck.items():
            way.mend(pod)
            if fault == "killed":  # a kubelet waits longer each time before it starts containers again
                way.delete(pod)


def cut(struck: dict[Way, Any], place: Path, fault: str) -> Iterator[tuple[Way, dict[str, float]]]:
    """Cut the gateway off where all of these pods are."""
    with ExitStack() as stack:
        said = {way: stack.enter_context(way.asking(place)) for way in struck}
        time.sleep(BEFORE_SECONDS)
        begun = time.monotonic()
        way, pod = next(iter(struck.items()))
        way.cut_off(pod, CUTS[fault])
        for way in struck:
            until_quiet(way, said[way], begun)
        for way in struck:
            yield way, seen(said[way], begun)


def one_by_one(struck: dict[Way, Any], place: Path, fault: str) -> Iterator[tuple[Way, dict[str, float]]]:
    """Let pods end one after another: what it costs to make one anew is not to be in the next one's way."""
    for way, pod in struck.items():
        with way.asking(place) as said:
            time.sleep(BEFORE_SECONDS)
            begun = time.monotonic()
            happen = way.kill if fault == "killed" else way.delete
            happen(pod)
            until_quiet(way, said, begun)
            if fault == "deleted":  # who begins to serve may lose requests, too
                way.until_serving(way.replicas)
                until_quiet(way, said, time.monotonic())
            yield way, seen(said, begun)


def seen(said: Path, begun: float) -> dict[str, float]:
    """Return what was lost since a fault."""
    gone = lost(asked(said), begun)
    last = max((one.begun for one in gone), default=begun)
    return {"requests": len(asked(said)), "lost": len(gone), "until_s": round(max(0.0, last - begun), 2)}


def until_quiet(way: Way, said: Path, since: float) -> None:
    """Wait until all requests have been answered for a while."""
    until(partial(quiet, said, since), way.lab.words, patience=LONGEST_SECONDS, every=0.2)


def quiet(said: Path, since: float) -> bool:
    """Whether all requests have been answered for a while."""
    ended = [one.begun + one.took for one in lost(asked(said), since)]
    return time.monotonic() > max(ended, default=since) + QUIET_SECONDS


if __name__ == "__main__":
    main()
