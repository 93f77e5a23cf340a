"""``places.json``: which recording is which case, and what each of them shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict

from bench.recording import atomic
from testbed.scenario import Scenario, load
from testbed.scenario.model import Title

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


class Case(NamedTuple):
    """One way to shape at one place."""

    place: str
    classes: str
    overrides: tuple[str, ...] = ()

    def load(self, directory: Path, overrides: Sequence[str], scale: float) -> Scenario:
        """Read the place's scenario for this case. Raises ScenarioError."""
        file = "eth0" if self.place == UNSHAPED else self.place
        return load(directory / f"{file}.yaml", [*self.overrides, *overrides], scale)


UNSHAPED = "unshaped"

_SOURCE = "shaping.classify=source"

_INNER = "shaping.classify=inner-source"

_LINK = "shaping.ceiling=link"

CASES = (
    Case(UNSHAPED, "none", ("shaping=null", f"name={UNSHAPED}", "title=No shaping at all")),
    Case("physical", "one"),
    Case("physical", "u32: source", (_SOURCE,)),
    Case("physical", "u32: inner source", (_INNER,)),
    Case("physical", "same, ceil = link", (_INNER, _LINK)),
    Case("vtep", "one"),
    Case("vtep", "u32: source", (_SOURCE,)),
    Case("vtep", "same, ceil = link", (_SOURCE, _LINK)),
    Case("bridge", "one"),
    Case("bridge-veth", "one a pod"),
    Case("bridge-veth", "same, ceil = link", (_LINK,)),
    Case("eth0", "one a pod"),
    Case("eth0", "same, ceil = link", (_LINK,)),
    Case("node", "enforcement"),
)


class Entry(BaseModel):
    """Base of what ``places.json`` holds."""

    model_config = ConfigDict(extra="forbid")


class Answers(Entry):
    """What a case shows; None where the run cannot tell."""

    per_pod_sending: bool | None  # each pod gets at least its promise, whatever the other one sends
    per_pod_towards: bool | None  # each pod receives its rate and no more
    shapes_egress: bool | None
    shapes_towards: bool | None
    floor: bool | None  # the promise holds while containers want the link
    idle_used: bool | None  # a pod alone gets more than its promise


class Row(Entry):
    """One case, measured."""

    place: Title
    classes: Title
    recording: str | None = None  # its directory within the study; None: it could not be run
    reason: str | None = None  # why it could not
    verdict: str | None = None
    expected_bps: dict[str, float] = {}  # payload, by pod
    rates_bps: dict[Situation, dict[str, float]] = {}  # payload, mean, by situation and pod
    answers: Answers | None = None


class Study(Entry):
    """``places.json``."""

    schema_version: Literal[1] = 1
    rows: list[Row]


def read(directory: Path) -> Study:
    """Return a study. Raises StoredError."""
    return atomic.read(directory / INDEX, Study)
