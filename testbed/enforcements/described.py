"""A network that a description says all of: its plugins keep the promise, if anybody does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testbed import resources
from testbed.enforcements.enforcement import BURST, BURST_MILLISECONDS, Footprint, Guarded, Up
from testbed.runtime.cni import Attachment, NetworkList
from testbed.scenario import Pod, enforcements, links, placeholders, ports
from testbed.scenario.addressing import Addressing
from testbed.scenario.described import OURS
from testbed.scenario.description import BANDWIDTH, Description
from testbed.scenario.faults import Fault, meant
from testbed.scenario.faults import Path as FaultPath
from testbed.scenario.frames import frame_bytes, of_full_frames, payload_bytes
from testbed.scenario.quantities import format_rate


@dataclass(frozen=True)
class Described:
    """See testbed.enforcements.enforcement.Enforcement.

    What is made in code derives from it: its pods are attached by the network ``none``.
    """

    addressing: Addressing

    @property
    def description(self) -> Description:
        """What the scenario says of the network."""
        return enforcements.description_of(self.addressing.scenario)

    @property
    def programs(self) -> Path | None:
        """The directory of CNI plugins that nodes must be brought."""
        plugins = self.description.plugins
        if plugins is None:
            return None
        return resources.BUILT_PLUGIN if plugins == OURS else Path(plugins)

    @property
    def installed(self) -> bool:
        """Whether nodes that exist must have it installed, and configured as the scenario says."""
        return self.description.installed

    def prepare(self) -> None:
        """Build the plugin, if it is ours."""
        if self.description.plugins == OURS:
            resources.build_plugin()

    def network_list(self, cluster: str, node: str) -> NetworkList:
        """Return the configuration of one cluster's pod network on one of its nodes."""
        conflist = self.description.conflist
        assert conflist is not None, "missing() says so"
        open_ones = placeholders.used(conflist) | {"name"}
        whole = placeholders.filled(
            {"name": "${name}", **conflist}, {name: self._value(name, cluster, node) for name in open_ones}
        )
        return NetworkList(
            whole["name"],
            whole["plugins"],
            whole.get("cniVersion", "1.0.0"),
            disable_check=bool(whole.get("disableCheck", False)),
        )

    def attachment(self, pod: str) -> Attachment:
        """Return the attachment of a pod to the network of its cluster."""
        scenario = self.addressing.scenario
        return Attachment(
            container_id=f"{scenario.name}-{pod}",
            namespace=self.addressing.namespace(pod),
            capabilities=by_capabilities(self.description, scenario.pods[pod]),
            arguments={"IgnoreUnknown": "1", "K8S_POD_NAMESPACE": "default", "K8S_POD_NAME": pod.lower()},
        )

    def annotations(self, pod: Pod) -> dict[str, str]:
        """Return what a pod's manifest says about its bandwidth."""
        return by_annotations(self.description, pod)

    def capacity(self, cluster: str, node: str) -> int | None:
        """Return what a worker can promise: its link, or its classes less the reserve, as promises count.

        None of another's plugins: what asks the scheduler for room belongs to Concorde.
        """
        if self.description.plugins != OURS:
            return None
        link = self.description.link
        if link is None:
            return links.rate_of(self.addressing.scenario, node)
        return int(self._room(node) / self._on_uplink(cluster))

    def refused(self, pods: Collection[str]) -> Iterator[Fault]:
        """Yield the promises for which a node's classes have no room, as the plugin's ledger refuses them."""
        link, scenario = self.description.link, self.addressing.scenario
        if self.description.plugins != OURS or link is None:
            return
        taken: Counter[str] = Counter()
        for name, pod in scenario.pods.items():
            if name not in pods or not pod.promised or links.rate_of(scenario, pod.node) is None:
                continue
            takes = math.ceil(pod.promised * self._on_uplink(pod.cluster))
            free = int(self._room(pod.node)) - taken[pod.node]
            if takes <= free:
                taken[pod.node] += takes
                continue
            yield Fault(
                ("pods", name, "guarantee" if pod.guarantee else "answers"),
                f"no room for {format_rate(pod.promised)} on {pod.node}: with headers it takes "
                f"{takes / 1e6:g} Mbit/s of its link, and {free / 1e6:g} are free",
            )

    def install(self, up: Up) -> None:
        """Nothing is left to do: the plugins have done it."""

    def withdraw(self, up: Up) -> None:
        """Nothing was done."""

    def check(self, up: Up) -> list[str]:
        """Nothing besides what the plugins check themselves."""
        return []

    def guarded(self, up: Up) -> dict[str, Guarded]:
        """Return the eth0 of each pod with a guarantee, or the uplink of each node with such a pod."""
        pods = self.addressing.scenario.pods
        promised = {name: pod.node for name, pod in pods.items() if pod.guarantee is not None}
        match self.description.guards:
            case "pod":
                return {f"pod {name}": Guarded(up.pods[name], up.pods[name].interface) for name in promised}
            case "uplink":
                return {
                    f"node {node}": Guarded(up.nodes[node], self.addressing.uplink(node))
                    for node in dict.fromkeys(promised.values())
                }
            case None:
                return {}

    def counters(self, up: Up) -> dict[str, str]:
        """Nothing besides what every interface is asked."""
        return {}

    def footprint(self, node: str) -> Footprint:
        """Return what the description says that it leaves."""
        remains = self.description.remains
        trees = placeholders.filled(remains.trees, {"uplink": self.addressing.uplink(node)})
        return Footprint(tuple(remains.state), tuple(remains.tables), tuple(trees))

    def missing(self, here: bool) -> Iterator[Fault]:
        """Yield what is missing to attach pods so: a configuration list, a directory, a plugin."""
        field: FaultPath = ("enforcement",)
        description = self.description
        if description.conflist is None:
            words = (
                f"network {description.name} has no conflist: it is for clusters that exist (--kubeconfig)"
            )
            yield Fault(field, words)
        elif description.plugins not in (None, OURS) and not Path(description.plugins or "").is_dir():
            yield Fault((*field, "plugins"), f"no directory {description.plugins}")
        elif here:
            stated = not isinstance(self.addressing.scenario.enforcement, str)
            for at, words in self._missing_plugins(description.conflist):
                yield Fault((*field, "conflist", *at) if stated else field, words)

    def _missing_plugins(self, conflist: dict[str, Any]) -> Iterator[tuple[FaultPath, str]]:
        brought = {OURS} if self.description.plugins == OURS else set()
        own = [self.description.plugins] if self.description.plugins and not brought else []
        directories = [*own, *resources.REFERENCE_PLUGINS]
        there = brought | {file.name for one in directories for file in Path(one).glob("*")}
        for at, kind in _programs(conflist):
            if kind not in there:
                yield at, f"no plugin {kind!r} in {', '.join(directories)}{meant(kind, there)}"

    def _classes(self, node: str) -> int:
        """Return the rate that the classes of a node use, bits per second."""
        rate, link = links.rate_of(self.addressing.scenario, node), self.description.link
        assert rate is not None, "testbed.scenario.rules"
        assert link is not None, "testbed.scenario.description"
        return round(rate * link.share)

    def _room(self, node: str) -> float:
        """Return what a node can promise, bits per second of full frames.

        What offloaded packets do not count is given up, as the plugin does (concorde/node/records.py).
        """
        classes, link = self._classes(node), self.description.link
        assert link is not None, "testbed.scenario.description"
        more = self.addressing.scenario.underlay.frame_overhead
        return of_full_frames(of_full_frames(classes, more) - classes * link.reserve, more)

    def _on_uplink(self, cluster: str) -> float:
        """Return what a promise of one bit takes on a node's link, in bits of frames with all their headers.

        A promise counts frames as the pod sends them, or their payload; see testbed.scenario.frames.
        """
        mtu = self.addressing.pod_mtu(cluster)
        counted = (
            frame_bytes(mtu) if self.addressing.scenario.count == "layer2" else payload_bytes(mtu, "tcp")
        )
        return frame_bytes(mtu, self.addressing.overhead(cluster)) / counted

    def _value(self, placeholder: str, cluster: str, node: str) -> Any:
        """Return what stands for a placeholder (testbed.scenario.placeholders) on a node."""
        where = self.addressing
        match placeholder:
            case "name":
                return where.network_name(cluster)
            case "cluster":
                return cluster
            case "node":
                return node
            case "bridge":
                return where.bridge(cluster)
            case "subnet":
                return str(where.pod_range(cluster, node).subnet)
            case "gateway":
                return str(where.pod_range(cluster, node).gateway)
            case "range_start":
                return str(where.pod_range(cluster, node).first)
            case "range_end":
                return str(where.pod_range(cluster, node).last)
            case "subnet_file":
                return where.subnet_file(cluster)
            case "mtu":
                return where.pod_mtu(cluster)
            case "overhead":
                return where.overhead(cluster)
            case "frame_overhead":
                return where.scenario.underlay.frame_overhead
            case "uplink":
                return where.uplink(node)
            case "capacity":
                return str(self._classes(node))
            case "control_ports":
                return ports.control(where, node)
            case "count":
                return where.scenario.count
        raise AssertionError(f"testbed.scenario.placeholders knows {placeholder}")


def _programs(conflist: dict[str, Any]) -> Iterator[tuple[FaultPath, str]]:
    """Yield every plugin that a configuration list names, each with the path to its name there."""
    for index, plugin in enumerate(conflist["plugins"]):
        yield ("plugins", index, "type"), plugin["type"]
        ipam = plugin.get("ipam")
        if isinstance(ipam, dict) and isinstance(ipam.get("type"), str):
            yield ("plugins", index, "ipam", "type"), ipam["type"]


# The capability by which containerd hands on all of a pod's annotations.
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
LEAST_BURST = 40_000  # bits


def by_annotations(description: Description, pod: Pod) -> dict[str, str]:
    """Return what a pod's manifest says about its bandwidth."""
    if description.told == "nothing":
        return {}
    keys = description.annotations
    limit = _limit(description, pod)
    rates = {
        keys.guarantee: pod.guarantee,
        keys.answers: pod.answers,
        keys.ceiling: limit if "egress" in description.direction else None,
        keys.ingress: limit if "ingress" in description.direction else None,
    }
    return {key: format_rate(rate) for key, rate in rates.items() if key is not None and rate is not None}


def by_capabilities(description: Description, pod: Pod) -> dict[str, Any]:
    """Return what a runtime hands to plugins that declare these capabilities, in containerd's spelling.

    The burst is the paper's unless the network says another: containerd's own, 2^32 - 1 bits, lets a pod send
    for seconds without any limit (kubernetes/kubernetes#90839), which would be no comparison.
    """
    offered: dict[str, Any] = {ANNOTATIONS: by_annotations(description, pod)}
    limit = _limit(description, pod)
    if limit is not None and description.told != "nothing":
        bits = burst(description, limit)
        inward, outward = ("ingress" in description.direction), ("egress" in description.direction)
        offered[BANDWIDTH] = {
            "IngressRate": limit if inward else 0,
            "IngressBurst": bits if inward else 0,
            "EgressRate": limit if outward else 0,
            "EgressBurst": bits if outward else 0,
        }
    return offered


def burst(description: Description, limit: int) -> int:
    """Return the bits that a pod may send at once beside a limit in bits per second."""
    if description.burst is not None:
        return description.burst
    return min(8 * BURST, max(limit * BURST_MILLISECONDS // 1000, LEAST_BURST))


def _limit(description: Description, pod: Pod) -> int | None:
    """Return what a pod is limited to, bits per second; what knows only limits is told promises as such."""
    if description.annotations.guarantee is not None or pod.guarantee is None:
        return pod.ceiling
    return pod.guarantee
