"""Which promises does a network keep? The checks, their runs, and what came of them.

The study is a directory of ordinary recordings, with ``measured/`` for what is none, and ``promise.json``,
``report.yaml`` and ``promise.html``, in which all of it is judged.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.analysis import next_steps
from bench.analysis.next_steps import NextStep, NextStudy
from bench.analysis.verdict import Outcome
from bench.generators import promised
from bench.measurement.display import Displays
from bench.presentation.wording import estimate
from bench.recording import atomic, requests
from bench.recording.directory import BESIDE, Recording
from bench.recording.records import Entry, StudyRequest
from bench.studies.promise import PROFILES, VERB, attribution
from bench.studies.promise.check import (
    Check,
    Evidence,
    Ground,
    Judgement,
    Ran,
    Run,
    Stage,
    all_checks,
)
from bench.studies.promise.checks import ceiling, floor, latency, robust  # noqa: F401 - they register theirs
from bench.studies.promise.index import GITHUB, INDEX, Promise, Result, Row, read
from bench.studies.study import REQUEST, Case, Drawn, Promised, Study, chosen, left_s, untold
from testbed.assembly import orchestrator_kind
from testbed.scenario import ScenarioError, enforcements
from testbed.scenario.units import format_rate, parse_rate

if TYPE_CHECKING:
    from rich.console import RenderableType

ATTACKS = "attack-own-pods"  # the choice that asks for them; nobody else's may be attacked
NETWORK = "node"  # that is asked, if none is named
LINK_BPS = 4 * 10**9  # of the kit's own links
SLOWEST_LINK_BPS = 10**9
ANY = "promise/link"  # whichever scenario: by it the network is read
NOT_THERE = "there is nothing measured of it"


class Failed(Entry):
    """Why a check could not measure what is no recording."""

    reason: str


class PromiseStudy(Study):
    """Every check of the profiles that are asked for, of one network."""

    name = "promise"
    verb = VERB
    model = Promise
    leads_to = NextStudy("matrix", next_steps.SIDE_BY_SIDE)
    keeps_failures = True  # what a network refuses is an answer

    def cases(self, asked: StudyRequest) -> Sequence[Case]:
        """Return the runs of the checks that are asked for. Raises LookupError, ScenarioError."""
        ground = _ground(asked)
        checks = [check for check in _checks(asked) if not check.lack(ground)]
        runs = dict.fromkeys(run for check in checks for run in check.runs(ground).values())  # each once
        found = [_case(ground, run) for run in runs]
        if found and not any(case.scenario for case in found):
            raise LookupError(found[0].row.reason)
        return found

    def measure(self, asked: StudyRequest, directory: Path, displays: Displays) -> None:
        """Let checks measure what is no recording."""
        ground = _ground(asked)
        checks = _measured(asked, ground)
        planned = [check.seconds for check in checks]
        took: list[float | None] = [None] * len(checks)
        for number, check in enumerate(checks):
            if any(_measured_file(directory, check, failed).exists() for failed in (False, True)):
                continue
            stage = displays(check.name).stage
            left = estimate(left_s(planned, took, number))
            stage(f"check {number + 1} of {len(checks)}, {left} left")
            begun = time.monotonic()
            _measure(check, ground, directory, stage)
            took[number] = time.monotonic() - begun

    def probes(self, asked: StudyRequest) -> Mapping[str, float]:
        """Return the checks of what is no recording."""
        return {check.name: check.seconds for check in _measured(asked, _ground(asked))}

    def whole_index(self, asked: StudyRequest, cases: Sequence[Case], rows: Sequence[Any]) -> Promise:
        """Return ``promise.json`` with what was asked for."""
        ground = _ground(asked)
        return Promise(
            network=ground.called,
            claims=sorted(ground.claims),
            directions=sorted(ground.directions),
            asks_check=ground.asks_check,
            agents=ground.agents,
            link_bps=ground.link_bps,
            checks=[check.name for check in _checks(asked)],
            rows=list(rows),
        )

    def next_of(self, asked: StudyRequest, outcome: Outcome) -> NextStep | None:
        """After a promise that is broken, ask the network that reserves the same."""
        networks = asked.choices.get("network") or (NETWORK,)
        if outcome == "violated" and NETWORK not in networks and not asked.kubeconfigs:
            choices = {**asked.choices, "network": (NETWORK,)}
            again = asked.model_copy(update={"choices": choices})
            return next_steps.NextStep(again, "whether the network that reserves keeps it")
        return super().next_of(asked, outcome)

    def tables(self, directory: Path) -> Sequence[RenderableType]:
        """Return a table for each profile."""
        from bench.studies.promise import report

        return report.tables(read(directory))

    def outputs(self, directory: Path, drawn: Drawn) -> Mapping[str, bytes]:
        """Return ``promise.json`` with its results, ``report.yaml`` and ``promise.html``."""
        from bench.studies.promise import report

        found = self.judged(directory)
        told = report.report(directory, found)
        return {
            INDEX: atomic.model_bytes(found),
            report.FILE: report.render(told).encode(),
            "promise.html": report.page(directory, found, told).encode(),
        }

    def judged(self, directory: Path) -> Promise:
        """Return the index with what every check makes of what was kept. Raises StoredError."""
        index = read(directory)
        with atomic.remedy("restore it: nothing else says what was asked"):
            asked = atomic.read(directory / REQUEST, StudyRequest)
        # As it was described then: its file may be another by now, or gone.
        ground = replace(
            _asked_ground(asked),
            claims=frozenset(index.claims),
            directions=frozenset(index.directions),
            asks_check=index.asks_check,
            agents=index.agents,
        )
        by_name = {check.name: check for check in all_checks()}
        results = [
            _result(by_name[name], ground, index, directory) for name in index.checks if name in by_name
        ]
        return index.model_copy(update={"results": results})

    def notes(self, directory: Path) -> Sequence[str]:
        """Return which runs could not be made, and why, and whose answers were promised nothing."""
        lost = [f"not run: {row.scenario}: {row.reason}" for row in self.rows(directory) if row.reason]
        said = [note for result in self.summaries(directory) if result for note in result.notes]
        return [*lost, *dict.fromkeys(note for note in said if note.startswith(promised.ACKNOWLEDGEMENTS))]

    def outcome(self, directory: Path) -> Outcome:
        """Return what is the worst of what the network claims; what it does not claim is none."""
        states = [result.state for result in read(directory).results]
        if "violated" in states:
            return "violated"
        return "invalid" if "invalid" in states else "held"

    def promised(self, directory: Path) -> Sequence[Promised]:
        """Return nothing: what shall hold is said by checks, and not by single recordings."""
        return ()


def _ground(asked: StudyRequest) -> Ground:
    """Return what a study is about. Raises LookupError, ScenarioError for a network that cannot be read."""
    ground = _asked_ground(asked)
    enforcements.refuse_unknown("--network", ground.network)
    scenario = requests.read(asked.case(ANY, (f"enforcement={ground.network}",)))
    kind, conflist = enforcements.of(scenario), enforcements.description_of(scenario).conflist
    return replace(
        ground,
        called=scenario.kept_by,
        claims=kind.claims,
        directions=kind.direction,
        asks_check=not ground.existing and not (conflist or {}).get("disableCheck", False),
        agents=not ground.existing and orchestrator_kind(asked.provider, asked.orchestrator).has_agents,
    )


def _asked_ground(asked: StudyRequest) -> Ground:
    """Return what the command line says of that. Raises LookupError."""
    networks = asked.choices.get("network") or (NETWORK,)
    if len(networks) > 1:
        raise LookupError(f"--network: {' and '.join(networks)} are several; a report is of one")
    if asked.kubeconfigs and not asked.choices.get("link"):
        raise LookupError("--link: say what the nodes' links have there, such as 10G")
    return Ground(
        asked=asked,
        network=networks[0],
        link_bps=_link(asked) or LINK_BPS,
        existing=bool(asked.kubeconfigs),
        attacks=not asked.kubeconfigs or bool(asked.choices.get(ATTACKS)),
    )


def _link(asked: StudyRequest) -> int | None:
    words = asked.choices.get("link") or ()
    if not words:
        return None
    try:
        rate = parse_rate(words[-1])
    except ValueError as error:
        raise LookupError(f"--link: {error}") from None
    if rate < SLOWEST_LINK_BPS:
        raise LookupError(f"--link: {words[-1]} is less than {format_rate(SLOWEST_LINK_BPS)}")
    return rate


def _checks(asked: StudyRequest) -> list[Check]:
    """Return the checks that are asked for, in their order. Raises LookupError."""
    all_of_them = all_checks()
    profiles = chosen(asked, "profile", PROFILES)
    named = chosen(asked, "check", sorted(check.name for check in all_of_them))
    found = [
        check
        for check in all_of_them
        if check.profile in profiles and check.name in named
        if asked.choices.get("check") or not check.on_request
    ]
    _refuse_attacks(asked, found)
    return found


def _measured(asked: StudyRequest, ground: Ground) -> list[Check]:
    """Return those of them that need no run, and can be asked here."""
    return [check for check in _checks(asked) if check.make and not check.lack(ground)]


def _measure(check: Check, ground: Ground, directory: Path, stage: Stage) -> None:
    """Keep what a check measures, or why it could not."""
    file = _measured_file(directory, check)
    measured: Entry
    try:
        measured = check.measure(ground, stage)
    except (RuntimeError, ScenarioError) as error:
        file, measured = _measured_file(directory, check, failed=True), Failed(reason=str(error))
    file.parent.mkdir(exist_ok=True)
    # On one line: every number on a line of its own makes it three times as long.
    atomic.write(file, f"{measured.model_dump_json()}\n".encode())


def _refuse_attacks(asked: StudyRequest, checks: Sequence[Check]) -> None:
    """Raise LookupError for attacks on clusters that exist that are named, and not asked for as such."""
    ground = _asked_ground(asked)
    for check in checks:
        named = {"--check": check.name, "--profile": check.profile}
        for option, name in named.items():
            if check.attacks and not ground.attacks and name in asked.choices.get(option[2:], ()):
                raise LookupError(f"{option} {name}: {check.name}: {check.lack(ground)}")


def _case(ground: Ground, run: Run) -> Case:
    asked = ground.asked
    link = (f"underlay.rate={format_rate(ground.link_bps)}",) if asked.choices.get("link") else ()
    network = f"enforcement={ground.network}"
    left_out = untold(asked, run.scenario, ground.network)
    request = asked.case(run.scenario, (*run.settings, *link, *left_out, network, *asked.overrides))
    name, row = run.scenario.rpartition("/")[2], Row(scenario=run.scenario, settings=list(run.settings))
    try:
        return Case(name, request, requests.read(request), row)
    except ScenarioError as error:
        return Case(name, request, None, row.model_copy(update={"reason": str(error)}))


def _measured_file(directory: Path, check: Check, failed: bool = False) -> Path:
    """Return the file of what a check measured beside recordings, or of why it could not."""
    return directory / BESIDE / f"{check.name}{'-failed' if failed else ''}.json"


def _result(check: Check, ground: Ground, index: Promise, directory: Path) -> Result:
    """Return what a check makes of what was kept."""
    evidence = _evidence(check, ground, index, directory)
    failed = _measured_file(directory, check, failed=True)
    lack = check.lack(ground)
    if lack:
        judgement = Judgement("invalid", lack)
    elif failed.exists():
        judgement = Judgement("invalid", f"not measured: {atomic.read(failed, Failed).reason}")
    else:
        judgement = check.judge(evidence)
    recorded = [] if lack else [ran for ran in evidence.runs.values() if ran.recording]
    costs = [one for ran in recorded if (one := attribution.cpu_s_per_gbit(ran)) is not None]
    return Result(
        name=check.name,
        profile=check.profile,
        asks=check.asks,
        measured=check.measured,
        claim=check.claim,
        threads=[GITHUB + thread for thread in check.threads],
        # What nobody claims, or nobody can ask, is neither kept nor broken.
        state="not claimed" if lack or not ground.claimed(check) else judgement.found,
        words=judgement.words,
        numbers=judgement.numbers,
        recordings=[ran.recording.run_id for ran in recorded if ran.recording],
        cpu_s_per_gbit=max(costs, default=None),
        took=attribution.took(evidence, judgement.short),
    )


def _evidence(check: Check, ground: Ground, index: Promise, directory: Path) -> Evidence:
    rows = {Run(row.scenario, tuple(row.settings)): row for row in index.rows}
    runs = {}
    for name, run in check.runs(ground).items():
        row = rows.get(run, Row(scenario=run.scenario))
        recording = Recording(directory / row.recording) if row.recording else None
        runs[name] = Ran(recording, row.reason or NOT_THERE)
    file = _measured_file(directory, check)
    return Evidence(runs, file if file.exists() else None)
