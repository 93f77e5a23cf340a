"""How what a node holds differs from what the model says, class by class and element by element."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from tests.system.plugin.churn_model import TREE, World
from tests.system.plugin.churn_sight import PROMISABLE, QDISC, RESERVE, USABLE, Promise, Row, Sight, on_wire

LEAST_DEFAULT = 8_000
SHOWN = 1_000  # tc rounds rates of this size down to kbit/s
ROOT, BEST_EFFORT, CONTROL, DEFAULT = "c0de:1", "c0de:fffc", "c0de:fffd", "c0de:fffe"
REST = BEST_EFFORT, DEFAULT
OF_BEST_EFFORT = 1_000, USABLE
# Sets of what the kernel has, whatever pods there are, and of what packets bring.
READ = ("tunnels", "vteps", "underlays", "hops", "connections", "full", "peers", "sent", "asked", "came")


def differences(world: World, sight: Sight) -> list[str]:
    """How what a node holds differs from a world."""
    promised = world.promised
    texts = [
        f"{what}: {found} instead of {expected}"
        for what, found, expected in (
            ("the ledger has a tree", sight.tree is not None, world.tree),
            ("leases", sorted(sight.leases), sorted(world.leased)),
            ("ledger", sorted(sight.rows), sorted(promised)),
            ("missing", sorted(sight.missing), sorted(world.missing)),
        )
        if found != expected
    ]
    for pod, row in sight.rows.items():
        promise = promised.get(pod, Promise())
        guarantee = None if promise.guarantee is None else promise.guarantee * 1_000_000
        if (row.guarantee, row.rate, row.ceil) != (guarantee, promise.rate, promise.ceil):
            texts.append(f"{pod} has {row} for {promise}")
        if (row.handle is None) != (promise.guarantee is None) or row.address != sight.leases.get(pod):
            texts.append(f"{pod} has {row} and lease {sight.leases.get(pod)}")
    return texts + of_classes(world, sight) + of_elements(world, sight)


def of_classes(world: World, sight: Sight) -> list[str]:
    if QDISC in sight.missing:
        return [f"classes without a tree: {sight.classes}"] * bool(sight.classes)
    shared = {ROOT: (USABLE, USABLE), CONTROL: (RESERVE, USABLE)}
    if not world.half:
        left = USABLE - RESERVE - on_wire(PROMISABLE - world.free)
        shared[BEST_EFFORT] = max(LEAST_DEFAULT, left), USABLE
        shared[DEFAULT] = max(LEAST_DEFAULT, left // 2), USABLE
    of_pods = {
        row.handle: (on_wire(row.rate), min(on_wire(row.ceil), USABLE))
        for row in sight.rows.values()
        if row.handle
    }
    of_pods |= {row.effort: OF_BEST_EFFORT for row in sight.rows.values() if row.effort}
    needed = set() if TREE in world.half else {ROOT, CONTROL, *REST}
    whole = [row for pod, row in sight.rows.items() if pod not in world.half]
    needed |= {handle for row in whole for handle in (row.handle, row.effort) if handle}
    texts = [f"class {handle} is missing" for handle in needed - sight.classes.keys()]
    for handle, shown in sight.classes.items():
        expected = {**shared, **of_pods}.get(handle)
        if expected is None and handle not in REST:
            texts.append(f"class {handle} belongs to nobody")
        elif expected and not all(0 <= e - s < SHOWN for e, s in zip(expected, shown, strict=True)):
            texts.append(f"class {handle} has {shown}, expected {expected}")
    return texts


def of_elements(world: World, sight: Sight) -> list[str]:
    texts = []
    ports = {address: port for port, _, address in sight.elements.get(("bridge", "frames"), ())}
    for (family, name), found in sight.elements.items():
        if name in READ:
            continue
        wanted = {pod: elements(family, name, pod, row, ports) for pod, row in sight.rows.items()}
        # Elements that several pods share are there as long as the bridge may be.
        shared = found if name == "bridges" else set()
        for stray in found.difference(shared, *wanted.values()):
            texts.append(f"{family} {name} {stray} belongs to nobody")
        for pod in wanted.keys() - world.half:
            texts += [f"{family} {name} has no {lost} of {pod}" for lost in wanted[pod] - found]
    return texts


def elements(
    family: str, name: str, pod: str, row: Row, ports: Mapping[str, str]
) -> set[tuple[str | int, ...]]:
    """A pod's elements of a set or map. The ledger does not tell its port, which `frames` must."""
    if name == "answers" or (name in ("promises", "spoken", "acknowledged") and row.handle is None):
        return set()
    port = ports.get(row.address, "no port")
    octets = [f"{int(octet):02x}" for octet in row.address.split(".")]
    mac = ":".join(["0a", "58", *octets])
    tail = f"{octets[0]}ff:fe{octets[1]}:{int(octets[2] + octets[3], 16):x}"
    local = str(ipaddress.IPv6Address(f"fe80::858:{tail}"))
    number = f"0x{int(ipaddress.IPv6Address(local)):032x}"
    if family == "ip6":  # nobody has an address that is routed
        return {(f"cni-{pod[0]}", local)} if name in ("refused", "fragments") else set()
    in_bridge: set[tuple[str | int, ...]] = {(f"cni-{pod[0]}", row.address)}
    found: dict[str, set[tuple[str | int, ...]]] = {
        **{key: {(port,)} for key in ("guarded", "floods", "dropped")},
        "promises": {(f"cni-{pod[0]}", row.address, str(row.handle))},
        "efforts": {(f"cni-{pod[0]}", row.address, str(row.effort))},
        "bridges": {(f"cni-{pod[0]}",)},
        **dict.fromkeys(("ways", "refused", "spoken", "acknowledged"), in_bridge),
        **dict.fromkeys(("new_hops", "fragments", "opening"), in_bridge),
        "addresses": {(row.address,)},
        "frames": {(port, mac, row.address)},
        "frames6": {(port, mac, "::"), (port, mac, local)},
        "targets6": {(port, number)},
        "subjects": {(port, int(ipaddress.IPv4Address(row.address)))},
    }
    return found[name]


def excess(classes: Mapping[str, tuple[int, int]]) -> str:
    """What is too much in the rates of the kernel's classes, at whatever moment."""
    below = {
        handle: rate
        for handle, (rate, _) in classes.items()
        # Those of best effort share what that has.
        if handle not in (ROOT, DEFAULT) and not 0x4000 <= int(handle[5:], 16) < 0x8000
    }
    pods = sum(rate for handle, rate in below.items() if handle not in (CONTROL, BEST_EFFORT))
    if pods > on_wire(PROMISABLE):
        return f"{pods} of {on_wire(PROMISABLE)} are promised by {classes}"
    if sum(below.values()) > USABLE + LEAST_DEFAULT:
        return f"more than {USABLE} in {classes}"
    return ""
