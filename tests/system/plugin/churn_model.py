"""What a node's stores and kernel may hold after some calls: a model of enforcement `node`.

A `World` is one state a node may be in. A call, such as `Add`, says which worlds may follow a world, given
how the call was answered; none follow if that answer is impossible there. Calls that ran at once may have
taken effect in any order, so `serial` tries them all. Where a killed call got to is read off what the node
holds afterwards (`Sight`); it must be a point on the call's way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.system.plugin.churn_sight import PARTS, PROMISABLE, Promise, Sight

TREE = "tree"  # beside pods, what may be half made

INVALID, ATTACHED, CHECK_FAILED, NO_BANDWIDTH, NOT_AVAILABLE = 7, 103, 104, 105, 50


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


def may_say(answer: Answer, good: bool, bad: bool, refusal: int) -> bool:
    """Whether a call that only looks may answer so, where all may be well, or not, or either."""
    code = None if isinstance(answer, Killed) else answer.get("code", 0)
    return code is None or (good and code == 0) or (bad and code == refusal)


@dataclass(frozen=True)
class Check(Call):
    pod: str

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        # A pod whose ADD has not answered has no result to be checked.
        good = self.pod in step.attached and not world.missing
        if may_say(answer, good, not good or bool(world.half), CHECK_FAILED):
            yield world


@dataclass(frozen=True)
class Status(Call):
    cluster: str

    def after(self, world: World, answer: Answer, step: Step) -> Iterator[World]:
        good = not world.tree or not world.missing
        if may_say(answer, good, not good or (world.tree and bool(world.half)), NOT_AVAILABLE):
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
