"""The Concorde plugin as the testbed sees it: a program to build, and a network configuration to write."""

from __future__ import annotations

import subprocess
from pathlib import Path

from testbed import resources
from testbed.networks.cni import Json, NetworkList
from testbed.scenario import Pod, Scenario, addressing, ports
from testbed.scenario.quantities import format_rate

DIRECTORY = resources.BUILT_PLUGIN
# Where Debian and Kubernetes put the reference plugins.
REFERENCE_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni")

# A node's tree is a little slower than its link, so that packets queue where they are told apart, on the
# node, and not at the switch, which knows no pods.
NODE_SHARE = 0.99
PAPER_BURST_BITS = 8 * 10 * 2**20  # the paper's burst of 10 MiB (fig. 10) ...
PAPER_BURST_MILLISECONDS = 84  # ... which is this long at the least of its rates, 1 Gbit/s

GUARANTEE = "concorde.contmec.dev/egress-guarantee"
CEILING = "kubernetes.io/egress-bandwidth"
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"


def build(directory: Path = DIRECTORY) -> Path:
    """Build the plugin for the interpreter of its first line; return the directory for CNI_PATH."""
    subprocess.run(
        ["/usr/bin/python3", "-I", str(resources.PLUGIN / "build.py"), "--output", str(directory)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return directory


def network_list(scenario: Scenario, cluster: str, node: str) -> NetworkList:
    """Return the configuration of one cluster's pod network on one of its nodes."""
    name = f"cluster-{cluster}"
    if scenario.enforcement == "bandwidth":
        # CHECK of the reference bandwidth plugin crashes for a pod without a limit (release 1.1.1).
        return NetworkList(name, _reference_chain(scenario, cluster, node), disable_check=True)
    return NetworkList(name, [_concorde(scenario, cluster, node)])


def _concorde(scenario: Scenario, cluster: str, node: str) -> Json:
    configuration: Json = {
        "type": "concorde",
        "bridge": f"cni-{cluster}",
        "subnetFile": addressing.subnet_file(cluster),
        "enforcement": scenario.enforcement,
        "count": scenario.count,
        "capabilities": {ANNOTATIONS: True},
    }
    if scenario.enforcement == "node":
        assert scenario.underlay.rate is not None
        configuration["uplink"] = addressing.uplink(scenario, node)
        configuration["controlPorts"] = ports.control(scenario, node)
        configuration["capacity"] = str(round(scenario.underlay.rate * NODE_SHARE))
    return configuration


def _reference_chain(scenario: Scenario, cluster: str, node: str) -> list[Json]:
    """Return the reference plugins as a cluster without Concorde uses them; they only know limits."""
    return [
        {
            "type": "bridge",
            "bridge": f"cni-{cluster}",
            "isGateway": True,
            "mtu": addressing.pod_mtu(scenario),
            "ipam": {
                "type": "host-local",
                "dataDir": "/run/cni-addresses",
                "ranges": [[{"subnet": str(scenario.pod_subnet(cluster, node))}]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        },
        {"type": "bandwidth", "capabilities": {"bandwidth": True}},
    ]


def pod_annotations(pod: Pod) -> dict[str, str]:
    """Return what a pod's deployment file says about its bandwidth."""
    stated = {GUARANTEE: pod.guarantee, CEILING: pod.ceiling}
    return {name: format_rate(rate) for name, rate in stated.items() if rate is not None}


def capabilities(scenario: Scenario, pod: Pod) -> Json:
    """Return what a runtime hands to plugins that declare these capabilities, in containerd's spelling.

    The reference plugin knows only limits, so there the guarantee is written as what it understands. Its
    burst is the paper's: containerd's own, 2^32 - 1 bits, lets a pod send for seconds without any limit
    (kubernetes/kubernetes#90839), which would be no comparison.
    """
    offered: Json = {ANNOTATIONS: pod_annotations(pod)}
    limit = pod.guarantee if scenario.enforcement == "bandwidth" else pod.ceiling
    if limit is not None:
        offered["bandwidth"] = {
            "IngressRate": 0,
            "IngressBurst": 0,
            "EgressRate": limit,
            "EgressBurst": min(PAPER_BURST_BITS, max(limit * PAPER_BURST_MILLISECONDS // 1000, 40_000)),
        }
    return offered
