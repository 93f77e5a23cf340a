"""A runtime in a hurry, run as a program on a node: many calls at once, some of them killed.

Prints a JSON object: pod -> its result's address, or null where the plugin was killed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def call(plugin: str, verb: str, pod: str, network: dict[str, Any], patience: float | None) -> str | None:
    """Call the plugin; kill it once patience (seconds) runs out."""
    environment = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": pod,
        "CNI_IFNAME": "eth0",
        "CNI_NETNS": f"/run/netns/{pod}",
        "PATH": os.environ["PATH"],
    }
    pipe = subprocess.PIPE
    process = subprocess.Popen([plugin], stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
    try:
        stdout, stderr = process.communicate(json.dumps(network).encode(), timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        stdout, stderr = process.communicate()
        if process.returncode != 0:
            return None
    if process.returncode != 0 or stderr:
        raise RuntimeError(f"{verb} {pod}: {stdout.decode()} {stderr.decode()}")
    answer = json.loads(stdout or b"{}")
    return str(answer["ips"][0]["address"]) if verb == "ADD" else ""


def main() -> None:
    """Read plugin, verb, pods with their networks, share of killed calls and seed from standard input."""
    work = json.load(sys.stdin)
    chance = random.Random(work["seed"])
    # Alone, an ADD takes about 20 ms and a DEL 30; with many at once each takes as many times longer.
    calls = [
        (pod, network, chance.uniform(0, work["longest"]) if chance.random() < work["killed"] else None)
        for pod, network in work["pods"]
    ]
    with ThreadPoolExecutor(work["at_once"]) as pool:
        futures = {
            pod: pool.submit(call, work["plugin"], work["verb"], pod, network, patience)
            for pod, network, patience in calls
        }
        json.dump({pod: future.result() for pod, future in futures.items()}, sys.stdout)


if __name__ == "__main__":
    main()
