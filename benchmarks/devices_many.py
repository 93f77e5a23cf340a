"""What the devices' operator takes where there are many devices, on real Kubernetes.

The thesis' lab, and in it as many devices, each with a connection, at once. Each line is JSON. First how long
it took until each had its Deployment, Service and status, and until its pod served; then of each process of
the operator, while nothing happened for as long as it takes to list all anew: the share of a processor, in
percent, and the proportional set size, in MB. Last, how long it took until nothing was left of what was
deleted. The devices are addresses of one. Others at work add to times alone.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "plugin")]

from edge.devices.operator import LIST_SECONDS  # noqa: E402
from edge.devices.picture import DEPLOYMENTS, SERVICES  # noqa: E402
from edge.devices.rendering import OF_CONNECTION  # noqa: E402
from testbed.access.place import Place  # noqa: E402
from tests.e2e.lab import Lab, laboratory  # noqa: E402
from tests.thesis import CONNECTION, DEVICE  # noqa: E402
from tests.waiting import until  # noqa: E402

DEVICE_NAME = "device01-01"
FIRST, LONGEST_SECONDS, SETTLING_SECONDS = 120, 600.0, 30.0
MANY = 100
SELECTED = f"--selector={OF_CONNECTION}"


def main() -> None:
    """Make them, look, and delete them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--devices", type=int, default=MANY, help="(%(default)s)")
    count = parser.parse_args().devices
    with TemporaryDirectory() as place, laboratory(Path(place)) as lab:
        documents = [one for number in range(count) for one in pair(lab, FIRST + number)]
        told(operator="before any", **at_rest(lab.node, SETTLING_SECONDS))
        lab.until_taken(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents[:2]}))
        begun = time.monotonic()
        lab.until_taken(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
        told(taken_s=since(begun))
        until(lambda: reconciled(lab) == count, lab.words, patience=LONGEST_SECONDS, every=0.5)
        told(reconciled_s=since(begun))
        until(lambda: serving(lab) == count, lab.words, patience=LONGEST_SECONDS, every=1)
        told(serving_s=since(begun))
        time.sleep(SETTLING_SECONDS)
        told(operator=f"{count} devices", **at_rest(lab.node, LIST_SECONDS))
        begun = time.monotonic()
        lab.client.run("delete", "connections", "--all", "--wait=false")
        until(lambda: lab.left() == [], lambda: str(lab.left()), patience=LONGEST_SECONDS, every=0.2)
        told(deleted_s=since(begun))


def pair(lab: Lab, number: int) -> Iterator[Any]:
    """Yield a device at an address that the lab's one has besides, and a connection to it."""
    address = f"{DEVICE['spec']['ipAddress'].rpartition('.')[0]}.{number}"
    if address != DEVICE["spec"]["ipAddress"]:
        own = lab.testbed.provider.devices[DEVICE_NAME].place
        own.run(["ip", "address", "add", f"{address}/24", "dev", "eth0"])
    device, connection = copy.deepcopy(DEVICE), copy.deepcopy(CONNECTION)
    device["metadata"]["name"] = connection["spec"]["deviceName"] = f"device-{number}"
    device["spec"]["ipAddress"] = address
    connection["metadata"]["name"] = f"to-{number}"
    yield from (device, connection)


def reconciled(lab: Lab) -> int:
    """Return how many connections have all that leads to their devices, and say so."""
    made = (
        len(lab.client.get(kind.rpartition("/")[2], SELECTED)["items"]) for kind in (DEPLOYMENTS, SERVICES)
    )
    stated = sum("status" in one for one in lab.client.get("connections")["items"])
    return min(*made, stated)


def serving(lab: Lab) -> int:
    """Return how many proxy pods are ready."""
    found = (one["status"].get("conditions", []) for one in lab.client.get("pods", SELECTED)["items"])
    return sum(any(one["type"] == "Ready" and one["status"] == "True" for one in each) for each in found)


def at_rest(node: Place, seconds: float) -> dict[str, list[float]]:
    """Return what the operator's processes take, most first: percent of a processor, and MB."""
    pids = operators(node)
    before, begun = [ticks(node, pid) for pid in pids], time.monotonic()
    time.sleep(seconds)
    passed = (time.monotonic() - begun) * os.sysconf("SC_CLK_TCK")
    shares = [(ticks(node, pid) - was) / passed * 100 for pid, was in zip(pids, before, strict=True)]
    sizes = [megabytes(node, pid) for pid in pids]
    rows = sorted(zip(shares, sizes, strict=True), reverse=True)
    return {"percent": [round(one, 2) for one, _ in rows], "megabytes": [round(one, 1) for _, one in rows]}


def operators(node: Place) -> Sequence[int]:
    """Return the processes of the operator, of which one leads; nodes have theirs in common."""
    listed = (line.split(None, 1) for line in node.run(["ps", "-eo", "pid,args"]).stdout.splitlines()[1:])
    return [
        int(pid) for pid, argv in listed if " devices --in-cluster " in argv and "python" in argv.split()[0]
    ]


def ticks(node: Place, pid: int) -> int:
    """Return the processor's time of a process, user's and system's (proc(5))."""
    fields = node.run(["cat", f"/proc/{pid}/stat"]).stdout.rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def megabytes(node: Place, pid: int) -> float:
    """Return a process's proportional set size."""
    shown = node.run(["cat", f"/proc/{pid}/smaps_rollup"]).stdout.splitlines()
    return sum(int(line.split()[1]) for line in shown if line.startswith("Pss:")) / 1000 * 1.024


def since(begun: float) -> float:
    """Return how many seconds have passed."""
    return round(time.monotonic() - begun, 1)


def told(**what: Any) -> None:
    """Print it."""
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main()
