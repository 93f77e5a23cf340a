"""The Concorde plugin as the testbed sees it: a program to build, and a network configuration to write.

What all enforcements have in common that have a half in the plugin, or are measured with its pods.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from testbed import resources
from testbed.enforcements import paper
from testbed.enforcements.enforcement import Footprint, Guarded, Up
from testbed.networks.cni import Attachment, Json, NetworkList
from testbed.scenario import Pod, links
from testbed.scenario.addressing import Addressing
from testbed.scenario.quantities import format_rate

DIRECTORY = resources.BUILT_PLUGIN
# Where Debian and Kubernetes put the reference plugins.
REFERENCE_DIRECTORIES = ("/opt/cni/bin", "/usr/lib/cni")

GUARANTEE = "concorde.contmec.dev/egress-guarantee"
CEILING = "kubernetes.io/egress-bandwidth"
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"

STATE = "/run/concorde"
# The plugin's, whatever the enforcement (plugin/concorde/node/tables.py).
TABLES = (("ip", "concorde"), ("ip6", "concorde"), ("bridge", "concorde"))


def build(directory: Path = DIRECTORY) -> Path:
    """Build the plugin for the interpreter of its first line; return the directory for CNI_PATH."""
    subprocess.run(
        ["/usr/bin/python3", "-I", str(resources.PLUGIN / "build.py"), "--output", str(directory)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return directory


@dataclass(frozen=True)
class Concorde:
    """Pods attached by the plugin; see testbed.enforcements.enforcement.Enforcement."""

    addressing: Addressing

    programs: ClassVar[Path | None] = DIRECTORY
    installed: ClassVar[bool] = False
    in_plugin: ClassVar[str] = "none"  # what the plugin calls its half

    def prepare(self) -> None:
        """Build the plugin."""
        build()

    def network_list(self, cluster: str, node: str) -> NetworkList:
        """Return the configuration of one cluster's pod network on one of its nodes."""
        scenario = self.addressing.scenario
        configuration: Json = {
            "type": "concorde",
            "bridge": self.addressing.bridge(cluster),
            "subnetFile": self.addressing.subnet_file(cluster),
            "enforcement": self.in_plugin,
            "count": scenario.count,
            "capabilities": {ANNOTATIONS: True},
            **self.settings(cluster, node),
        }
        return NetworkList(self.addressing.network_name(cluster), [configuration])

    def settings(self, cluster: str, node: str) -> Json:
        """Return what the configuration of a cluster says of a node besides."""
        return {}

    def attachment(self, pod: str) -> Attachment:
        """Return the attachment of a pod to the network of its cluster."""
        scenario = self.addressing.scenario
        return Attachment(
            container_id=f"{scenario.name}-{pod}",
            namespace=self.addressing.namespace(pod),
            capabilities=self._capabilities(scenario.pods[pod]),
            arguments={"IgnoreUnknown": "1", "K8S_POD_NAMESPACE": "default", "K8S_POD_NAME": pod.lower()},
        )

    def annotations(self, pod: Pod) -> dict[str, str]:
        """Return what a pod's manifest says about its bandwidth."""
        return stated(pod.guarantee, pod.ceiling)

    def capacity(self, cluster: str, node: str) -> int | None:
        """Return the rate of a worker's link, bits per second, if it is known."""
        return links.rate_of(self.addressing.scenario, node)

    def install(self, up: Up) -> None:
        """Nothing is left to do: the plugin has done it."""

    def withdraw(self, up: Up) -> None:
        """Nothing was done."""

    def check(self, up: Up) -> list[str]:
        """Nothing besides what the plugin checks itself."""
        return []

    def guarded(self, up: Up) -> dict[str, Guarded]:
        """No interface must have classes."""
        return {}

    def counters(self, up: Up) -> dict[str, str]:
        """Nothing besides what every interface is asked."""
        return {}

    def footprint(self, node: str) -> Footprint:
        """Return the plugin's state and tables."""
        return Footprint(STATE, TABLES)

    def limit(self, pod: Pod) -> int | None:
        """Return what a runtime says a pod is limited to, bits per second."""
        return pod.ceiling

    def _capabilities(self, pod: Pod) -> Mapping[str, Any]:
        """Return what a runtime hands to plugins that declare these capabilities, in containerd's spelling.

        The burst is the paper's: containerd's own, 2^32 - 1 bits, lets a pod send for seconds without any
        limit (kubernetes/kubernetes#90839), which would be no comparison.
        """
        offered: Json = {ANNOTATIONS: stated(pod.guarantee, pod.ceiling)}
        limit = self.limit(pod)
        if limit is not None:
            burst = min(8 * paper.BURST, max(limit * paper.BURST_MILLISECONDS // 1000, 40_000))
            offered["bandwidth"] = {
                "IngressRate": 0,
                "IngressBurst": 0,
                "EgressRate": limit,
                "EgressBurst": burst,  # bits
            }
        return offered


def stated(guarantee: int | None, ceiling: int | None) -> dict[str, str]:
    """Return the annotations of a deployment file with these rates, bits per second."""
    rates = {GUARANTEE: guarantee, CEILING: ceiling}
    return {name: format_rate(rate) for name, rate in rates.items() if rate is not None}
