"""What the queues on the transfers' way dropped, and what left by their default classes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.observations.observation import NOT_RECORDED, Column, Observation, Scene, Seen
from bench.recording.records import Repetition
from testbed.access.place import CommandError, Place, in_parallel

# All qdiscs as JSON, on one line, then the classes of every interface with an HTB, each after the interface's
# name. iproute2 before 6.3 prints classes as text even when asked for JSON.
LOOK = """
tc -s -j qdisc show | tr -d '\\n' && echo
tc qdisc show | while read -r _ kind _ word device _; do
    [ "$kind $word" = "htb dev" ] && echo "device $device" && tc -s class show dev "$device"
done
true
"""
NO_QUEUE = "noqueue"

CLASS = re.compile(r"^class htb (?P<id>[0-9a-f]+:[0-9a-f]+) .*\n\s*Sent (?P<bytes>\d+) bytes", re.MULTILINE)


@dataclass(frozen=True)
class Counts:
    """What queues have counted so far, each called by its place, interface and handle."""

    dropped: dict[str, int]  # packets
    by_default: dict[str, int]  # bytes that left by the default class of an HTB that has one

    def since(self, before: Counts) -> Counts:
        """Return what was counted after ``before`` by the queues that there were all the time."""
        return Counts(
            _difference(before.dropped, self.dropped), _difference(before.by_default, self.by_default)
        )


class Queues(Observation):
    """Counts on the transfers' way, before and after."""

    name = "queues"
    columns = (
        Column("dropped", "packets that queues on the way dropped", lambda of: total(of.dropped)),
        Column("by default class", "bytes that left by default classes", lambda of: total(of.by_default)),
    )

    def before(self, scene: Scene) -> Counts:
        """Return what was counted before."""
        return count(scene.way)

    def after(self, scene: Scene, before: Counts) -> Seen:
        """Return what was counted meanwhile."""
        counted = count(scene.way).since(before)
        return Seen(fields={"dropped": counted.dropped, "by_default": counted.by_default})

    def details(self, repetition: Repetition) -> Mapping[str, Any]:
        """Return the counts, queue by queue."""
        return {
            "packets dropped": repetition.dropped or NOT_RECORDED,
            "bytes that left by default classes": repetition.by_default or "none",
        }


def total(counts: Mapping[str, int] | None) -> str:
    """Return the sum of what was counted."""
    return NOT_RECORDED if counts is None else f"{sum(counts.values()):,}"


def count(places: Sequence[Place]) -> Counts:
    """Return what the queues in some places have counted; a place that cannot be asked has none."""

    def asked(place: Place) -> str:
        try:
            return place.run(["sh", "-c", LOOK], check=False).stdout
        except CommandError:
            return ""

    counted = Counts({}, {})
    for place, said in zip(places, in_parallel(asked, places), strict=True):
        one = read(place.name, said)
        counted.dropped.update(one.dropped)
        counted.by_default.update(one.by_default)
    return counted


def read(place: str, said: str) -> Counts:
    """Return the counts in what one place said; none if it is not what ``tc`` says."""
    shown, _, rest = said.partition("\n")
    try:
        qdiscs = [one for one in json.loads(shown or "[]") if one["kind"] != NO_QUEUE]
        sent = {device: dict(_classes(text)) for device, text in _devices(rest)}
        return Counts(
            {_name(place, one): int(one["drops"]) for one in qdiscs},
            {
                _name(place, one): sent[one["dev"]][default]
                for one in qdiscs
                if (default := _default(one)) is not None and default in sent.get(one["dev"], {})
            },
        )
    except (ValueError, KeyError, TypeError):
        return Counts({}, {})


def _name(place: str, qdisc: dict[str, Any]) -> str:
    return f"{place} {qdisc['dev']} {qdisc['kind']} {qdisc['handle']}"


def _default(qdisc: dict[str, Any]) -> str | None:
    """Return the default class of an HTB, as ``tc`` calls it; None if there is none."""
    if qdisc["kind"] != "htb":
        return None
    minor = int(qdisc["options"]["default"], 16)
    return f"{qdisc['handle']}{minor:x}" if minor else None


def _devices(text: str) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^device ", text, flags=re.MULTILINE)[1:]:
        device, _, classes = part.partition("\n")
        yield device, classes


def _classes(text: str) -> Iterator[tuple[str, int]]:
    for match in CLASS.finditer(text):
        yield match["id"], int(match["bytes"])


def _difference(before: dict[str, int], after: dict[str, int]) -> dict[str, int]:
    return {name: after[name] - earlier for name, earlier in before.items() if name in after}
