"""What nodes' agents granted during a repetition, round by round, where an enforcement has some.

``raw/repetition-N/rounds-NODE.jsonl`` has a line for each round of one node's agent, an object: ``at``
(seconds after the repetition's beginning); ``told``, what it said to other nodes of its classes, and
``granted``, the ceilings that it gave to theirs (bits per second of the wire); and how it divided its own
link: ``reserved``, ``foreign``, ``free``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from bench.recording import atomic
from testbed.scenario import texts

PATTERN = "rounds-*.jsonl"
# How long before the traffic a round may be.
LONGEST_S = 5.0

Ceilings = Mapping[tuple[str, str], float]  # by a node's address and its class's number


class Round(NamedTuple):
    """One division of a node's link; rates in bits per second of the wire."""

    at_s: float  # after the repetition's beginning
    reserved_bps: float  # for promises that are in use
    foreign_bps: float  # what came and nobody had reported
    granted: Ceilings


def file_name(place: str) -> str:
    """Return the name of the file of a node; ``place`` has small letters, digits, dashes."""
    return PATTERN.replace("*", place)


def on_clock(lines: Iterable[str], zero: float, now: float) -> str:
    """Return an agent's lines with moments after ``zero``; nothing of another machine's clock, or broken."""
    found = []
    for text in lines:
        try:
            line = json.loads(text)
            at = float(line["at"])
        except (ValueError, KeyError, TypeError):
            break  # cut off
        if at > now:
            return ""
        if at >= zero - LONGEST_S:
            found.append(json.dumps({**line, "at": round(at - zero, 4)}, separators=(",", ":")) + "\n")
    return "".join(found)


def read(file: Path) -> Iterator[Round]:
    """Yield the rounds of one node. Raises StoredError."""
    try:
        for text in texts.read(file).splitlines():
            line = json.loads(text)
            granted = {
                (node, minor): float(rate)
                for node, ceilings in line["granted"].items()
                for minor, rate in ceilings.items()
            }
            yield Round(float(line["at"]), float(line["reserved"]), float(line["foreign"]), granted)
    except (texts.TextError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise atomic.StoredError(file, f"not rounds of an agent: {error}") from None


def node_of(file: Path) -> str:
    """Return the node that a file's rounds are of."""
    return file.name.removeprefix("rounds-").removesuffix(".jsonl")
