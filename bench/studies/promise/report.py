"""What was found of one network: ``report.yaml``, ``promise.html``, and tables for the terminal.

``report.yaml`` has the form of the Gateway API's conformance reports. Theirs
(gateway-api, conformance/apis/v1/conformancereport.go) says which implementation in which version was tried,
and for each profile a result and statistics. This one says besides what each check saw, where it ran, and how
to do it again. Within an ``apiVersion`` fields may be added, never renamed. The docs have a page of all
reports that are kept.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.table import Table
from rich.text import Text
from ruamel.yaml import YAML

from bench.presentation import commands
from bench.presentation.report import SYMBOLS, rendered
from bench.recording import atomic
from bench.recording.directory import UNFINISHED, UNKNOWN, Recording, commit_of, part_of
from bench.recording.records import StudyRequest
from bench.studies import study
from bench.studies.promise import PROFILES, VERB, Profile
from bench.studies.promise.check import Number, State
from bench.studies.promise.index import Promise, Result
from bench.studies.study import REQUEST
from testbed.resources import HOME
from testbed.scenario.descriptions import Claim
from testbed.scenario.units import format_bps

FILE = "report.yaml"
# What is said of a check, by its field in promise.json.
CHECKED = {
    **{name: name for name in ("name", "state", "asks", "measured", "words")},
    **{name: name for name in ("numbers", "threads", "recordings")},
    "cpu_s_per_gbit": "cpuSecondsPerGbit",
    "took": "whoTookIt",
}
API_VERSION = "promise.concorde.contmec.dev/v1alpha1"


class Look(NamedTuple):
    """How a state is shown."""

    counted: str  # in report.yaml
    symbol: str
    class_: str  # of the page's style
    style: str  # in the terminal
    short: str  # in the docs


LOOKS: dict[State, Look] = {
    "held": Look("Held", SYMBOLS["held"], "met", "green", "held"),
    "violated": Look("Violated", SYMBOLS["violated"], "missed", "red", "**violated**"),
    "invalid": Look("Invalid", SYMBOLS["invalid"], "muted", "yellow", "?"),
    "not claimed": Look("NotClaimed", "–", "muted", "dim", "–"),
}
# As in the Gateway API's reports; the fourth is ours.
Outcome = Literal["success", "failure", "partial", "notClaimed"]
SENTENCES: dict[Claim, str] = {
    "ceiling": "a pod with a rate never gets more; how much it gets beside others is not said",
    "floor": "a pod with a rate always gets as much, beside whatever neighbours",
    "arrival": "as much arrives, too, whatever other nodes send to the receiver's",
}


def report(directory: Path, found: Promise) -> dict[str, Any]:
    """Return what ``report.yaml`` says of a study whose results are there. Raises StoredError."""
    recordings = [Recording(directory / row.recording) for row in found.rows if row.recording]
    records = [one.run_record() for one in recordings]
    environment = atomic.read_json(recordings[-1].environment_file) if recordings else None
    host = part_of(environment, "host")
    processors = host.get("processors")
    models = sorted({str(model) for model in processors}) if isinstance(processors, list) else []
    return {
        "apiVersion": API_VERSION,
        "kind": "PromiseReport",
        "date": max((record.started_at for record in records), default=UNKNOWN),  # of the last run, UTC
        "implementation": {
            "network": found.network,
            "version": commit_of(environment),  # of the harness, with which Concorde's plugin comes
            "plugins": _texts(environment, "plugins"),  # SHA-256 of their programs, as far as it is known,
            "packages": _texts(environment, "packages"),  # and the packages that they may be from
            "claims": [f"{claim}: {SENTENCES[claim]}" for claim in found.claims],
        },
        "where": {
            "orchestrator": records[-1].orchestrator if records else UNKNOWN,
            "provider": records[-1].provider if records else UNKNOWN,
            "kernel": str(host.get("kernel", UNKNOWN)),
            "processors": f"{host.get('processors_usable', UNKNOWN)} x {', '.join(models)}",
            "links": found.link_bps,  # of each node
            "tools": _texts(environment, "tools"),
        },
        "reproduce": [commands.study(atomic.read(directory / REQUEST, StudyRequest), VERB.name, VERB.flags)],
        "profiles": [_profile(profile, found.of(profile)) for profile in found.profiles],
    }


def _texts(environment: Any, name: str) -> dict[str, str]:
    """Return one part of the environment, whatever its values are, as texts."""
    return {str(key): str(value) for key, value in part_of(environment, name).items()}


def render(told: Mapping[str, Any]) -> str:
    """Return the text of ``report.yaml``."""
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(told, stream)
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
    return {state: counted[state] for state in LOOKS}


def _counted(results: Sequence[Result]) -> str:
    return ", ".join(f"{number} {state}" for state, number in statistics(results).items() if number)


def _profile(profile: Profile, results: Sequence[Result]) -> dict[str, Any]:
    return {
        "name": profile,
        "result": outcome([result.state for result in results]),
        "summary": _counted(results),
        "statistics": {LOOKS[state].counted: number for state, number in statistics(results).items()},
        "checks": [_checked(result) for result in results],
    }


def _checked(result: Result) -> dict[str, Any]:
    """Return what is said of a check, as far as it is known."""
    said = result.model_dump(mode="json", exclude_none=True)
    said["threads"] = [f"https://{thread}" for thread in result.threads]
    return {name: said[field] for field, name in CHECKED.items() if field in said}


TOP = 12  # others that are named


def page(directory: Path, found: Promise, told: Mapping[str, Any]) -> str:
    """Return ``promise.html``, complete in itself."""
    name = directory.name.removesuffix(UNFINISHED)
    return rendered(
        "promise.html.j2",
        "bench.studies.promise",
        run_id=name,
        found=found,
        told=told,
        sentences=SENTENCES,
        looks=LOOKS,
        quantity=quantity,
        top=TOP,
        figures_again=commands.figures(name, study.request(directory)),
    )


def quantity(number: Number, value: float | None) -> str:
    """Return a value of a number as people read it; a dash without one."""
    if value is None:
        return "–"
    if number.unit == "bit/s":
        return str(format_bps(value))
    if number.unit == "s":
        return f"{value * 1e3:.2f} ms"
    if number.unit == "share":
        return f"{value:.3f}"
    return f"{value:,.0f} {'' if number.unit == '1' else number.unit}".strip()


def tables(found: Promise) -> Sequence[Table]:
    """Return a table for each profile."""
    return [_table(found, profile, found.of(profile)) for profile in found.profiles]


def _table(found: Promise, profile: str, results: Sequence[Result]) -> Table:
    table = Table(title=f"network {found.network}, profile {profile}", title_justify="left", box=None)
    table.add_column("check", no_wrap=True)
    table.add_column("", no_wrap=True)
    table.add_column("what was seen")
    table.add_column("CPU s/Gbit", justify="right", no_wrap=True)
    for one in results:
        cost = "–" if one.cpu_s_per_gbit is None else f"{one.cpu_s_per_gbit:.2f}"
        table.add_row(one.name, Text(one.state, LOOKS[one.state].style), Text(one.words), cost)
    return table


PUBLISHED = HOME / "docs" / "reference" / "promises.md"
KEPT = "promise"  # the directory of what is kept, in that of the recordings
PUBLISHED_HEAD = """# What networks keep

<!-- Made of reports/promise/ by ./invokew figures --all; what is changed here by hand is lost. -->

Each network was asked by [`./invokew promise`](../howto/promise.md). `–` is not claimed, and has numbers in
the report; `?` is invalid: the machine may have been the limit. A ceiling says that a pod never gets more,
and no more than that. A report's pages are made by `./invokew figures reports/promise/NAME`.
"""


def published(reports: Path, found: Mapping[str, Promise]) -> str:
    """Return the docs' page of the reports that are kept, by their names in ``reports``."""
    if not found:
        return f"{PUBLISHED_HEAD}\nNo report is kept yet.\n"
    networks = [
        [
            f"[{name}](../../{reports.name}/{KEPT}/{name})",
            one.network,
            ", ".join(one.claims) or "nothing",
            *(_counted(one.of(profile)) or "not asked" for profile in PROFILES),
        ]
        for name, one in found.items()
    ]
    parts = [PUBLISHED_HEAD, _markdown(["Report", "Network", "Claims", *PROFILES], networks)]
    for profile in PROFILES:
        results = {(name, result.name): result for name, one in found.items() for result in one.of(profile)}
        if results:
            parts.append(f"## {profile.capitalize()}\n")
        claimed = {key: result for key, result in results.items() if result.claim}
        parts += [_states(claimed, list(found))] if claimed else []
        parts += _seen([(name, result) for (name, _), result in results.items() if not result.claim])
    return "\n".join(parts)


def _states(results: Mapping[tuple[str, str], Result], names: Sequence[str]) -> str:
    """Return a table of states: a row for each check, a column for each report."""
    asked = {check: result.asks for (_, check), result in results.items()}
    rows = [
        [
            f"{check}: {asks}",
            *(LOOKS[results[name, check].state].short if (name, check) in results else "" for name in names),
        ]
        for check, asks in asked.items()
    ]
    return _markdown(["Check", *names], rows)


def _seen(results: Sequence[tuple[str, Result]]) -> list[str]:
    """Return what was seen of each check that no network can claim, one table a check."""
    asked = {result.name: result.asks for _, result in results}
    return [
        f"{check}: {asks}\n\n"
        + _markdown(["Report", "Seen"], [[name, one.words] for name, one in results if one.name == check])
        for check, asks in asked.items()
    ]


def _markdown(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |\n" for cells in (headings, *rows)]
    return "".join([lines[0], "|---" * len(headings), "|\n", *lines[1:]])
