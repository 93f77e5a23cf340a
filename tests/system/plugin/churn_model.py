"""What a node's stores and kernel may hold after some calls: a model of enforcement `node`.

A `World` is one state a node may be in. A call, such as `Add`, says which worlds may follow a world, given
how the call was answered; none follow if that answer is impossible there. Calls that ran at once may have
taken effect in any order, so `serial` tries them all. Where a killed call got to is read off what the node
holds afterwards (`Sight`); it must be a point on the call's way.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.system.plugin.conftest import Document

CAPACITY, RESERVE = 1_000_000_000, 20_000_000  # bits per second, as everywhere below
PROMISABLE = CAPACITY - RESERVE
LEAST_DEFAULT = 8_000
FRAME, FRAME_ON_UPLINK = 1464, 1514  # an MTU of 1450, and VXLAN around it
SHOWN = 1_000  # tc rounds rates of this size down to kbit/s

ROOT, CONTROL, DEFAULT = "c0de:1", "c0de:fffd", "c0de:fffe"
QDISC, FAMILIES = "qdisc", frozenset({"ip", "ip6", "bridge"})
READ = ("tunnels", "vteps", "underlays")  # sets of what the kernel has, whatever pods there are
PARTS = FAMILIES | {QDISC}
TREE = "tree"  # beside pods, what may be half made

INVALID, ATTACHED, CHECK_FAILED, NO_BANDWIDTH, NOT_AVAILABLE = 7, 103, 104, 105, 50


@dataclass(frozen=True)
class Promise:
    """A pod's annotations, in Mbit/s."""

    guarantee: int | None = None
    ceiling: int | None = None

    @property
    def contradicts_itself(self) -> bool:
        return None not in (self.guarantee, self.ceiling) and (self.guarantee or 0) > (self.ceiling or 0)

    @property
    def rate(self) -> int:
        return on_uplink(self.guarantee or 0)

    @property
    def ceil(self) -> int:
        ceil = CAPACITY
        if self.guarantee is not None and self.ceiling is not None:
            ceil = min(ceil, on_uplink(self.ceiling))
        return max(self.rate, ceil)

    @property
    def touched(self) -> frozenset[str]:
        """The parts an ADD changes, so that it notices when one is missing: all of them."""
        return PARTS


def on_uplink(mbits: int) -> int:
    """What a promise takes where its frames have grown by the overlay's headers."""
    return -(-mbits * 1_000_000 * FRAME_ON_UPLINK // FRAME)


@dataclass(frozen=True)
class Row:
    """An attachment in the ledger, as `concorde ledger --json` tells it."""

    address: str
    handle: str | None
    guarantee: int | None
    rate: int
    ceil: int


class Sight:
    """What a node holds at a moment of rest."""

    def __init__(self, raw: Document) -> None:
        self.tree: Document | None = raw["ledger"]["tree"]
        self.rows = {
            entry["container"]: Row(
                *(entry[key] for key in ("address", "class", "guarantee", "rate", "ceil"))
            )
            for entry in raw["ledger"]["attachments"]
        }
        self.leases = {
            pod: str(ipaddress.IPv4Address(address))
            for leases in raw["leases"].values()
            for pod, address in leases.items()
        }
        self.classes = rates(raw["classes"])
        tables = {entry["table"]["family"] for entry in raw["ruleset"] if "table" in entry}
        there = tables | ({QDISC} if "qdisc htb c0de: root" in raw["qdiscs"] else set())
        self.missing = PARTS - there
        self.elements: dict[tuple[str, str], set[tuple[str, ...]]] = {}
        for entry in raw["ruleset"]:
            for found in (entry.get("map"), entry.get("set")):
                if found is not None:
                    texts = {as_tuple(element) for element in found.get("elem", ())}
                    self.elements[found["family"], found["name"]] = texts


def as_tuple(element: Any) -> tuple[str, ...]:
    """An element of a map or a set: `nft` prints a concatenation as an object."""
    if isinstance(element, dict) and "elem" in element:  # one that counts
        element = element["elem"]["val"]
    if isinstance(element, dict):
        element = element["concat"]
    return tuple(element) if isinstance(element, list) else (element,)


def rates(shown: str) -> dict[str, tuple[int, int]]:
    """Rate and ceil of each class in what `tc class show` prints."""
    found = {}
    for words in map(str.split, shown.splitlines()):
        rate, ceil = (words[words.index(word) + 1] for word in ("rate", "ceil"))
        found[words[2]] = bits(rate), bits(ceil)
    return found


def bits(rate: str) -> int:
    number = rate.rstrip("KMGbit")
    return int(number) * {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}[rate[len(number) :]]


@dataclass(frozen=True)
class World:
    """One state: the stores' rows, and what of the kernel's part need not be as the ledger says.

    `missing` are the parts that somebody flushed, or nobody has made yet. `half` are the pods that a killed
    call may have left half done in the kernel, and TREE if that is true of what all share.
    """

    tree: bool = False
    leased: frozenset[str] = frozenset()
    promises: frozenset[tuple[str, Promise]] = frozenset()
    missing: frozenset[str] = PARTS
    half: frozenset[str] = frozenset()

    @property
    def promised(self) -> dict[str, Promise]:
        return dict(self.promises)

    @property
    def free(self) -> int:
        return PROMISABLE - sum(promise.rate for _, promise in self.promises)

    def entered(self, pod: str, promise: Promise) -> World:
        return replace(self.only_leased(pod), tree=True, promises=self.promises | {(pod, promise)})

    def only_leased(self, pod: str) -> World:
        return replace(self, leased=self.leased | {pod})

    def withdrawn(self, pods: Iterable[str]) -> World:
        """The same without the pods in ledger and kernel; they keep their leases."""
        gone = frozenset(pods)
        kept = frozenset(item for item in self.promises if item[0] not in gone)
        return replace(self, promises=kept, half=self.half - gone)

    def without(self, pods: Iterable[str]) -> World:
        gone = frozenset(pods)
        return replace(self.withdrawn(gone), leased=self.leased - gone)

    def repaired(self) -> World:
        return replace(self, missing=frozenset(), half=frozenset()) if self.tree else self

    def repair_killed(self, sight: Sight, with_children: bool) -> Iterator[World]:
        """What a repair may leave that is killed together with the tools it started, or alone."""
        yield self
        if self.tree and self.missing:
            half = self.half.union(self.promised, {TREE}) if with_children else self.half
            yield replace(self, missing=self.missing & sight.missing, half=half)
            yield replace(self, missing=frozenset(), half=half)


@dataclass(frozen=True)
class Step:
    """What the calls of one step have in common: who was attached before, and what the node held after."""

    attached: frozenset[str]
    sight: Sight


@dataclass(frozen=True)
class Killed:
    """When a call was killed, in ms after its start, and whether what it had started was too."""

    after: int
    with_children: bool


Answer = Mapping[str, Any] | Killed  # of a call: its result, error object or text, or that it has none


@dataclass(frozen=True)
class Call:
    """Something done to the node, and the worlds that may follow."""

    def pods(self, known: Iterable[str]) -> set[str]:
        """Those of the known pods that the call may concern."""
        return set()

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        raise NotImplementedError


@dataclass(frozen=True)
class Add(Call):
    pod: str
    promise: Promise

    def pods(self, known: Iterable[str]) -> set[str]:
        return {self.pod}

    def refusal(self, world: World) -> int:
        if self.promise.contradicts_itself:
            return INVALID
        if self.pod in world.leased:
            return ATTACHED
        return NO_BANDWIDTH if self.promise.rate > world.free else 0

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        refusal = self.refusal(world)
        if isinstance(answer, Killed):
            yield from self._killed(world, answer, refusal, step.sight)
        elif answer.get("code", 0) == refusal != 0:
            yield world
        elif "code" not in answer and refusal == 0:
            entered = world.entered(self.pod, self.promise)
            # What it touches and does not find makes it compare and repair all.
            yield entered.repaired() if world.missing & self.promise.touched else entered

    def _killed(self, world: World, killed: Killed, refusal: int, sight: Sight) -> Iterator[World]:
        if refusal in (INVALID, ATTACHED) or self.pod not in sight.leases:
            yield world
        elif self.pod not in sight.rows:
            yield world.only_leased(self.pod)
        elif refusal == 0:
            entered = world.entered(self.pod, self.promise)
            entered = replace(entered, half=entered.half | {self.pod})
            if world.missing & self.promise.touched:
                yield from entered.repair_killed(sight, killed.with_children)
            else:
                yield entered


@dataclass(frozen=True)
class Del(Call):
    pod: str
    netns: bool = True
    previous: bool = True

    def pods(self, known: Iterable[str]) -> set[str]:
        return {self.pod}

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        if isinstance(answer, Killed):
            yield removal_killed(world, {self.pod}, step.sight)
        elif answer == {}:
            yield world.without({self.pod})


def removal_killed(world: World, pods: set[str], sight: Sight) -> World:
    """Each pod got as far as one sees: out of the kernel, then out of the ledger, then its lease."""
    world = replace(world, half=world.half.union(world.promised.keys() & pods))
    return world.withdrawn(pods - sight.rows.keys()).without(pods - sight.leases.keys())


@dataclass(frozen=True)
class Check(Call):
    pod: str

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        # A pod whose ADD has not answered has no result to be checked.
        good = self.pod in step.attached and not world.missing
        bad = not good or world.half
        code = None if isinstance(answer, Killed) else answer.get("code", 0)
        if code is None or (good and code == 0) or (bad and code == CHECK_FAILED):
            yield world


@dataclass(frozen=True)
class Status(Call):
    cluster: str

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        good = not world.tree or not world.missing
        bad = not good or (world.tree and world.half)
        code = None if isinstance(answer, Killed) else answer.get("code", 0)
        if code is None or (good and code == 0) or (bad and code == NOT_AVAILABLE):
            yield world


@dataclass(frozen=True)
class Gc(Call):
    """GC of a cluster whose runtime knows the pods that are attached, but for some it has forgotten."""

    cluster: str
    forgotten: frozenset[str] = frozenset()

    def pods(self, known: Iterable[str]) -> set[str]:
        return {pod for pod in known if pod.startswith(self.cluster)}

    def valid(self, attached: Iterable[str]) -> set[str]:
        return self.pods(attached) - self.forgotten

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        stale = self.pods(world.leased) - self.valid(step.attached)
        if isinstance(answer, Killed):
            yield removal_killed(world, stale, step.sight)
        elif answer == {}:
            yield world.without(stale)


@dataclass(frozen=True)
class Reconcile(Call):
    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        if isinstance(answer, Killed):
            yield from world.repair_killed(step.sight, answer.with_children)
        elif says_right(str(answer["text"]), world):
            yield world.repaired()


def says_right(text: str, world: World) -> bool:
    """Whether `reconcile` may say this."""
    if not world.tree:
        return text.startswith("the ledger is empty")
    if text == "nothing to repair\n":
        return not world.missing
    return text.startswith("repaired: ") and bool(world.missing or world.half)


@dataclass(frozen=True)
class Flush(Call):
    """Somebody removes parts behind the plugin's back."""

    parts: frozenset[str]

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        yield replace(world, missing=world.missing | self.parts)


def serial(worlds: set[World], calls: list[tuple[Call, Answer]], step: Step) -> set[World]:
    """The worlds after some calls in any order in which all their answers are possible."""
    after_some = {frozenset[int](): worlds}  # by which of the calls have taken effect
    for _ in calls:
        after_more: dict[frozenset[int], set[World]] = {}
        for taken, reached in after_some.items():
            for at, (call, answer) in enumerate(calls):
                if at not in taken:
                    found = {after for world in reached for after in call.after(world, answer, step)}
                    after_more.setdefault(taken | {at}, set()).update(found)
        after_some = {taken: reached for taken, reached in after_more.items() if reached}
    return after_some.get(frozenset(range(len(calls))), set())


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
    shared = {ROOT: (CAPACITY, CAPACITY), CONTROL: (RESERVE, CAPACITY)}
    if not world.half:
        shared[DEFAULT] = max(LEAST_DEFAULT, world.free), CAPACITY
    of_pods = {row.handle: (row.rate, row.ceil) for row in sight.rows.values() if row.handle}
    needed = set() if TREE in world.half else {ROOT, CONTROL, DEFAULT}
    needed |= {row.handle for pod, row in sight.rows.items() if row.handle and pod not in world.half}
    texts = [f"class {handle} is missing" for handle in needed - sight.classes.keys()]
    for handle, shown in sight.classes.items():
        expected = {**shared, **of_pods}.get(handle)
        if expected is None and handle != DEFAULT:
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
        wanted = {pod: elements(name, pod, row, ports) for pod, row in sight.rows.items()}
        # Elements that several pods share are there as long as the bridge may be.
        shared = found if name == "bridges" else set()
        for stray in found.difference(shared, *wanted.values()):
            texts.append(f"{family} {name} {stray} belongs to nobody")
        for pod in wanted.keys() - world.half:
            texts += [f"{family} {name} has no {lost} of {pod}" for lost in wanted[pod] - found]
    return texts


def elements(name: str, pod: str, row: Row, ports: Mapping[str, str]) -> set[tuple[str, ...]]:
    """A pod's elements of a set or map. The ledger does not tell its port, which `frames` must."""
    if name == "classes" and row.handle is None:
        return set()
    port = ports.get(row.address, "no port")
    octets = [f"{int(octet):02x}" for octet in row.address.split(".")]
    mac = ":".join(["0a", "58", *octets])
    tail = f"{octets[0]}ff:fe{octets[1]}:{int(octets[2] + octets[3], 16):x}"
    local = str(ipaddress.IPv6Address(f"fe80::858:{tail}"))
    number = f"0x{int(ipaddress.IPv6Address(local)):032x}"
    of_port = {key: {(port,)} for key in ("guarded", "floods", "dropped")}
    return {
        **of_port,
        "classes": {(row.address, str(row.handle))},
        "bridges": {(f"cni-{pod[0]}",)},
        "ways": {(f"cni-{pod[0]}", row.address)},
        "refused": {(f"cni-{pod[0]}", row.address)},
        "addresses": {(row.address,)},
        "frames": {(port, mac, row.address)},
        "frames6": {(port, mac, "::"), (port, mac, local)},
        "targets6": {(port, number)},
    }[name]


def excess(classes: Mapping[str, tuple[int, int]]) -> str:
    """What is too much in the rates of the kernel's classes, at whatever moment."""
    below = {handle: rate for handle, (rate, _) in classes.items() if handle != ROOT}
    pods = sum(rate for handle, rate in below.items() if handle not in (CONTROL, DEFAULT))
    if pods > PROMISABLE:
        return f"{pods} of {PROMISABLE} are promised by {classes}"
    if sum(below.values()) > CAPACITY + LEAST_DEFAULT:
        return f"more than {CAPACITY} in {classes}"
    return ""
