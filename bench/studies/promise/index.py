"""``promise.json``: which recording is which run, and what each check made of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from bench.studies.promise import PROFILES, Profile
from bench.studies.promise.check import Number, State
from bench.studies.study import Stored, read_index
from testbed.scenario.descriptions import Claim, Direction
from testbed.scenario.words import Title

INDEX = "promise.json"
GITHUB = "github.com/"  # of threads' addresses


class Row(Stored):
    """One run."""

    scenario: Title
    settings: list[str] = Field([])
    recording: str | None = None  # its directory within the study's
    reason: str | None = None  # why it has none


class Taken(Stored):
    """What a queue or class let pass, dropped and held while a flow fell short; a device, what it sent."""

    place: str
    device: str
    kind: str
    handle: str
    bytes: int
    drops: int  # packets
    backlog: int  # bytes, at most


class Took(Stored):
    """Who took what a flow did not get."""

    flow: Title
    recording: str  # below the study's directory; or the file of what is no recording
    repetition: int  # or round
    seconds: float  # how long it was outside of what it should have, in all
    lost: str | None = None  # where: at its sender, on a trunk, at its receiver; None: it is not known
    queues: list[Taken]  # on its path, in the order in which its packets pass them; none: nobody read them
    others: list[Taken] = Field([])  # devices of others that sent meanwhile, who sent most first


class Result(Stored):
    """What became of one check."""

    name: str
    profile: Profile
    asks: str
    measured: str
    claim: Claim | None
    threads: list[str]  # addresses without https://, with which they would pass for paths of a machine
    state: State
    words: str
    numbers: Sequence[Number] = Field([])
    recordings: list[str] = Field([])  # directories within the study's
    cpu_s_per_gbit: float | None = None  # processor seconds for each Gbit that was promised and arrived
    took: list[Took] = Field([])


class Promise(Stored):
    """The whole file."""

    schema_version: Literal[1] = 1
    network: str = ""  # as the scenarios' ``enforcement`` says it
    # What its description says.
    claims: list[Claim] = Field([])
    directions: list[Direction] = Field([])
    asks_check: bool = True
    agents: bool = False
    link_bps: int = 0
    checks: list[str] = Field([])
    rows: list[Row]
    results: list[Result] = Field([])  # in the order of ``checks``, once there are any

    def of(self, profile: Profile) -> list[Result]:
        """Return the results of one profile."""
        return [result for result in self.results if result.profile == profile]

    @property
    def profiles(self) -> list[Profile]:
        """The profiles that have results."""
        return [profile for profile in PROFILES if self.of(profile)]


def read(directory: Path) -> Promise:
    """Return a study's index. Raises StoredError."""
    return read_index(directory / INDEX, Promise)
