"""What every device, queue and class on the way had passed, again and again during a repetition.

``raw/repetition-N/queues-PLACE.jsonl`` has one reading a line, each an array: seconds after the repetition's
beginning, then one array for each queue that has changed since the line before (in the first: all of them),
with the fields of ``Queue`` in their order. Counters are the kernel's own since the queue was made.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from bench.recording import atomic
from testbed.scenario import Scenario, rules, texts
from testbed.scenario.faults import Fault

PATTERN = "queues-*.jsonl"
DEVICE = "link"  # the kind of what is no queue, but a device with what it sent

Key = tuple[str, str, str, str]  # device, kind, handle, parent


class Queue(NamedTuple):
    """One queue or class at one moment: what ``tc -s`` shows of it. Or a device, and what it sent."""

    device: str
    kind: str  # of the qdisc, or of the qdisc that the class belongs to: htb, tbf, fq_codel; link: a device
    handle: str  # as tc writes it: 8001: of a qdisc, c0de:11 of a class; empty: a device
    parent: str  # the same; root for what is the device's own; empty: a device
    bytes: int  # that left it, layer 2
    packets: int
    drops: int  # packets
    backlog: int  # bytes that wait now
    length: int  # packets that wait now

    @property
    def key(self) -> Key:
        """By what it is known from reading to reading."""
        return self[:4]


class Reading(NamedTuple):
    """One moment."""

    at_s: float  # after the repetition's beginning
    queues: dict[Key, Queue]  # all that there were so far


def line(at_s: float, queues: list[Queue]) -> str:
    """Return one line of the file."""
    return json.dumps([round(at_s, 4), *queues], separators=(",", ":")) + "\n"


def read(file: Path) -> Iterator[Reading]:
    """Yield the readings of one place. Raises StoredError."""
    return whole(changes(file))


def whole(changed: Iterable[tuple[float, list[Queue]]]) -> Iterator[Reading]:
    """Yield readings with all that was known by each, from what had changed by each."""
    known: dict[Key, Queue] = {}
    for at_s, found in changed:
        known = {**known, **{one.key: one for one in found}}
        yield Reading(at_s, known)


def changes(file: Path) -> Iterator[tuple[float, list[Queue]]]:
    """Yield when one place was read, and what had changed by then. Raises StoredError."""
    try:
        for text in texts.read(file).splitlines():
            at_s, *changed = json.loads(text)
            yield float(at_s), [Queue(*one) for one in changed]
    except (texts.TextError, ValueError, TypeError) as error:
        raise atomic.StoredError(file, f"not readings of queues: {error}") from None


def most_bytes(scenario: Scenario) -> int:
    """Return how many bytes the readings of one place have at most; 0 if none are made.

    As if every pod were there, and everything had changed each time: two counters for a pod, eight for what
    a cluster has there, eight for the node's own, of 70 bytes each. The first reading, of all that there is,
    had a third of that (reports/promise).
    """
    every = scenario.measurement.queues
    if every is None or not scenario.measured:  # which another rule refuses
        return 0
    counters = 2 * len(scenario.pods) + 8 * len(scenario.clusters) + 8
    return math.ceil(scenario.duration / every) * (20 + 70 * counters)


def _faults(scenario: Scenario) -> Iterator[Fault]:
    """The rule that what is recorded can be read back."""
    size = most_bytes(scenario)
    if size > texts.MOST_BYTES:
        yield Fault(
            ("measurement", "queues"),
            f"the readings of one node may have {size:,} bytes, and at most {texts.MOST_BYTES:,} are read; "
            "choose a longer time between them, or a shorter duration",
        )


rules.add(_faults)


def file_name(place: str) -> str:
    """Return the name of the file with a place's readings; ``place`` has small letters, digits, dashes."""
    return PATTERN.replace("*", place)


def place_of(file: Path) -> str:
    """Return the place that a file's readings are of."""
    return file.name.removeprefix("queues-").removesuffix(".jsonl")


def all_of(directory: Path) -> dict[str, list[Reading]]:
    """Return the readings of all places of a repetition, given its directory. Raises StoredError."""
    return {place_of(file): list(read(file)) for file in sorted(directory.glob(PATTERN))}
