"""What keeps the promises of one scenario's pods: plugins, as a description says, or what is made in code."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from testbed import resources
from testbed.access.place import Place, PodPlace
from testbed.links import segments
from testbed.runtime.cni import ANNOTATIONS, Attachment, NetworkList
from testbed.scenario import Pod, descriptions, enforcements, links
from testbed.scenario.addressing import Addressing
from testbed.scenario.connections import INTERFACE
from testbed.scenario.descriptions import BANDWIDTH, OURS, Description
from testbed.scenario.faults import Fault, meant
from testbed.scenario.faults import Path as FaultPath
from testbed.scenario.frames import frame_bytes, of_full_frames, payload_bytes
from testbed.scenario.units import format_rate

# The paper's burst: 10 MiB at 1 Gbit/s (fig. 10), and as long at lower rates.
BURST = 10 * 2**20  # bytes
BURST_MILLISECONDS = 84  # how long that lasts at the least of the paper's rates, 1 Gbit/s

# A worker's bandwidth as an extended resource, so that the scheduler knows what fits on no node at all. It
# counts what guarantees count, in bits per second: a pod asks for exactly what its annotations say. Each
# cluster's scheduler sees the whole of an overlapped worker; what the other cluster holds there only the
# plugin's ledger knows, and has the last word. Where what pods receive can be promised, that is another one.
RESOURCE = "concorde.contmec.dev/egress"
INGRESS_RESOURCE = "concorde.contmec.dev/ingress"
RESOURCES = RESOURCE, INGRESS_RESOURCE


class Up(Protocol):
    """A testbed that is up, as far as an enforcement must know it."""

    @property
    def nodes(self) -> Mapping[str, Place]:
        """The nodes, by name."""

    @property
    def pods(self) -> Mapping[str, PodPlace]:
        """The running pods, by name."""


class Guarded(NamedTuple):
    """An interface by which packets may only leave through classes."""

    place: Place
    interface: str


class _Promise(NamedTuple):
    """What is promised on a link."""

    path: FaultPath  # of the field that says it
    link: str  # whose it is, in words
    rate: int | None  # the link's, bits per second
    wanted: int  # what is promised, as promises count
    factor: float  # by what that grows on the link


@dataclass(frozen=True)
class Footprint:
    """What an enforcement makes on a node, beside the pods' own interfaces."""

    state: Sequence[str] = ()  # directories in which it keeps what it knows
    tables: Sequence[tuple[str, str]] = ()  # of nftables: family and name
    trees: Sequence[str] = ()  # interfaces of the node whose root qdisc is its own


@dataclass(frozen=True)
class Enforcement:
    """Keeps the promises of one scenario's pods: by the plugins of a network that a description says.

    What is made in code derives from it: its pods are attached by the network ``none``.
    """

    addressing: Addressing

    @property
    def description(self) -> Description:
        """What the scenario says of the network."""
        return enforcements.description_of(self.addressing.scenario)

    @property
    def programs(self) -> Path | None:
        """The directory of CNI plugins that nodes must be brought, once ``prepare`` has made it."""
        plugins = self.description.plugins
        if plugins is None:
            return None
        return resources.BUILT_PLUGIN if plugins == OURS else Path(plugins)

    @property
    def installed(self) -> bool:
        """Whether nodes that exist must have it installed, and configured as the scenario says."""
        return self.description.installed

    @property
    def admits_ingress(self) -> bool:
        """Whether what pods receive can be promised a rate."""
        return self.description.annotations.receives is not None

    def prepare(self) -> None:
        """Make what nodes are brought: build the plugin, if it is ours. Raises CalledProcessError."""
        if self.description.plugins == OURS:
            resources.build_plugin()

    def network_list(self, cluster: str, node: str) -> NetworkList:
        """Return the configuration of one cluster's pod network on one of its nodes."""
        conflist = self.description.conflist
        assert conflist is not None, "missing() says so"
        open_ones = descriptions.placeholders_in(conflist) | {"name"}
        whole = descriptions.filled(
            {"name": "${name}", **conflist}, {name: self._value(name, cluster, node) for name in open_ones}
        )
        return NetworkList(
            whole["name"],
            whole["plugins"],
            whole.get("cniVersion", "1.0.0"),
            disable_check=bool(whole.get("disableCheck", False)),
        )

    def attachment(self, pod: str) -> Attachment:
        """Return a pod's attachment to its cluster's network, with what a runtime offers to plugins."""
        where = self.addressing
        return Attachment(
            container_id=f"{where.scenario.name}-{pod}",
            namespace=where.namespace(pod),
            capabilities=by_capabilities(self.description, where.pods[pod]),
            arguments={"IgnoreUnknown": "1", "K8S_POD_NAMESPACE": "default", "K8S_POD_NAME": pod.lower()},
        )

    def segment_plugin(self, segment: str, node: str) -> dict[str, Any]:
        """Return how promises on a segment's link are kept at one of its gateways, for the plugin there.

        That is as on nodes' own links. Others' plugins keep none: what they are told is about one interface.
        """
        described = self._described_own()
        own, link = self.addressing.scenario.segments[segment], self.description.link
        if described is None:
            return {"enforcement": "none"}
        keys = {"enforcement": described.get("enforcement", "pod"), "count": self.addressing.scenario.count}
        if link is None or own.rate is None:
            return keys if link is None else {**keys, "enforcement": "none"}
        return {
            **keys,
            "enforcement": "node",  # whatever it is on nodes' own links: a device grants nothing
            "uplink": own.nodes[node],
            "capacity": str(self._classes(own.rate)),
            "encapsulation": 0,
            "frameOverhead": self.addressing.scenario.underlay.frame_overhead,
            "controlPorts": [],
        }

    def _described_own(self) -> dict[str, Any] | None:
        """Return the keys of Concorde's plugin in the network's list; None if it is not there."""
        plugins = (self.description.conflist or {}).get("plugins", ())
        return next((one for one in plugins if one.get("type") == OURS), None)

    def annotations(self, pod: Pod) -> Mapping[str, str]:
        """Return what a pod's manifest says about its bandwidth."""
        return by_annotations(self.description, pod)

    def capacity(self, cluster: str, node: str) -> int | None:
        """Return what a worker can promise a cluster's pods, bits per second as guarantees count.

        That is its link, or its classes less the reserve. None if that is not known, and for another's
        plugins: what asks the scheduler for room belongs to Concorde.
        """
        if self.description.plugins != OURS:
            return None
        link = self.description.link
        if link is None:
            return links.rate_of(self.addressing.scenario, node)
        rate = links.rate_of(self.addressing.scenario, node)
        assert rate is not None, "testbed.scenario.rules"
        return int(self._room(rate) / self._on_uplink(cluster))

    def refused(self, pods: Collection[str]) -> Iterable[Fault]:
        """Yield the promises for which there is no room where all of these pods come, by arithmetic alone.

        It is what their plugins would refuse, pod by pod in the scenario's order.
        """
        if self.description.plugins != OURS or self.description.link is None:
            return
        taken: Counter[str] = Counter()
        for promises in self._promised(pods):
            wanted = {one.link: math.ceil(one.wanted * one.factor) for one in promises}
            room = {one.link: self._room(one.rate) for one in promises if one.rate is not None}
            free = {link: int(most) - taken[link] for link, most in room.items()}
            refused = [one for one in promises if wanted[one.link] > free.get(one.link, math.inf)]
            if not refused:
                taken.update(wanted)
            for one in refused:
                takes, left = wanted[one.link] / 1e6, free[one.link] / 1e6
                words = f"no room for {format_rate(one.wanted)} on {one.link}: with headers it takes"
                yield Fault(one.path, f"{words} {takes:g} Mbit/s of its link, and {left:g} are free")

    def _promised(self, pods: Collection[str]) -> Iterator[list[_Promise]]:
        """Yield what each of these pods is promised on links: its node's, and of a proxy its segment's.

        A pod comes with all of it, or not at all.
        """
        for name, pod in self.addressing.pods.items():
            if name in pods:
                connection = self.addressing.proxies.get(name)
                led = [] if connection is None else [*self._promised_to_device(connection, pod)]
                yield [*self._promised_on_node(name, pod, connection), *led]

    def _promised_on_node(self, name: str, pod: Pod, connection: str | None) -> Iterator[_Promise]:
        rate, factor = links.rate_of(self.addressing.scenario, pod.node), self._on_uplink(pod.cluster)
        if pod.promised:
            path: FaultPath = ("pods", name, "guarantee" if pod.guarantee else "answers")
            if pod.answers is None and not pod.guarantee:
                path = ("pods", name, "ingress")  # of which its answers' follows
            if connection is not None:
                path = ("connections", connection, "guarantee", "fromDevice")
            yield _Promise(path, pod.node, rate, pod.promised, factor)
        if pod.ingress is not None:
            arriving = f"{pod.node} of what arrives"
            yield _Promise(("pods", name, "ingress"), arriving, rate, pod.ingress, factor)

    def _promised_to_device(self, name: str, pod: Pod) -> Iterator[_Promise]:
        scenario = self.addressing.scenario
        wanted = scenario.connections[name].guarantee.to_device
        segment = scenario.devices[scenario.connections[name].device].segment
        if wanted is not None:
            path = ("connections", name, "guarantee", "toDevice")
            at, rate = f"segment {segment} at {pod.node}", scenario.segments[segment].rate
            yield _Promise(path, at, rate, wanted, self._on_link(segments.MTU, 0))

    def install(self, up: Up) -> None:
        """Do what is to be done once the pods are up, if the plugins have not. Raises CommandError."""

    def withdraw(self, up: Up) -> None:
        """Undo what ``install`` has done, while the pods stay as they are. Raises CommandError."""

    def check(self, up: Up) -> list[str]:
        """Return, in words, every way in which the kernel's state is not as it was installed.

        What the plugins check themselves is not looked at.
        """
        return []

    def guarded(self, up: Up) -> Mapping[str, Guarded]:
        """Return every interface that must have classes, by what people call it.

        It is eth0 of each pod with a guarantee, or the uplink of each node with such a pod; of proxies to
        devices also what they send by, or their node, towards these.
        """
        where = self.addressing
        promised = {name: pod.node for name, pod in where.pods.items() if pod.guarantee is not None}
        match self.description.guards:
            case "pod":
                own = {f"pod {name}": Guarded(up.pods[name], up.pods[name].interface) for name in promised}
                further = {
                    f"pod {pod}, {INTERFACE}": Guarded(up.pods[pod], INTERFACE) for pod, _ in self._led()
                }
            case "uplink":
                nodes = dict.fromkeys(promised.values())
                own = {f"node {node}": Guarded(up.nodes[node], where.uplink(node)) for node in nodes}
                ends = dict.fromkeys((where.pods[pod].node, interface) for pod, interface in self._led())
                further = {f"node {node}, {end}": Guarded(up.nodes[node], end) for node, end in ends}
            case None:
                return {}
        return own | further

    def _led(self) -> Iterator[tuple[str, str]]:
        """Yield each proxy pod with a promise towards a device, and its node's interface there."""
        where = self.addressing
        for pod, name in where.proxies.items():
            one = where.scenario.connections[name]
            segment = where.scenario.segment_of(one.device)
            if segment is not None and one.guarantee.to_device is not None:
                yield pod, segment.nodes[where.pods[pod].node]

    def counters(self, up: Up) -> Mapping[str, str]:
        """Return what the kernel says of classes that no pod's own interface has, for the recording."""
        return {}

    def footprint(self, node: str) -> Footprint:
        """Return what it makes on a node that runs pods, as the description says."""
        remains = self.description.remains
        trees = descriptions.filled(remains.trees, {"uplink": self.addressing.uplink(node)})
        return Footprint(tuple(remains.state), tuple(remains.tables), tuple(trees))

    def missing(self, here: bool) -> Iterable[Fault]:
        """Yield what is missing to attach pods so, with the scenario's field that asks for it.

        That may be a configuration list, a directory, a plugin. ``here`` says whether they are called on this
        machine; what others have is not known.
        """
        field: FaultPath = ("enforcement",)
        description = self.description
        if description.conflist is None:
            message = (
                f"network {description.name} has no conflist: it is for clusters that exist (--kubeconfig)"
            )
            yield Fault(field, message)
        elif description.plugins not in (None, OURS) and not Path(description.plugins or "").is_dir():
            yield Fault((*field, "plugins"), f"no directory {description.plugins}")
        elif here:
            stated = not isinstance(self.addressing.scenario.enforcement, str)
            for at, message in self._missing_plugins(description.conflist):
                yield Fault((*field, "conflist", *at) if stated else field, message)

    def _missing_plugins(self, conflist: dict[str, Any]) -> Iterator[tuple[FaultPath, str]]:
        brought = {OURS, f"{OURS}-networks"} if self.description.plugins == OURS else set()
        own = [self.description.plugins] if self.description.plugins and not brought else []
        directories = [*own, *resources.REFERENCE_PLUGINS]
        there = brought | {file.name for one in directories for file in Path(one).glob("*")}
        for at, kind in _programs(conflist):
            if kind not in there:
                yield at, f"no plugin {kind!r} in {', '.join(directories)}{meant(kind, there)}"

    def _classes(self, rate: int) -> int:
        """Return the rate that the classes of a link use, bits per second."""
        link = self.description.link
        assert link is not None, "testbed.scenario.description"
        return round(rate * link.share)

    def _room(self, rate: int) -> float:
        """Return what a link of a rate can promise, bits per second of full frames.

        What offloaded packets do not count is given up, as the plugin does (concorde/node/records.py).
        """
        classes, link = self._classes(rate), self.description.link
        assert link is not None, "testbed.scenario.description"
        more = self.addressing.scenario.underlay.frame_overhead
        return of_full_frames(of_full_frames(classes, more) - classes * link.reserve, more)

    def _on_uplink(self, cluster: str) -> float:
        """Return what a promise of a bit takes on a node's link, in bits of frames with all headers."""
        return self._on_link(self.addressing.pod_mtu(cluster), self.addressing.overhead(cluster))

    def _on_link(self, mtu: int, overhead: int) -> float:
        """Return the same of any link, by the sender's MTU and by what its packets grow there, bytes.

        A promise counts frames as the pod sends them, or their payload; see testbed.scenario.frames.
        """
        counted = (
            frame_bytes(mtu) if self.addressing.scenario.count == "layer2" else payload_bytes(mtu, "tcp")
        )
        return frame_bytes(mtu, overhead) / counted

    def _value(self, placeholder: str, cluster: str, node: str) -> Any:
        """Return what stands for a placeholder (testbed.scenario.descriptions) on a node."""
        where, scenario = self.addressing, self.addressing.scenario
        values: dict[str, Callable[[], Any]] = {
            "name": lambda: where.network_name(cluster),
            "cluster": lambda: cluster,
            "node": lambda: node,
            "bridge": lambda: where.bridge(cluster),
            "subnet": lambda: str(where.pod_range(cluster, node).subnet),
            "gateway": lambda: str(where.pod_range(cluster, node).gateway),
            "range_start": lambda: str(where.pod_range(cluster, node).first),
            "range_end": lambda: str(where.pod_range(cluster, node).last),
            "subnet_file": lambda: where.subnet_file(cluster),
            "mtu": lambda: where.pod_mtu(cluster),
            "overhead": lambda: where.overhead(cluster),
            "frame_overhead": lambda: scenario.underlay.frame_overhead,
            "uplink": lambda: where.uplink(node),
            "underlay": lambda: str(scenario.underlay.cidr),
            "capacity": lambda: str(self._classes(links.rate_of(scenario, node) or 0)),
            "control_ports": lambda: where.control_ports(node),
            "count": lambda: scenario.count,
        }
        return values[placeholder]()


def _programs(conflist: dict[str, Any]) -> Iterator[tuple[FaultPath, str]]:
    """Yield every plugin that a configuration list names, each with the path to its name there."""
    for index, plugin in enumerate(conflist["plugins"]):
        yield ("plugins", index, "type"), plugin["type"]
        ipam = plugin.get("ipam")
        if isinstance(ipam, dict) and isinstance(ipam.get("type"), str):
            yield ("plugins", index, "ipam", "type"), ipam["type"]


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
        keys.receives: pod.ingress,
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


def offer(enforcement: Enforcement, cluster: str, node: str) -> dict[str, str]:
    """Return the resource a worker has to give a cluster; nothing if its link has no known rate."""
    rate = enforcement.capacity(cluster, node)
    if rate is None:
        return {}
    # A link has the same rate in both directions.
    both = RESOURCES if enforcement.admits_ingress else (RESOURCE,)
    return dict.fromkeys(both, str(rate))


def request(enforcement: Enforcement, pod: Pod) -> dict[str, str]:
    """Return the resource a pod's container must ask for; nothing where none is published."""
    if enforcement.capacity(pod.cluster, pod.node) is None:
        return {}
    asked = zip(RESOURCES, (pod.promised, pod.ingress), strict=True)
    return {name: str(rate) for name, rate in asked if rate}
