"""HTB at one of the five interfaces that the paper's section 3.2 weighs, instead of a plugin's enforcement.

What is installed is what the paper discusses, so that its arguments can be measured: a class of the promised
rate at the physical interface, the VTEP, the Linux bridge or either side of a pod's veth pair, on every node
that runs a promised pod. Rendered as ``tc -batch`` text, read back with ``tc -j``.

A promise means the same at every place: frames of the pod's own size. The physical interface sees them
encapsulated, so there the rates are higher by just those headers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address

from testbed.access.place import CommandError, Place
from testbed.networks import underlay
from testbed.scenario import Scenario, addressing
from testbed.scenario.model import Shaping
from testbed.testbed import Testbed

ETHERNET_HEADER = 14
# The tree is a little slower than the link, so that packets queue here, where they are told apart.
LINK_SHARE = 0.98
# The paper's burst of 10 MiB (fig. 10), which is 84 ms at the least of its rates; below, as long in time.
PAPER_BURST = 10 * 2**20
PAPER_BURST_SECONDS = 0.084
# One turn of a class that shares spare capacity: the largest offloaded packet. All get the same turn.
QUANTUM = 65_536

# Minor numbers of the classes, which tc reads as hexadecimal: the tree or its one class, what belongs to no
# promised pod, and the first of the pods.
WHOLE, REST, FIRST = 1, 2, 16


@dataclass(frozen=True)
class Promise:
    """What one pod is promised at an interface."""

    address: IPv4Address
    rate: int  # bits per second, of frames as they pass this interface


@dataclass(frozen=True)
class Interface:
    """An interface to shape, and the promised pods whose packets pass it."""

    place: Place
    name: str
    promises: tuple[Promise, ...]


def install(testbed: Testbed) -> None:
    """Shape at the place the scenario asks for, if any. The pods must be up. Raises CommandError."""
    scenario = testbed.scenario
    if scenario.shaping is None:
        return
    for interface in _interfaces(testbed, scenario.shaping):
        text = render(scenario.shaping, interface.name, interface.promises, _link_rate(scenario))
        interface.place.run(["tc", "-batch", "-"], stdin=text)


def check(testbed: Testbed) -> list[str]:
    """Return, in words, every way in which the kernel's shaping is not what ``install`` set."""
    shaping = testbed.scenario.shaping
    if shaping is None:
        return []
    return [fault for interface in _interfaces(testbed, shaping) for fault in _faults(shaping, interface)]


def counters(testbed: Testbed) -> dict[str, str]:
    """Return what ``tc`` says of the classes of each shaped interface (iproute2 6.1: text only)."""
    if testbed.scenario.shaping is None:
        return {}
    return {
        f"{interface.place.name} {interface.name}": interface.place.run(
            ["tc", "-s", "-d", "class", "show", "dev", interface.name]
        ).stdout
        for interface in _interfaces(testbed, testbed.scenario.shaping)
    }


def render(shaping: Shaping, interface: str, promises: Sequence[Promise], link_bps: int) -> str:
    """Return the ``tc -batch`` text for one interface.

    ``link_bps`` is the link's rate in frames as they pass this interface. Where pods are not told apart there
    is one class for all that passes, with the sum of the promises.
    """
    promised = sum(promise.rate for promise in promises)
    if shaping.classify == "none" and shaping.ceiling == "rate":
        return _qdisc(interface, WHOLE) + _class(interface, "1:", WHOLE, promised, promised)
    # A class without a parent has nobody to borrow from: its ceiling above its rate would mean nothing.
    root = _class(interface, "1:", WHOLE, link_bps, link_bps, borrows=True)
    if shaping.classify == "none":
        return _qdisc(interface, FIRST) + root + _class(interface, "1:1", FIRST, promised, link_bps)
    rest = _class(interface, "1:1", REST, max(link_bps - promised, link_bps // 100), link_bps)
    pods = [
        _class(interface, "1:1", minor, promise.rate, _ceiling(shaping, promise.rate, link_bps))
        + f"filter add dev {interface} parent 1: protocol ip prio 1 u32 "
        f"{_match(shaping, promise.address)} flowid 1:{minor:x}\n"
        for minor, promise in enumerate(promises, start=FIRST)
    ]
    return _qdisc(interface, REST) + root + rest + "".join(pods)


def _qdisc(interface: str, default: int) -> str:
    return f"qdisc add dev {interface} root handle 1: htb default {default:x}\n"


def _class(interface: str, parent: str, minor: int, rate: int, ceiling: int, borrows: bool = False) -> str:
    """A limit has the paper's burst; what may borrow has a short one, so that it cannot flood the link."""
    burst = _short_burst if borrows or ceiling > rate else _paper_burst
    return (
        f"class add dev {interface} parent {parent} classid 1:{minor:x} htb rate {rate}bit ceil {ceiling}bit "
        f"burst {burst(rate)} cburst {burst(ceiling)} quantum {QUANTUM}\n"
    )


def _match(shaping: Shaping, address: IPv4Address) -> str:
    """Return a u32 selector for packets a pod sent; offsets count from the outermost IP header."""
    if shaping.classify == "source":
        return f"match ip src {address}/32"
    # The inner source address starts at no multiple of four bytes, as u32 compares, so it takes two halves.
    at = addressing.ENCAPSULATION_BYTES + 12
    high, low = divmod(int(address), 1 << 16)
    return (
        f"match ip protocol 17 0xff match u16 {high:#06x} 0xffff at {at} "
        f"match u16 {low:#06x} 0xffff at {at + 2}"
    )


def _ceiling(shaping: Shaping, rate: int, link_bps: int) -> int:
    return rate if shaping.ceiling == "rate" else max(rate, link_bps)


def _paper_burst(rate: int) -> int:
    return min(PAPER_BURST, max(underlay.SMALLEST_BUCKET, round(rate / 8 * PAPER_BURST_SECONDS)))


def _short_burst(rate: int) -> int:
    return max(underlay.SMALLEST_BUCKET, round(rate / 8 * underlay.BUCKET_SECONDS))


def frame_ratio(scenario: Scenario) -> float:
    """Return how much longer a full frame of a pod is at this place than on the pod's eth0."""
    if scenario.shaping is None or scenario.shaping.at != "physical":
        return 1.0
    return _encapsulated(scenario)


def _encapsulated(scenario: Scenario) -> float:
    frame = addressing.pod_mtu(scenario) + ETHERNET_HEADER
    return (frame + addressing.ENCAPSULATION_BYTES) / frame


def _link_rate(scenario: Scenario) -> int:
    """Return what the node's link carries, in frames as they pass this place."""
    assert scenario.underlay.rate is not None
    return round(scenario.underlay.rate * LINK_SHARE / _encapsulated(scenario) * frame_ratio(scenario))


def _interfaces(testbed: Testbed, shaping: Shaping) -> Iterator[Interface]:
    """Yield every interface of this place: one a node, one a cluster and node, or one a pod."""
    scenario = testbed.scenario
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, pod in scenario.pods.items():
        if pod.guarantee is not None:
            depth = {"physical": 1, "vtep": 2, "bridge": 2, "bridge-veth": 3, "eth0": 3}[shaping.at]
            groups.setdefault((pod.node, pod.cluster, name)[:depth], []).append(name)
    for pods in groups.values():
        first = pods[0]
        pod, place = scenario.pods[first], testbed.pods[first]
        interface = {
            "physical": addressing.uplink(scenario, pod.node),
            "vtep": addressing.vtep_name(scenario, pod.cluster),
            "bridge": f"cni-{pod.cluster}",
            "bridge-veth": place.host_interface,
            "eth0": "eth0",
        }[shaping.at]
        yield Interface(
            place=place if shaping.at == "eth0" else testbed.nodes[pod.node],
            name=interface,
            promises=tuple(_promise(testbed, name) for name in pods),
        )


def _promise(testbed: Testbed, name: str) -> Promise:
    scenario = testbed.scenario
    guarantee = scenario.pods[name].guarantee
    assert guarantee is not None
    return Promise(IPv4Address(testbed.pods[name].address), round(guarantee * frame_ratio(scenario)))


def _faults(shaping: Shaping, interface: Interface) -> Iterator[str]:
    where = f"{interface.place.name}, {interface.name}"
    try:
        qdiscs = interface.place.run(["tc", "-j", "qdisc", "show", "dev", interface.name]).json()
        filters = interface.place.run(["tc", "-j", "filter", "show", "dev", interface.name]).json()
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
