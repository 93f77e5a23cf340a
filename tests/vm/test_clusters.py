"""Machines become clusters, carry a scenario, are found to be clusters already, and become machines again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from testbed.kubernetes.control_plane import ADMIN_KUBECONFIG, IN_CELL
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.vm.conftest import invoke, judged, skip_if_invalid

pytestmark = pytest.mark.usefixtures("nothing_left")

# Room for two kubelets with their containerds, or for a control plane; and a disturbance beside which a
# processor has time to spare.
OF_CLUSTERS = (
    "machine={cpus: 1, memory: 2560}",
    "disturbances[0].rate=2G",  # as all rates, before they are scaled
)
# On a host of half the usual speed the paths of four machines carried 8.6 to 45.8 Mbit/s in all, without any
# shaping: of two clusters' promises this leaves most of the processors to their control planes and kubelets.
SCALE_OF_THREE, SCALE_OF_FOUR = 0.001, 0.00025
# Samples are long enough for an emulated processor to make up for what it was late with, beyond the 84 ms of
# the class's burst: with two clusters half a second, at the worst.
TIMES_OF_THREE = (
    "measurement={interval: 4, warm_up: 12, repetitions: 1}",
    *(f"flows[{number}].duration=100" for number in range(2)),
    "disturbances[0].start=36",
    "disturbances[0].duration=32",
)
# Cluster b's workers have blocks of different sizes, given by its controller.
BLOCKS = (
    "nodes.worker-02={labels: {size: small}}",
    "clusters.b={master: master-02, workers: [worker-01, worker-02], flannel: {vni: 2}, pod_cidrs: ["
    "{name: large, cidr: 172.17.0.0/20, mask: 24},"
    "{name: small, cidr: 172.17.32.0/24, mask: 27, nodes: {size: small}}]}",
)
TIMES_OF_FOUR = (
    "measurement={interval: 10, warm_up: 20, repetitions: 1}",
    *(f"flows[{number}].duration=160" for number in range(3)),
    "disturbances[0].start=60",
    "disturbances[0].duration=50",
)
# Asks who has which block.
KUBECTL = (f"--kubeconfig={ADMIN_KUBECONFIG}", "get", "nodes", "--no-headers")
COLUMNS = "--output=custom-columns=:.metadata.name,:.spec.podCIDR"
# What provisioning changes on a machine: asked before and after.
STATE = """
ls -d /etc/systemd/system/* /etc/sysctl.d/* /etc/* /opt/* /run/* /var/* /var/lib/*
ls /sys/fs/cgroup/system.slice | grep @
ip -brief link | cut -d ' ' -f 1
sudo nft list tables
cat /proc/sys/net/ipv4/ip_forward
"""


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """What machines need of Kubernetes, from the programs that are kept."""
    made = invoke("kubernetes.bundle", "--to", str(tmp_path / "bundle"))
    if made.returncode != 0:
        pytest.skip(f"no Kubernetes to bring along: {made.stderr}")
    return tmp_path / "bundle"


@pytest.mark.parametrize(
    ("name", "overrides", "scale"),
    [("kubernetes", TIMES_OF_THREE, SCALE_OF_THREE), ("contmec", (*TIMES_OF_FOUR, *BLOCKS), SCALE_OF_FOUR)],
    ids=["kubernetes", "contmec"],
)
def test_machines_that_are_clusters_for_a_while(
    name: str,
    overrides: tuple[str, ...],
    scale: float,
    scenario_file: Callable[..., Path],
    bundle: Path,
    tmp_path: Path,
) -> None:
    file = scenario_file(name, *OF_CLUSTERS, *overrides, scale=scale)
    scenario = load(file)
    there = ("--provider", "vagrant", "--scenario", str(file))

    def run(*arguments: str) -> str:
        done = invoke(*arguments[:1], *there, *arguments[1:])
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def states() -> dict[str, set[str]]:
        found = {node: run("ssh", node, "--", "sh", "-c", STATE) for node in scenario.nodes}
        return {node: set(text.splitlines()) for node, text in found.items()}

    try:
        run("up")
        before = states()
        run("provision", "--from", str(bundle))
        for cluster, own in scenario.clusters.items():
            listed = run("ssh", own.master, "--", "sudo", IN_CELL, cluster, "kubectl", *KUBECTL, COLUMNS)
            given = Addressing(scenario).blocks(cluster).given
            assert [line.split() for line in listed.splitlines()] == [
                [node, str(given[node])] for node in sorted(own.nodes)
            ]
        said = judged(tmp_path / "reports", *there, "--orchestrator", "kubernetes")
        assert said["verdict"] != "violated", said["reasons"]
        again = run("provision", "--from", str(bundle))
        for node in scenario.nodes:
            assert f"{node} is as it should be: nothing had to be changed" in again
        run("provision", "--reset")
        left = {node: after - before[node] for node, after in states().items()}
        assert left == {node: set() for node in scenario.nodes}
    finally:
        gone = invoke("down", *there, "--destroy")
    assert gone.returncode == 0, gone.stdout + gone.stderr
    skip_if_invalid(said)
