"""Where was lost, or held back, what a flow did not get: at its sender, on a trunk, at its receiver?

Decided by the kernel's counters (bench.recording.queues) in the samples in which the flow fell short, link by
link of its way. A link was what limited it if it was full meanwhile and packets waited for it, or were
dropped, at most of the readings. Of several it is the first; but where an enforcement keeps promises on the
nodes' links, a full one is no reason, as long as another is full behind it. What a node sends to one other
alone has no queue before that one's (testbed.links.underlay): it is the sender's if it fills that by itself.
A miss that is the machine's is the processor's. Whatever has no evidence is not found, and never guessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench.analysis.phases import Span
from bench.observations.causes import Cause, Lost
from bench.recording.queues import DEVICE, Queue, Reading
from bench.recording.records import CountedLink, slug
from testbed.scenario import Scenario, Traffic, enforcements, links
from testbed.scenario.links import Link
from testbed.scenario.units import format_share

Places = Mapping[str, Sequence[Reading]]  # by name, as their files have it

# What a link with a queue is full from, by what the queue let pass. HTB lets 0.98 or 0.99 of it pass.
FULL = 0.9
# A device counts the headers of an offloaded packet once: of 64 KiB by VXLAN some 7 % less than the link.
FULL_BY_DEVICE = 0.85
# Of the readings: so many find packets waiting where a link is what limits.
WAITING = 0.5
NOT_FOUND = Lost(where=None, text="not found: no link on its way was full by the counters, nor was its queue")
BY_THE_MACHINE = Lost(where="processor", text="lost at the processor: the machine had no time to spare")


class _Did(NamedTuple):
    """What one counter did in some stretches."""

    seconds: float
    bytes: int
    drops: int  # packets
    waiting: float  # share of the readings that found some

    @property
    def held(self) -> bool:
        """Whether packets had to wait, or found no room."""
        return self.drops > 0 or self.waiting >= WAITING


@dataclass(frozen=True)
class _Full:
    """A link that was full."""

    link: Link
    share: float
    drops: int


def located(
    cause: Cause, scenario: Scenario, places: Places, counted: Sequence[CountedLink], low: Sequence[Span]
) -> Cause:
    """Return why a flow did not hold, with where that was; ``low`` is when it fell short."""
    flow = next((one for one in scenario.flows if one.label == cause.flow), None)
    if flow is None or not low or {"mean", "attainment"}.isdisjoint(cause.topics):
        return cause
    if cause.kind == "machine":
        return cause.model_copy(update={"lost": BY_THE_MACHINE})
    return cause.model_copy(update={"lost": where(scenario, flow, places, counted, low)})


def where(
    scenario: Scenario, flow: Traffic, places: Places, counted: Sequence[CountedLink], low: Sequence[Span]
) -> Lost:
    """Return where a flow was lost or held back in some stretches, as far as counters show it."""
    own = [one for one in _did(places.get(slug(flow.source), ()), low).values() if one.held]
    if own:
        dropped = sum(one.drops for one in own)
        return Lost(
            where="sender", text=f"held at the sender: in {flow.source}'s own queue ({dropped:,} dropped)"
        )
    full = [
        one for link in links.passed(scenario, flow) if (one := _full(scenario, link, places, counted, low))
    ]
    if not full:
        return NOT_FOUND
    keeps = enforcements.of(scenario).shares_links
    one = full[1] if keeps and len(full) > 1 and not full[0].link.trunk and full[0].link.out else full[0]
    place = "trunk" if one.link.trunk else "sender" if one.link.out else "receiver"
    what = f"the trunk of zone {one.link.owner}" if one.link.trunk else f"the link of {one.link.owner}"
    way = "out" if one.link.out else "in"
    happened, then = "lost", f"{one.drops:,} packets were dropped there"
    if not one.drops:
        happened, then = "held back", "packets waited for it"
    share = format_share(min(one.share, 1.0))
    text = f"{happened} at the {place}: {what}, {way}, was {share} full, and {then}"
    return Lost(where=place, text=text)


def _full(
    scenario: Scenario, link: Link, places: Places, counted: Sequence[CountedLink], low: Sequence[Span]
) -> _Full | None:
    """Return a link if it was full; a link without a rate never is."""
    rate = links.rate(scenario, link)
    key = link.owner, link.trunk, link.out
    at = [one for one in counted if (one.owner, one.trunk, one.out) == key]
    if rate is None or link.segment is not None:
        return None
    found = []
    for one in at:
        did = _did(places.get(one.place, ()), low, one.device)
        queued = [each for name, each in did.items() if name[1] != DEVICE and name[3] in ("root", "1:1")]
        sent = [each for name, each in did.items() if name[1] == DEVICE]
        for each in queued:
            drops = max(other.drops for other in queued)
            waiting = any(other.held for other in queued)
            found.append((_share(each, rate), drops, FULL if waiting else float("inf")))
        if not queued:
            found += [(_share(each, rate), each.drops, FULL_BY_DEVICE) for each in sent]
    full = [(share, drops) for share, drops, least in found if share >= least]
    return _Full(link, *max(full)) if full else None


def _share(did: _Did, rate: int) -> float:
    return did.bytes * 8 / did.seconds / rate if did.seconds else 0.0


def _did(
    readings: Sequence[Reading], low: Sequence[Span], device: str | None = None
) -> dict[tuple[str, str, str, str], _Did]:
    """Return what counters did in stretches, each from the last reading before it to the first after it."""
    found: dict[tuple[str, str, str, str], list[_Did]] = {}
    for span in _around(readings, low):
        seconds = span[-1].at_s - span[0].at_s
        for key, last in span[-1].queues.items():
            first = span[0].queues.get(key)
            if first is None or last.bytes < first.bytes or (device is not None and key[0] != device):
                continue  # it was made meanwhile
            found.setdefault(key, []).append(_of(seconds, first, last, span))
    return {key: _sum(several) for key, several in found.items()}


def _of(seconds: float, first: Queue, last: Queue, span: Sequence[Reading]) -> _Did:
    waiting = [reading.queues[first.key].backlog > 0 for reading in span[1:] if first.key in reading.queues]
    return _Did(
        seconds, last.bytes - first.bytes, last.drops - first.drops, sum(waiting) / max(1, len(waiting))
    )


def _sum(several: Sequence[_Did]) -> _Did:
    seconds = sum(one.seconds for one in several)
    waiting = sum(one.waiting * one.seconds for one in several)
    return _Did(
        seconds,
        sum(one.bytes for one in several),
        sum(one.drops for one in several),
        waiting / seconds if seconds else 0.0,
    )


def _around(readings: Sequence[Reading], low: Iterable[Span]) -> list[list[Reading]]:
    """Return the readings around each stretch; stretches whose readings meet are one."""
    merged: list[tuple[int, int]] = []
    for span in sorted(low):
        before = [number for number, one in enumerate(readings) if one.at_s <= span.start]
        after = [number for number, one in enumerate(readings) if one.at_s >= span.end]
        if not before or not after:
            continue
        if merged and before[-1] <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], after[0])
        else:
            merged.append((before[-1], after[0]))
    return [list(readings[first : last + 1]) for first, last in merged if last > first]
