"""How long a pod waits for its network: Concorde beside the reference plugins, and on a crowded node; and for
`concorde-networks`, of which it wants nothing.

Everything happens in namespaces of its own, which end with this process. Needs root, Debian's
containernetworking-plugins and iproute2. Prints medians with their range beside the goals; a missed goal
is a line to read, not a failure, because the machine matters.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = Path("/usr/lib/cni")
INSIDE = "--inside"
ROUNDS = 60
THEIRS = "bridge+host-local+bandwidth"
# By enforcement: ADD, and both together, at most so many times what the reference chain takes.
GOALS = {"pod": (1.4, 1.0), "node": (1.6, 1.1)}
MOST_FABRIC = 2.0  # milliseconds that ADD takes more with `fabric` than with `node`
UPLINK = {"uplink": "uplink", "capacity": "1T"}
# By enforcement: its network, and what is said besides. A fabric has an uplink of its own.
OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "pod": ("172.16.0.0/16", UPLINK),
    "node": ("172.17.0.0/17", UPLINK),
    "fabric": ("172.18.0.0/18", {**UPLINK, "uplink": "fabric", "fabric": {"nodes": ["192.168.9.0/24"]}}),
}
CROWD = 1000
PROMISED_CROWD = 250
WINDOW = 20  # how many ADDs around the 10th and the 1,000th are measured
RATE = 1_000_000_000
MOST_UNASKED = 3.0  # milliseconds

Document = dict[str, Any]


def main() -> None:
    """Measure inside a sandbox and print."""
    if INSIDE not in sys.argv:
        sandbox = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        subprocess.run([*sandbox, sys.executable, __file__, INSIDE], check=True)
        return
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
    Path("/run/netns").mkdir()
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, ROOT / "plugin/build.py", "--output", directory], check=True)
        plugin = Path(directory) / "concorde"
        unasked(plugin.with_name("concorde-networks"))
        compare(plugin)
        crowd(plugin, CROWD, 1.1, {})
        crowd(plugin, PROMISED_CROWD, 1.3, {"enforcement": "node", **UPLINK})


def unasked(plugin: Path) -> None:
    """ADD for a pod that asks for no further network, from a call as libcni writes it to the answer."""
    previous = {
        "cniVersion": "1.0.0",
        "interfaces": [{"name": "eth0", "mac": "0a:58:ac:10:01:02", "sandbox": "/run/netns/pod"}],
        "ips": [{"address": "172.16.1.2/24", "gateway": "172.16.1.1", "interface": 0}],
    }
    document = {**concorde_configuration(""), "type": plugin.name, "prevResult": previous}
    document["runtimeConfig"]["io.kubernetes.cri.pod-annotations"]["others"] = 1000 * "x"
    content = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        done = subprocess.run([plugin], input=content, env={"CNI_COMMAND": "ADD"}, capture_output=True)
        times.append(time.perf_counter() - start)
        assert json.loads(done.stdout) == previous
    print(f"ADD of a pod that asks for no further network, {ROUNDS} times, milliseconds")
    median = line("concorde-networks ADD", times)
    verdict(f"at most {MOST_UNASKED} ms: {median:.2f}", median <= MOST_UNASKED)
    print()


def compare(plugin: Path) -> None:
    """ADD and DEL with shaping, Concorde's enforcements and the reference chain by turns.

    Each network has a pod that stays: before a network's first, Concorde looks at what is around it.
    """
    print(f"ADD and DEL of one shaped pod, {ROUNDS} rounds by turns, milliseconds")
    print(f"{'':36}{'median':>9}{'least':>9}{'most':>9}")
    add_uplink()
    add_uplink(name="fabric")
    runs: dict[str, Callable[..., tuple[float, float]]] = {
        f"concorde {enforcement}": partial(concorde, plugin, enforcement) for enforcement in OURS
    }
    if all((REFERENCE / name).exists() for name in ("bridge", "host-local", "bandwidth")):
        runs[THEIRS] = reference
    else:
        print("reference plugins: not installed")
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for name, one in runs.items():
        make_namespaces([pod := f"first-of-{len(name)}"])
        line(f"{name} ADD, a network's first", [one(pod, stays=True)[0]])
    for number in range(ROUNDS + 2):
        for name, one in runs.items():
            pod = f"pod-{number}-of-{len(name)}"
            make_namespaces([pod])
            times[name].append(one(pod))
            subprocess.run(["ip", "netns", "delete", pod], check=True)
    medians = {}
    for name, all_pairs in times.items():
        pairs = all_pairs[2:]  # the first two filled the caches
        add = line(f"{name} ADD", [add for add, _ in pairs])
        line(f"{name} DEL", [delete for _, delete in pairs])
        medians[name] = add, line(f"{name} both", [add + delete for add, delete in pairs])
    more = medians["concorde fabric"][0] - medians["concorde node"][0]
    verdict(f"fabric: ADD at most {MOST_FABRIC} ms more than node: {more:.2f}", more <= MOST_FABRIC)
    for enforcement, most in GOALS.items() if THEIRS in medians else ():
        for what, ours, theirs, factor in zip(
            ("ADD", "ADD + DEL"), medians[f"concorde {enforcement}"], medians[THEIRS], most, strict=True
        ):
            goal = f"{enforcement}: {what} at most {factor} times the reference's: {ours / theirs:.2f}"
            verdict(goal, ours <= factor * theirs)


def add_uplink(node: Sequence[str] = (), name: str = "uplink") -> None:
    """What promises are kept on; it leads nowhere."""
    link = ["link", "add", name, "type", "veth", "peer", "name", f"{name}-end"]
    subprocess.run(["ip", *node, *link], check=True)


def crowd(plugin: Path, size: int, most: float, keys: Document) -> None:
    """ADD on a node with few pods and on a crowded one, by turns.

    By turns, because filling a node takes half a minute, in which the rest of the machine changes: both
    nodes are network namespaces, and what else the machine does falls on both alike. The crowded node's
    own first pods are shown too; they were measured before the machine had a thousand namespaces.
    """
    enforcement = keys.get("enforcement", "pod")
    configuration = {**concorde_configuration("172.30.0.0/21"), **keys}
    few_node, crowded = f"few-{enforcement}", f"crowded-{enforcement}"
    pods = [f"{enforcement}-{number}" for number in range(1, size + 2 * WINDOW)]
    make_namespaces([few_node, crowded, *pods])
    for node in (few_node, crowded):
        add_uplink(["-n", node])

    def add(node: str) -> float:
        pod = pods.pop(0)
        enter = ["nsenter", f"--net=/run/netns/{node}"]
        asked = {**configuration, "stateDir": f"/run/{node}"}
        return clock(lambda: call(plugin, "ADD", pod, asked, enter))[0]

    first = [add(crowded) for _ in range(WINDOW)]
    for _ in range(size - WINDOW - WINDOW // 2):
        add(crowded)
    turns = [(add(few_node), add(crowded)) for _ in range(WINDOW)]
    print(f"\nADD with enforcement {enforcement}, {WINDOW} pods around the one named, milliseconds")
    line("10th pod, before the crowd", first)
    few = line("10th pod, by turns", [seconds for seconds, _ in turns])
    many = line(f"{size}th pod, by turns", [seconds for _, seconds in turns])
    verdict(f"{size}th at most {most} times the 10th: {many / few:.2f}", many <= most * few)


def concorde(plugin: Path, enforcement: str, pod: str, stays: bool = False) -> tuple[float, float]:
    """Seconds an ADD took, and a DEL unless the pod stays."""
    subnet, keys = OURS[enforcement]
    configuration = {**concorde_configuration(subnet), "enforcement": enforcement, **keys}
    add, result = clock(lambda: call(plugin, "ADD", pod, configuration))
    if stays:
        return add, 0
    delete, _ = clock(lambda: call(plugin, "DEL", pod, {**configuration, "prevResult": result}))
    return add, delete


def concorde_configuration(subnet: str) -> Document:
    """As containerd passes it for a pod with a guarantee."""
    name = "ours-" + subnet.partition("/")[2]
    annotations = {"concorde.contmec.dev/egress-guarantee": str(RATE)}
    return {
        "cniVersion": "1.0.0",
        "name": name,
        "type": "concorde",
        "subnet": subnet,
        "mtu": 1450,
        "runtimeConfig": {"io.kubernetes.cri.pod-annotations": annotations},
    }


def reference(pod: str, stays: bool = False) -> tuple[float, float]:
    """The same of the reference chain."""
    common = {"cniVersion": "1.0.0", "name": "theirs"}
    ipam = {"type": "host-local", "subnet": "172.20.0.0/16", "dataDir": "/run/theirs"}
    bridge = {
        **common,
        "type": "bridge",
        "bridge": "theirs",
        "isDefaultGateway": True,
        "mtu": 1450,
        "ipam": ipam,
    }
    rate = {"egressRate": RATE, "egressBurst": 80_000_000}
    bandwidth = {**common, "type": "bandwidth", "runtimeConfig": {"bandwidth": rate}}

    def add() -> Document:
        first = call(REFERENCE / "bridge", "ADD", pod, bridge)
        return call(REFERENCE / "bandwidth", "ADD", pod, {**bandwidth, "prevResult": first})

    added, result = clock(add)

    def delete() -> Document:
        call(REFERENCE / "bandwidth", "DEL", pod, {**bandwidth, "prevResult": result})
        return call(REFERENCE / "bridge", "DEL", pod, {**bridge, "prevResult": result})

    return added, 0 if stays else clock(delete)[0]


def call(plugin: Path, verb: str, pod: str, configuration: Document, enter: Sequence[str] = ()) -> Document:
    """Execute a plugin as libcni does, on another node if told how to enter it.

    Raises RuntimeError with its answer when it fails.
    """
    environment = {
        "CNI_COMMAND": verb,
        "CNI_CONTAINERID": pod,
        "CNI_NETNS": f"/run/netns/{pod}",
        "CNI_IFNAME": "eth0",
        "CNI_PATH": f"{plugin.parent}:{REFERENCE}",
        "PATH": os.environ["PATH"],
    }
    done = subprocess.run(
        [*enter, plugin], input=json.dumps(configuration).encode(), env=environment, capture_output=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{plugin.name} {verb}: {done.stdout.decode()} {done.stderr.decode()}")
    answer: Document = json.loads(done.stdout or "{}")
    return answer


def clock(action: Callable[[], Document]) -> tuple[float, Document]:
    """How many seconds something took, and what it returned."""
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def make_namespaces(pods: list[str]) -> None:
    """Pods' network namespaces."""
    batch = "".join(f"netns add {pod}\n" for pod in pods)
    subprocess.run(["ip", "-batch", "-"], input=batch.encode(), check=True)


def line(title: str, seconds: list[float]) -> float:
    """Print one row; the median in milliseconds."""
    milliseconds = [1000 * value for value in seconds]
    median = statistics.median(milliseconds)
    print(f"{title:36}{median:9.1f}{min(milliseconds):9.1f}{max(milliseconds):9.1f}", flush=True)
    return median


def verdict(goal: str, reached: bool) -> None:
    """Print whether a goal is reached."""
    print(f"goal {'reached' if reached else 'MISSED'}: {goal}", flush=True)


if __name__ == "__main__":
    main()
