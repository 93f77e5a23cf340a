"""The Concorde plugin as the testbed sees it: a program to build, and a network configuration to write."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed.cni import Json, NetworkList
from testbed.networks import flannel
from testbed.quantities import format_rate
from testbed.scenario import Pod, Scenario

ROOT = Path(__file__).resolve().parent.parent
DIRECTORY = ROOT / "build" / "cni"
# Where Debian and Kubernetes put the reference plugins.
REFERENCE_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni")

GUARANTEE = "concorde.contmec.dev/egress-guarantee"
CEILING = "kubernetes.io/egress-bandwidth"
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"


def build() -> Path:
    """Build the plugin for the interpreter of its first line; return the directory for CNI_PATH."""
    subprocess.run(
        ["/usr/bin/python3", "-I", str(ROOT / "plugin" / "build.py"), "--output", str(DIRECTORY)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return DIRECTORY


def network_list(scenario: Scenario, cluster: str) -> NetworkList:
    """Return the configuration of one cluster's pod network, the same on each of its nodes."""
    return NetworkList(
        name=f"cluster-{cluster}",
        plugins=[
            {
                "type": "concorde",
                "bridge": f"cni-{cluster}",
                "subnetFile": flannel.subnet_file(cluster),
                "enforcement": scenario.enforcement,
                "count": scenario.count,
                "capabilities": {"bandwidth": True, ANNOTATIONS: True},
            }
        ],
    )


def pod_annotations(pod: Pod) -> dict[str, str]:
    """Return what a pod's deployment file says about its bandwidth."""
    stated = {GUARANTEE: pod.guarantee, CEILING: pod.ceiling}
    return {name: format_rate(rate) for name, rate in stated.items() if rate is not None}


def capabilities(pod: Pod) -> Json:
    """Return what containerd hands to plugins that declare these capabilities, in its own spelling.

    containerd fills ``bandwidth`` from the standard annotations, with capitalised keys and a burst of
    2^32 - 1 bits, and leaves it out when the pod asks for no limit.
    """
    offered: Json = {ANNOTATIONS: pod_annotations(pod)}
    if pod.ceiling is not None:
        offered["bandwidth"] = {
            "IngressRate": 0,
            "IngressBurst": 0,
            "EgressRate": pod.ceiling,
            "EgressBurst": 2**32 - 1,
        }
    return offered
