"""``report.yaml``: what was found of one network, in the form of the Gateway API's conformance reports.

Theirs (gateway-api, conformance/apis/v1/conformancereport.go) says which implementation in which version was
tried, and for each profile a result and statistics. This one says besides what each check saw, where it ran,
and how to do it again. Within an ``apiVersion`` fields may be added, never renamed.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from ruamel.yaml import YAML

from bench.presentation import again
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies import surroundings
from bench.studies.promise.check import Profile, State
from bench.studies.promise.index import SCHEME, NumberResult, Promise, Result, Took
from bench.studies.study import REQUEST
from testbed.scenario.description import Claim

FILE = "report.yaml"
API_VERSION = "promise.concorde.contmec.dev/v1alpha1"
STATISTICS: dict[State, str] = {
    "held": "Held",
    "violated": "Violated",
    "invalid": "Invalid",
    "not claimed": "NotClaimed",
}
# As in the Gateway API's reports; the fourth is ours.
Outcome = Literal["success", "failure", "partial", "notClaimed"]
SENTENCES: dict[Claim, str] = {
    "ceiling": "a pod with a rate never gets more; how much it gets beside others is not said",
    "floor": "a pod with a rate always gets as much, beside whatever neighbours",
}


class Part(BaseModel):
    """Base of all parts."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Implementation(Part):
    """What was tried."""

    network: str
    version: str  # the commit of the harness, with which Concorde's plugin comes
    plugins: dict[str, str] = Field({}, description="SHA-256 of each plugin's program, as far as it is known")
    packages: dict[str, str] = Field({}, description="and the versions of the packages that they may be from")
    claims: list[str]


class Where(Part):
    """Where it ran."""

    orchestrator: str
    provider: str
    kernel: str
    processors: str
    links: int = Field(description="rate of each node's link, bits per second")
    tools: dict[str, str]


class Checked(Part):
    """One check."""

    name: str
    state: State
    asks: str
    measured: str
    words: str
    numbers: list[NumberResult]
    threads: list[str]
    recordings: list[str]
    cpu_s_per_gbit: float | None = Field(None, alias="cpuSecondsPerGbit")
    took: list[Took] = Field([], alias="whoTookIt")


class ProfileReport(Part):
    """One profile."""

    name: Profile
    result: Outcome
    summary: str
    statistics: dict[str, int]
    checks: list[Checked]


class Report(Part):
    """The whole file."""

    api_version: str = Field(API_VERSION, alias="apiVersion")
    kind: str = "PromiseReport"
    date: str  # of the last run, UTC
    implementation: Implementation
    where: Where
    reproduce: list[str]
    profiles: list[ProfileReport]


def report(directory: Path, found: Promise) -> Report:
    """Return the report of a study whose results are there. Raises StoredError."""
    recordings = [Recording(directory / row.recording) for row in found.rows if row.recording]
    records = [one.run_record() for one in recordings]
    environment = atomic.read_json(recordings[-1].environment_file) if recordings else None
    host = surroundings.part(environment, "host")
    processors = host.get("processors")
    models = sorted({str(model) for model in processors}) if isinstance(processors, list) else []
    return Report(
        date=max((record.started_at for record in records), default=surroundings.UNKNOWN),
        implementation=Implementation(
            network=found.network,
            version=surroundings.commit(environment),
            plugins=_texts(environment, "plugins"),
            packages=_texts(environment, "packages"),
            claims=[f"{claim}: {SENTENCES[claim]}" for claim in found.claims],
        ),
        where=Where(
            orchestrator=records[-1].orchestrator if records else surroundings.UNKNOWN,
            provider=records[-1].provider if records else surroundings.UNKNOWN,
            kernel=str(host.get("kernel", surroundings.UNKNOWN)),
            processors=f"{host.get('processors_usable', surroundings.UNKNOWN)} x {', '.join(models)}",
            links=found.link_bps,
            tools=_texts(environment, "tools"),
        ),
        reproduce=_commands(directory),
        profiles=[_profile(profile, found.of(profile)) for profile in found.profiles],
    )


def _texts(environment: Any, name: str) -> dict[str, str]:
    """Return one part of the environment, whatever its values are, as texts."""
    return {str(key): str(value) for key, value in surroundings.part(environment, name).items()}


def render(told: Report) -> str:
    """Return the text of ``report.yaml``."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(told.model_dump(mode="json", by_alias=True, exclude_none=True), stream)
    return stream.getvalue()


def outcome(states: Sequence[State]) -> Outcome:
    """Return what a profile's states amount to."""
    counted = Counter(states)
    if counted["violated"]:
        return "failure"
    if counted["invalid"]:
        return "partial"
    return "success" if counted["held"] else "notClaimed"


def statistics(results: Sequence[Result]) -> Mapping[State, int]:
    """Return how many checks ended in which state."""
    counted = Counter(result.state for result in results)
    return {state: counted[state] for state in STATISTICS}


def _commands(directory: Path) -> list[str]:
    asked = atomic.read(directory / REQUEST, StudyRequest)
    return [again.study(asked, "promise")]


def _profile(profile: Profile, results: Sequence[Result]) -> ProfileReport:
    counted = statistics(results)
    told = ", ".join(f"{number} {state}" for state, number in counted.items() if number)
    return ProfileReport(
        name=profile,
        result=outcome([result.state for result in results]),
        summary=told,
        statistics={STATISTICS[state]: number for state, number in counted.items()},
        checks=[_checked(result) for result in results],
    )


def _checked(result: Result) -> Checked:
    fields: dict[str, Any] = result.model_dump(exclude={"profile", "claim", "numbers", "took", "threads"})
    threads = [SCHEME + thread for thread in result.threads]
    return Checked(**fields, threads=threads, numbers=result.numbers, took=result.took)
