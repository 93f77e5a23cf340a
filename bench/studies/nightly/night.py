"""What is kept of one night: a line of its machine's history, made of the night's recordings.

The line is versioned; fields are added to it, never renamed. Rates are payload bits per second,
times are seconds.

A machine is what is the same after each boot. Clock readings are not (a key that had them split one machine's
history at every boot in folo-rs/folo#429), nor is a host's name, which in data centres is another each time.
What changes on a machine from time to time stands beside: it is named if it changed in the night of a change.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, median
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from bench.analysis.summary import FlowSummary, Summary
from bench.recording import atomic
from bench.recording.directory import UNKNOWN, Recording, commit_of, machine_traits, part_of
from bench.recording.records import RunRecord

Verdict = Literal["held", "violated", "invalid", "failed"]
# What speaks of the guarantee itself, and not of whether it could be seen.
BLOCKING = frozenset({"promise", "state"})


class Entry(BaseModel):
    """Base of everything in a line; fields of later additions are ignored when reading."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class PhaseNight(Entry):
    """One flow in one phase, all repetitions together."""

    mean_bps: float
    attainment: float | None


class FlowNight(Entry):
    """One flow or disturbance."""

    guarantee_bps: float | None
    retransmissions: float | None  # segments sent again in a repetition, on average; None: not recorded
    phases: dict[str, PhaseNight]


class ScenarioNight(Entry):
    """One scenario: its recording that counts."""

    verdict: Verdict  # failed: its testbed could not be brought up
    causes: list[str]  # the kinds of the causes, each once
    attempts: int
    recording: str | None = None  # its run id; None: there is none
    setting: str = ""  # numbers of other settings are of another experiment
    flows: dict[str, FlowNight] = {}
    calibration_bps: float | None = None
    add_s: float | None = None  # median time of the pods' ADD; None: not recorded
    up_s: float | None = None
    down_s: float | None = None

    @property
    def measured(self) -> bool:
        """Whether its numbers are those of the guarantee."""
        return self.verdict in ("held", "violated")

    @property
    def blocks(self) -> bool:
        """Whether it speaks against the guarantee."""
        return self.verdict == "violated" or not BLOCKING.isdisjoint(self.causes)


class Night(Entry):
    """One line."""

    schema_version: Literal[1] = 1
    run_id: str
    started_at: str  # UTC, ISO 8601
    machine: str
    commit: str
    verdict: Verdict
    causes: list[str]
    scenarios: dict[str, ScenarioNight]
    beside: dict[str, str] = {}  # what may change on a machine

    @property
    def blocks(self) -> bool:
        """Whether any scenario speaks against a guarantee."""
        return any(one.blocks for one in self.scenarios.values())

    @property
    def silent(self) -> bool:
        """Whether it says nothing of the guarantees."""
        return not self.blocks and self.verdict in ("invalid", "failed")


def environment(recording: Recording) -> Mapping[str, Any]:
    """Return what ``environment.json`` of a recording has. Raises StoredError."""
    found = atomic.read_json(recording.environment_file)
    if not isinstance(found, dict):
        raise atomic.StoredError(recording.environment_file, "not what a run writes")
    return found


@dataclass(frozen=True)
class Attempt:
    """One analysed recording."""

    recording: Recording
    record: RunRecord
    summary: Summary
    environment: Mapping[str, Any]

    @classmethod
    def read(cls, recording: Recording, summary: Summary) -> Attempt:
        """Return it with the rest that is needed of its files. Raises StoredError."""
        return cls(recording, recording.run_record(), summary, environment(recording))

    @property
    def causes(self) -> list[str]:
        """The kinds of its causes, each once."""
        return sorted({cause.kind for cause in self.summary.causes})

    @property
    def silent(self) -> bool:
        """Whether it says nothing of the guarantees, so that another may be tried."""
        return self.summary.verdict == "invalid" and BLOCKING.isdisjoint(self.causes)


@dataclass(frozen=True)
class Outcome:
    """What came of one scenario."""

    attempts: Sequence[Attempt]  # that left a recording; the last one counts
    failure: str | None = None  # why the testbed could not be brought up the last time

    def night(self) -> ScenarioNight:
        """Return what is kept of it."""
        tried = len(self.attempts) + (self.failure is not None)
        if self.failure is not None:
            return ScenarioNight(verdict="failed", causes=[], attempts=tried)
        last = self.attempts[-1]
        summary, record = last.summary, last.record
        return ScenarioNight(
            verdict=summary.verdict,
            causes=last.causes,
            attempts=tried,
            recording=record.run_id,
            setting=_setting(summary),
            flows={flow.name: _flow(flow, summary) for flow in summary.flows},
            calibration_bps=summary.calibration.total_bps if summary.calibration else None,
            add_s=round(median(record.add_s.values()), 4) if record.add_s else None,
            up_s=round(record.seconds.up, 6),  # in the summary it is rounded to what down takes
            down_s=round(record.seconds.down, 6),
        )


def build(outcomes: Mapping[str, Outcome], host: Mapping[str, Any], now: str) -> Night:
    """Return the line of a night; ``outcomes`` is by scenario.

    ``host`` and ``now`` are the environment and the time of a night that left no recording.
    """
    scenarios = {name: outcome.night() for name, outcome in outcomes.items()}
    attempts = [outcome.attempts[-1] for outcome in outcomes.values() if outcome.attempts]
    environment = attempts[0].environment if attempts else host
    facts = circumstances(environment)
    verdicts = {one.verdict for one in scenarios.values()}
    order: tuple[Verdict, ...] = ("violated", "failed", "invalid")
    return Night(
        run_id=_run_id(attempts, now),
        started_at=attempts[0].record.started_at if attempts else now,
        machine=identity(environment),
        commit=facts["commit"].partition(" ")[0],
        verdict=next((verdict for verdict in order if verdict in verdicts), "held"),
        causes=sorted({kind for one in scenarios.values() for kind in one.causes}),
        scenarios=scenarios,
        beside=facts,
    )


def _run_id(attempts: Sequence[Attempt], now: str) -> str:
    """Return a name that the same recordings have again, and no others, even of the same second."""
    if not attempts:
        return f"{datetime.fromisoformat(now):%Y%m%dT%H%M%SZ}-nothing-{secrets.token_hex(4)}"
    records = "\n".join(one.record.model_dump_json() for one in attempts)
    return f"{attempts[0].record.run_id}-{hashlib.sha256(records.encode()).hexdigest()[:8]}"


def _setting(summary: Summary) -> str:
    """Return what makes two nights' runs of a scenario the same experiment."""
    promised = ", ".join(
        f"{flow.name}: {flow.guarantee_bps:.0f}" for flow in summary.flows if flow.guarantee_bps is not None
    )
    return f"{summary.enforcement}; {summary.provider}; {summary.orchestrator}; {promised}"


def _flow(flow: FlowSummary, summary: Summary) -> FlowNight:
    sent_again = [
        count
        for repetition in summary.machine
        if (count := repetition.retransmits.get(flow.name)) is not None
    ]
    return FlowNight(
        guarantee_bps=flow.guarantee_bps,
        retransmissions=fmean(sent_again) if sent_again else None,
        phases={
            name: PhaseNight(mean_bps=phase.mean_bps, attainment=phase.attainment)
            for name, phase in flow.phases.items()
        },
    )


DIGITS = 12
# A processor's model has its nominal speed in its name.
_SPEED = re.compile(r"\s*@\s*[0-9.]+\s*[GM]Hz")


def identity(environment: Mapping[str, Any]) -> str:
    """Return 12 hex digits for a machine; ``environment`` is what ``environment.json`` has, or its host."""
    return hashlib.sha256("\n".join(_traits(environment)).encode()).hexdigest()[:DIGITS]


def _traits(environment: Mapping[str, Any]) -> list[str]:
    known = machine_traits(environment)
    models = {_SPEED.sub("", model) for model in known.get("processor models") or [UNKNOWN]}
    memory = known.get("memory in GiB")
    return [
        f"architecture: {known.get('architecture', UNKNOWN)}",
        f"processor models: {', '.join(sorted(models))}",
        f"processors: {known.get('processors', UNKNOWN)}",
        f"memory: {UNKNOWN if memory is None else f'{memory} GiB'}",
        f"hypervisor: {known.get('hypervisor', UNKNOWN)}",
        f"kernel: {known.get('kernel', UNKNOWN)}",
    ]


def circumstances(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what may change on one machine, by what it is called."""
    host, tools, harness = (part_of(environment, name) for name in ("host", "tools", "harness"))
    return {
        "commit": commit_of(environment),
        "iperf3": str(tools.get("iperf3", UNKNOWN)),
        "pinned packages": str(harness.get("requirements", UNKNOWN)),
        "kernel": str(host.get("kernel", UNKNOWN)),
        "Python": str(harness.get("python", UNKNOWN)),
    }
