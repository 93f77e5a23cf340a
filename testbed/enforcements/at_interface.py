"""HTB at one of the five interfaces that the paper's section 3.2 weighs, instead of a plugin's enforcement.

What is installed is what the paper discusses, so that its arguments can be measured: a class of the promised
rate at the physical interface, the VTEP, the Linux bridge or either side of a pod's veth pair, on every node
that runs a promised pod. Rendered as ``tc -batch`` text, read back with ``tc -j``.

A promise means the same at every place: frames of the pod's own size. The physical interface sees them
encapsulated, so there the rates are higher by just those headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address
from math import isclose

from testbed.access.place import CommandError, Place
from testbed.enforcements.enforcement import BURST, BURST_MILLISECONDS, Enforcement, Footprint, Up
from testbed.links import BUCKET_SECONDS, SMALLEST_BUCKET
from testbed.scenario import Scenario, links, networks
from testbed.scenario.frames import frame_bytes, of_full_frames
from testbed.scenario.model import Shaping
from testbed.scenario.units import format_rate, parse_rate

# The tree is a little slower than the link, so that packets queue here, where they are told apart.
LINK_SHARE = 0.98
# One turn of a class that shares spare capacity: the largest offloaded packet. All get the same turn.
QUANTUM = 65_536

# Minor numbers of the classes, which tc reads as hexadecimal: the tree or its one class, what belongs to no
# promised pod, and the first of the pods.
WHOLE, REST, FIRST = 1, 2, 16

SHOWN = re.compile(r"^class htb (?P<name>\S+) .*\brate (?P<rate>\S+) ceil (?P<ceil>\S+)", re.MULTILINE)
SHOWN_DIGITS = 0.001  # tc rounds to whole numbers of at least a thousand units (iproute2's lib/utils_math.c)


@dataclass(frozen=True)
class Promise:
    """What one pod is promised at an interface."""

    address: IPv4Address
    rate: int  # bits per second, of frames as they pass this interface
    overhead: int = 0  # bytes that the pod network puts before its packets


@dataclass(frozen=True)
class Interface:
    """An interface to shape, and the promised pods whose packets pass it."""

    place: Place
    node: str  # of the scenario
    name: str
    promises: tuple[Promise, ...]


@dataclass(frozen=True)
class AtInterface(Enforcement):
    """Shapes at one kind of interface. The plugin only attaches the pods."""

    def install(self, up: Up) -> None:
        """Shape at the interface that the scenario asks for."""
        for interface in self._interfaces(up):
            link_bps = link_rate(self.addressing.scenario, interface.node)
            text = render(self._shaping, interface.name, interface.promises, link_bps)
            interface.place.run(["tc", "-batch", "-"], stdin=text)

    def withdraw(self, up: Up) -> None:
        """Take the trees away."""
        for interface in self._interfaces(up):
            interface.place.run(["tc", "qdisc", "del", "dev", interface.name, "root"])

    def check(self, up: Up) -> list[str]:
        """Compare the kernel's classes and filters with those that were added."""
        scenario = self.addressing.scenario
        return [
            fault
            for one in self._interfaces(up)
            for fault in _faults(self._shaping, one, link_rate(scenario, one.node))
        ]

    def counters(self, up: Up) -> dict[str, str]:
        """Return what ``tc`` says of the classes of each shaped interface (iproute2 6.1: text only)."""
        return {
            f"{one.place.name} {one.name}": one.place.run(
                ["tc", "-s", "-d", "class", "show", "dev", one.name]
            ).stdout
            for one in self._interfaces(up)
        }

    def footprint(self, node: str) -> Footprint:
        """Return what the plugin has, and the tree if it is on the node's own interface."""
        plain = super().footprint(node)
        trees = (self.addressing.uplink(node),) if self._shaping.at == "physical" else ()
        return Footprint(plain.state, plain.tables, trees)

    @property
    def _shaping(self) -> Shaping:
        shaping = self.addressing.scenario.shaping
        assert shaping is not None
        return shaping

    def _interfaces(self, up: Up) -> Iterator[Interface]:
        """Yield every interface of this kind: one a node, one a cluster and node, or one a pod."""
        scenario, at = self.addressing.scenario, self._shaping.at
        groups: dict[tuple[str, ...], list[str]] = {}
        for name, pod in scenario.pods.items():
            if pod.guarantee is not None:
                depth = {"physical": 1, "vtep": 2, "bridge": 2, "bridge-veth": 3, "eth0": 3}[at]
                groups.setdefault((pod.node, pod.cluster, name)[:depth], []).append(name)
        for pods in groups.values():
            first = pods[0]
            pod, place = scenario.pods[first], up.pods[first]
            interface = {
                "physical": self.addressing.uplink(pod.node),
                "vtep": self.addressing.vtep(pod.cluster),
                "bridge": self.addressing.bridge(pod.cluster),
                "bridge-veth": place.host_interface,
                "eth0": place.interface,
            }[at]
            yield Interface(
                place=place if at == "eth0" else up.nodes[pod.node],
                node=pod.node,
                name=interface,
                promises=tuple(self._promise(up, name) for name in pods),
            )

    def _promise(self, up: Up, name: str) -> Promise:
        scenario = self.addressing.scenario
        pod = scenario.pods[name]
        assert pod.guarantee is not None
        rate = round(pod.guarantee * frame_ratio(scenario, pod.cluster))
        overhead = networks.of(scenario.clusters[pod.cluster]).overhead
        return Promise(IPv4Address(up.pods[name].address), rate, overhead)


@dataclass(frozen=True)
class Class:
    """One class of an interface's tree; rates in bits per second, of frames as they pass there."""

    parent: str
    minor: int
    rate: int
    ceiling: int
    borrows: bool = False

    @property
    def name(self) -> str:
        """As tc calls it."""
        return f"1:{self.minor:x}"

    def render(self, interface: str) -> str:
        """Return the line for ``tc -batch``.

        A limit has the paper's burst; what may borrow has a short one, so that it cannot flood the link.
        """
        burst = _short_burst if self.borrows or self.ceiling > self.rate else _paper_burst
        return (
            f"class add dev {interface} parent {self.parent} classid {self.name} "
            f"htb rate {self.rate}bit ceil {self.ceiling}bit "
            f"burst {burst(self.rate)} cburst {burst(self.ceiling)} quantum {QUANTUM}\n"
        )


def classes(shaping: Shaping, promises: Sequence[Promise], link_bps: int) -> list[Class]:
    """Return the classes of one interface, parents first.

    ``link_bps`` is the link's rate in frames as they pass this interface. Where pods are not told apart there
    is one class for all that passes, with the sum of the promises.
    """
    promised = sum(promise.rate for promise in promises)
    if shaping.classify == "none" and shaping.ceiling == "rate":
        return [Class("1:", WHOLE, promised, promised)]
    # A class without a parent has nobody to borrow from: its ceiling above its rate would mean nothing.
    root = Class("1:", WHOLE, link_bps, link_bps, borrows=True)
    if shaping.classify == "none":
        return [root, Class(root.name, FIRST, promised, link_bps)]
    rest = Class(root.name, REST, max(link_bps - promised, link_bps // 100), link_bps)
    most = 0 if shaping.ceiling == "rate" else link_bps
    pods = [
        Class(root.name, minor, promise.rate, max(promise.rate, most))
        for minor, promise in enumerate(promises, start=FIRST)
    ]
    return [root, rest, *pods]


def render(shaping: Shaping, interface: str, promises: Sequence[Promise], link_bps: int) -> str:
    """Return the ``tc -batch`` text for one interface; see ``classes``."""
    made = classes(shaping, promises, link_bps)
    if shaping.classify == "none":
        return _qdisc(interface, made[-1].minor) + "".join(one.render(interface) for one in made)
    root, rest, *pods = made
    filtered = [
        one.render(interface) + f"filter add dev {interface} parent 1: protocol ip prio 1 u32 "
        f"{_match(shaping, promise)} flowid {one.name}\n"
        for one, promise in zip(pods, promises, strict=True)
    ]
    return _qdisc(interface, REST) + root.render(interface) + rest.render(interface) + "".join(filtered)


def _qdisc(interface: str, default: int) -> str:
    return f"qdisc add dev {interface} root handle 1: htb default {default:x}\n"


def _match(shaping: Shaping, promise: Promise) -> str:
    """Return a u32 selector for packets a pod sent; offsets count from the outermost IP header."""
    if shaping.classify == "source":
        return f"match ip src {promise.address}/32"
    # The inner source address starts at no multiple of four bytes, as u32 compares, so it takes two halves.
    at = promise.overhead + 12
    high, low = divmod(int(promise.address), 1 << 16)
    return (
        f"match ip protocol 17 0xff match u16 {high:#06x} 0xffff at {at} "
        f"match u16 {low:#06x} 0xffff at {at + 2}"
    )


def _paper_burst(rate: int) -> int:
    return min(BURST, max(SMALLEST_BUCKET, round(rate / 8 * BURST_MILLISECONDS / 1000)))


def _short_burst(rate: int) -> int:
    return max(SMALLEST_BUCKET, round(rate / 8 * BUCKET_SECONDS))


def frame_ratio(scenario: Scenario, cluster: str) -> float:
    """Return how much longer a full frame of a cluster's pod is at this interface than on the pod's eth0."""
    if scenario.shaping is None or scenario.shaping.at != "physical":
        return 1.0
    return _encapsulated(scenario, cluster)


def link_rate(scenario: Scenario, node: str) -> int:
    """Return what a node's link carries, bits per second in frames as they pass this interface."""
    wire = links.rate_of(scenario, node)
    assert wire is not None, "testbed.scenario.rules"
    rate = of_full_frames(wire, scenario.underlay.frame_overhead)
    ratio = max(_encapsulated(scenario, cluster) for cluster in scenario.clusters)
    here = ratio if scenario.shaping is not None and scenario.shaping.at == "physical" else 1.0
    return round(rate * LINK_SHARE / ratio * here)


def _encapsulated(scenario: Scenario, cluster: str) -> float:
    mtu, overhead = networks.pod_mtu(scenario, cluster), networks.of(scenario.clusters[cluster]).overhead
    return frame_bytes(mtu, overhead) / frame_bytes(mtu)


def _faults(shaping: Shaping, interface: Interface, link_bps: int) -> Iterator[str]:
    where, device = f"{interface.place.name}, {interface.name}", ["show", "dev", interface.name]
    try:
        qdiscs = interface.place.run(["tc", "-j", "qdisc", *device]).json()
        filters = interface.place.run(["tc", "-j", "filter", *device]).json()
        shown = interface.place.run(["tc", "class", *device]).stdout
    except CommandError as error:
        yield f"{where}: {error}"
        return
    root = next((q for q in qdiscs if q.get("root") and q["kind"] == "htb"), None)
    if root is None:
        yield f"{where}: no HTB, so nothing was shaped"
    elif root["options"]["direct_packets_stat"]:
        yield f"{where}: {root['options']['direct_packets_stat']} packets passed by the classes"
    flows = sum("flowid" in entry.get("options", {}) for entry in filters)
    expected = 0 if shaping.classify == "none" else len(interface.promises)
    if flows != expected:
        yield f"{where}: {flows} filters, not the {expected} that were added"
    if root is not None:
        for text in differences(classes(shaping, interface.promises, link_bps), shown):
            yield f"{where}: {text}"


def differences(wanted: Sequence[Class], shown: str) -> Iterator[str]:
    """Say of each class that is missing, or has other rates, in what ``tc class show`` says."""
    found = {match["name"]: (match["rate"], match["ceil"]) for match in SHOWN.finditer(shown)}
    for one in wanted:
        if one.name not in found:
            yield f"no class {one.name}"
            continue
        rates = found[one.name]
        if not all(
            isclose(parse_rate(rate.removesuffix("bit").replace("K", "k")), of, rel_tol=SHOWN_DIGITS)
            for rate, of in zip(rates, (one.rate, one.ceiling), strict=True)
        ):
            expected = f"rate {format_rate(one.rate)} ceil {format_rate(one.ceiling)}"
            yield f"class {one.name} has rate {rates[0]} ceil {rates[1]}; expected {expected}"
