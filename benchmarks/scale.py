"""How a testbed's cost grows with its size, beside Mininet's: time up and down, memory, processes started.

Two families: two clusters that share all their workers, with five pods a worker and their promises kept at
the nodes; and one cluster with one pod a worker. Each size is a whole ``./invokew up`` and ``down``, imports
and all. Beside it, imports not counted, Mininet builds two things. *Nodes* is as many hosts as there are
nodes, each with a link to one Linux bridge: the goals are for this, and all that was measured earlier. *All*
is as many Linux bridges as there are nodes, and as many hosts as there are pods, each with a link to one of
them. Both are less: a host of Mininet's has a network namespace and an address, where a node has a file
system of its own too, a cable to a switch, a VXLAN device for each cluster with an entry for every other
node, and a CNI plugin's bridge, leases and classes for its pods.

After ``down`` nothing runs any more, but the kernel still dismantles what there was, and whoever makes
network namespaces meanwhile waits for it: that is the column *cleared*. What comes next here waits for it.

Needs an idle machine; sizes and families are options. Memory is the whole machine's MemAvailable.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.beside import Measured, build_plugin, clear_up, clock, mininet  # noqa: E402
from testbed.scenario import Scenario, render_yaml  # noqa: E402

NAME = "scale-benchmark"
MOST_HOSTS = 1023  # ports of Mininet's one bridge


class Family(NamedTuple):
    """Scenarios that differ in the number of their nodes."""

    clusters: int
    pods: int  # on each worker
    sizes: tuple[int, ...]
    goals: dict[int, float]  # up, at most so many times what Mininet takes for the nodes, by size


FAMILIES = {
    "overlapped": Family(2, 5, (10, 50, 100, 200), {100: 6, 200: 6}),
    "single": Family(1, 1, (10, 50, 100, 200, 500, 1000), {1000: 3}),
}
DOWN_GOAL_SECONDS = 0.5


def scenario(nodes: int, clusters: int, pods: int) -> Scenario:
    """Return a scenario of clusters that share all their workers, with so many pods on each of them.

    Every pod is promised 10 Mbit/s of its node's link.
    """
    names = [f"node-{number}" for number in range(nodes)]
    masters, workers = names[:clusters], names[clusters:]
    called = [f"c{number}" for number in range(clusters)]
    return Scenario.model_validate(
        {
            "name": "scale",
            "underlay": {"cidr": "192.168.0.0/16", "rate": "10G"},
            "nodes": {name: {} for name in names},
            "clusters": {
                cluster: {
                    "master": masters[number],
                    "workers": workers,
                    "pod_cidr": f"10.{16 * number}.0.0/12",
                    "flannel": {"vni": number + 1},
                }
                for number, cluster in enumerate(called)
            },
            "enforcement": "node",
            "pods": {
                f"{worker}-pod-{number}": {
                    "cluster": called[number % clusters],
                    "node": worker,
                    "guarantee": "10M",
                }
                for worker in workers
                for number in range(pods)
            },
            "flows": [{"from": f"{workers[0]}-pod-0", "to": f"{workers[1]}-pod-0"}],
        }
    )


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--family", choices=FAMILIES, action="append", help="default: all")
    options.add_argument("--nodes", type=int, action="append", help="a size; default: each family's own")
    options.add_argument("--without-mininet", action="store_true", help="measure the testbed alone")
    asked = options.parse_args()
    build_plugin()
    for name in asked.family or FAMILIES:
        family = FAMILIES[name]
        print(f"\n{name}: clusters {family.clusters}, pods a worker {family.pods}; seconds, MiB")
        print(
            f"{'nodes':>6}{'pods':>6}{'up':>8}{'down':>8}{'cleared':>9}{'memory':>8}{'processes':>10}", end=""
        )
        print(f"{'nodes: up':>12}{'down':>8}{'memory':>8}{'all: up':>12}{'down':>8}{'memory':>8}")
        for nodes in asked.nodes or family.sizes:
            row(family, nodes, asked.without_mininet)


def row(family: Family, nodes: int, alone: bool) -> None:
    """Measure one size, and print it."""
    one = scenario(nodes, family.clusters, family.pods)
    clear_up()
    before = started()
    ours = bring_up(one)
    processes = started() - before
    seconds = f"{ours.up:8.2f}{ours.down:8.2f}{clear_up():9.1f}"
    print(f"{nodes:6}{len(one.pods):6}{seconds}{ours.mebibytes:8.0f}{processes:10}", end="", flush=True)
    theirs = {} if alone or nodes > MOST_HOSTS else beside(nodes, len(one.pods))
    print(flush=True)
    verdict(f"down below {DOWN_GOAL_SECONDS:g} s", ours.down < DOWN_GOAL_SECONDS)
    if theirs:
        ratios = {what: ours.up / measured.up for what, measured in theirs.items()}
        print("up in " + ", ".join(f"{ratio:.1f} times {what}" for what, ratio in ratios.items()), flush=True)
        if (goal := family.goals.get(nodes)) is not None:
            verdict(f"up in at most {goal:g} times nodes", ratios["nodes"] <= goal)


def beside(nodes: int, pods: int) -> dict[str, Measured]:
    """Measure Mininet and print it; empty where it is not installed."""
    theirs = {}
    for what, switches, hosts in (("nodes", 1, nodes), ("all", nodes, pods)):
        if (one := mininet(switches, hosts)) is None:
            return {}
        print(f"{one.up:12.2f}{one.down:8.2f}{one.mebibytes:8.0f}", end="", flush=True)
        theirs[what] = one
        clear_up()
    return theirs


def verdict(goal: str, reached: bool) -> None:
    """Print whether a goal is reached."""
    print(f"goal {'reached' if reached else 'MISSED'}: {goal}", flush=True)


def bring_up(one: Scenario) -> Measured:
    """Bring a scenario up, as people do, and down again."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "scenario.yaml"
        file.write_text(render_yaml(one), encoding="utf-8")
        return clock(
            lambda: invokew("up", "--scenario", str(file), "--name", NAME),
            lambda: invokew("down", "--name", NAME),
        )


def invokew(*arguments: str) -> None:
    """Run a command. Raises CalledProcessError."""
    subprocess.run([ROOT / "invokew", *arguments], check=True, stdout=subprocess.DEVNULL)


def started() -> int:
    """Return how many processes have been started since this machine was (proc(5), /proc/stat)."""
    lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("processes "))


if __name__ == "__main__":
    main()
