"""``places.json``: which recording is which case, and what each of them shows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import Field

from bench.studies.study import Stored, read_index
from testbed.scenario.words import Title

INDEX = "places.json"

Situation = Literal["alone", "towards", "sending", "disturbed"]

SITUATIONS: tuple[Situation, ...] = ("alone", "towards", "sending", "disturbed")


class Claim(NamedTuple):
    """What the paper says of a place; None: nothing."""

    per_pod: bool | None
    egress: bool
    section: str


CLAIMS = {
    "physical": Claim(False, True, "3.2.1"),
    "vtep": Claim(False, True, "3.2.2"),
    "bridge": Claim(None, False, "3.2.3"),
    "bridge-veth": Claim(True, False, "3.2.4"),
    "eth0": Claim(True, True, "3.2.5"),
}


class Point(NamedTuple):
    """A shaping point: one way to shape at one place."""

    place: str
    classes: str
    overrides: tuple[str, ...] = ()

    @property
    def scenario(self) -> str:
        """The name of the place's scenario."""
        return f"places/{'eth0' if self.place == UNSHAPED else self.place}"


UNSHAPED = "unshaped"

_SOURCE = "shaping.classify=source"

_INNER = "shaping.classify=inner-source"

_LINK = "shaping.ceiling=link"

POINTS = (
    Point(UNSHAPED, "none", ("shaping=null", f"name={UNSHAPED}", "title=No shaping at all")),
    Point("physical", "one"),
    Point("physical", "u32: source", (_SOURCE,)),
    Point("physical", "u32: inner source", (_INNER,)),
    Point("physical", "same, ceil = link", (_INNER, _LINK)),
    Point("vtep", "one"),
    Point("vtep", "u32: source", (_SOURCE,)),
    Point("vtep", "same, ceil = link", (_SOURCE, _LINK)),
    Point("bridge", "one"),
    Point("bridge-veth", "one a pod"),
    Point("bridge-veth", "same, ceil = link", (_LINK,)),
    Point("eth0", "one a pod"),
    Point("eth0", "same, ceil = link", (_LINK,)),
    Point("node", "enforcement"),
)

PLACES = tuple(dict.fromkeys(point.place for point in POINTS))


class Answers(Stored):
    """What a case shows; None where the run cannot tell."""

    per_pod_sending: bool | None  # each pod gets at least its promise, whatever the other one sends
    per_pod_towards: bool | None  # each pod receives its rate and no more
    shapes_egress: bool | None
    shapes_towards: bool | None
    floor: bool | None  # the promise holds while containers want the link
    idle_used: bool | None  # a pod alone gets more than its promise


class Row(Stored):
    """One case, measured."""

    place: Title
    classes: Title
    recording: str | None = None  # its directory within the study; None: it could not be run
    reason: str | None = None  # why it could not
    verdict: str | None = None
    expected_bps: dict[str, float] = Field({})  # payload, by pod
    rates_bps: dict[Situation, dict[str, float]] = Field({})  # payload, mean, by situation and pod
    answers: Answers | None = None


class Places(Stored):
    """``places.json``."""

    schema_version: Literal[1] = 1
    rows: list[Row]


def read(directory: Path) -> Places:
    """Return a study. Raises StoredError."""
    return read_index(directory / INDEX, Places)
