"""All that is to be told of a night, and the files that tell it to people and to other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median
from typing import Any
from xml.etree import ElementTree as Xml

from bench.studies.nightly import metrics
from bench.studies.nightly.findings import ADVISORY, LOOKED_AT, Finding, Gate, Judgement
from bench.studies.nightly.night import Night, Outcome, ScenarioNight
from bench.studies.nightly.shifts import Kind, Shift

BEFORE = 20  # nights before tonight whose median is shown
HEADINGS = ("flow", "tonight", f"median of the last {BEFORE}", "change", "since when")
EXPLANATION = (
    f"Median: of the {BEFORE} nights before tonight. Change: with a date, from the level before that day "
    "to the one since, with the 95 % interval; without one, from the median to tonight."
)


@dataclass(frozen=True)
class Row:
    """One series; numbers are in its unit."""

    metric: str
    name: str
    tonight: float | None
    median: float | None
    change: str
    since: str

    @property
    def texts(self) -> Sequence[str]:
        """Its cells, in the order of HEADINGS."""
        return self.name, *metrics.shown(self.metric, self.tonight, self.median), self.change, self.since


def rows(nights: Sequence[Night], findings: Sequence[Finding]) -> tuple[list[Row], list[Row]]:
    """Return a row for each flow and whatever else a finding is about, and one for each other series."""
    standing = {shift.metric: (shift, finding) for finding in reversed(findings) for shift in finding.shifts}
    tonight = len(nights) - 1
    main: list[Row] = []
    rest: list[Row] = []
    for metric, seen in metrics.series(nights).items():
        row = _row(metric, seen, tonight, standing.get(metric))
        (main if metric in standing or metrics.is_rate_of_a_flow(metric) else rest).append(row)
    return main, rest


def _row(metric: str, seen: Mapping[int, float], tonight: int, standing: tuple[Shift, Finding] | None) -> Row:
    before = [value for index, value in seen.items() if tonight - BEFORE <= index < tonight]
    usual, value = median(before) if before else None, seen.get(tonight)
    change, since = "–", "–"
    if standing is not None:
        shift, finding = standing
        change, since = size(shift), when(finding)
        if finding.acknowledged:
            since += ", acknowledged"
    elif value is not None and usual:
        change = percentage(value / usual - 1)
    return Row(metric, metrics.title(metric), value, usual, change, since)


def size(shift: Shift) -> str:
    """Say how far tonight's level is from the one before a change, with the 95 % interval."""
    change = shift.now
    share, low, high = (change.share(each) for each in (change.difference, change.low, change.high))
    if share is None or low is None or high is None:
        unit = metrics.kind_of(shift.metric).unit
        return f"{change.difference:+.4g} ({change.low:+.4g} to {change.high:+.4g}) {unit}"
    return f"{percentage(share)} ({percentage(low)} to {percentage(high)})"


def percentage(share: float, signed: bool = True) -> str:
    """Return a share in per cent, with one decimal."""
    text = f"{share * 100:{'+' if signed else ''}.1f} %"
    return "0.0 %" if text in ("+0.0 %", "-0.0 %") else text


def when(finding: Finding) -> str:
    """Say since when a finding stands, and how long that is."""
    lasts = f"{_count(finding.nights, 'night')}, {_count(finding.days, 'day')}"
    return f"{finding.night.started_at[:10]} ({lasts})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


WORDS: Mapping[Kind, str] = {
    "worse": "worse",
    "better": "better",
    "machine": "changed with the machine",
    "back": "back to the level before",
}


@dataclass(frozen=True)
class Look:
    """How a gate looks: its mark, its word, and its class in a page's style."""

    mark: str
    word: str
    style: str


LOOKS: Mapping[Gate, Look] = {
    "broken": Look("✗", "violated", "violated"),
    "not up": Look("✗", "not brought up", "failed"),
    "worse": Look("✗", "worse", "violated"),
    "no statement": Look("?", "no statement", "invalid"),
    "advice": Look("!", "advice", "invalid"),
    "acknowledged": Look("!", "acknowledged", "invalid"),
    "passed": Look("✓", "held", "held"),
}
_COMMIT = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28}\b")
# What XML 1.0 has no character for (section 2.2).
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Report:
    """One night, and what it shows beside those before."""

    nights: Sequence[Night]  # tonight last
    outcomes: Mapping[str, Outcome]  # of tonight, by scenario
    judgement: Judgement
    shifts: Sequence[Shift]  # every change of the history, in the order of their nights
    findings: Sequence[Finding]  # of which these are told tonight, the worst first
    warnings: Sequence[str]

    @property
    def tonight(self) -> Night:
        """The night itself."""
        return self.nights[-1]

    def reasons(self) -> Iterator[str]:
        """Yield why scenarios did not hold, a sentence each."""
        for name, outcome in self.outcomes.items():
            yield from (f"{name}: {reason}" for reason in _reasons(outcome))

    def notes(self) -> Iterator[str]:
        """Yield what is the matter otherwise."""
        if self.judgement.history == "advice":
            yield f"advice only: of this machine there are fewer than {ADVISORY} nights that say something"
        if self.judgement.unfit:
            yield (
                f"this machine is not fit for it: {self.judgement.silent} of the last "
                f"{min(LOOKED_AT, len(self.nights))} nights said nothing"
            )
        yield from self.warnings

    def files(self) -> dict[str, bytes]:
        """Return all exports but the trend's page, by name."""
        return {
            "nightly.md": self._markdown().encode(),
            "junit.xml": self._junit(),
            "bigger.json": self._numbers(bigger=True),
            "smaller.json": self._numbers(bigger=False),
        }

    def _markdown(self) -> str:
        tonight = self.tonight
        numbers, _ = rows(self.nights, self.findings)
        scenarios = [
            (name, _verdict(one), str(one.attempts), one.recording or "–")
            for name, one in tonight.scenarios.items()
        ]
        parts = [f"# {LOOKS[self.judgement.gate].mark} {self.judgement.sentence}"]
        if numbers:
            parts += [_table(HEADINGS, [row.texts for row in numbers], "lrrrl"), EXPLANATION]
        told = map(_bullet, self.reasons()), map(_found, self.findings), map(_bullet, self.notes())
        if items := list(chain(*told)):
            parts.append("\n".join(items))
        parts += [
            f"Night `{tonight.run_id}` of machine `{tonight.machine}`, commit `{tonight.commit[:12]}`.",
            _table(("scenario", "verdict", "attempts", "recording"), scenarios, "llrl"),
        ]
        if any(finding.open for finding in self.findings):
            parts.append(_acknowledge(tonight, self.findings))
        return "\n\n".join(parts) + "\n"

    def _junit(self) -> bytes:
        suite = Xml.Element("testsuite", name="nightly", timestamp=self.tonight.started_at[:19])
        for name, outcome in self.outcomes.items():
            case = Xml.SubElement(suite, "testcase", classname="nightly.guarantees", name=_xml(name))
            reasons = "\n".join(_reasons(outcome))
            one = self.tonight.scenarios[name]
            if one.verdict == "failed":
                Xml.SubElement(case, "error", message="not brought up").text = _xml(reasons)
            elif one.blocks:
                message = "violated" if one.verdict == "violated" else "not as configured"
                Xml.SubElement(case, "failure", message=message).text = _xml(reasons)
            elif one.verdict == "invalid":
                Xml.SubElement(case, "skipped", message=_xml(reasons) or "invalid")
        case = Xml.SubElement(suite, "testcase", classname="nightly.history", name="as good as before")
        worse = [finding for finding in self.findings if finding.kind == "worse"]
        found = _xml("\n".join(text for one in worse for text in (line(one), *details(one))))
        message = line(worse[0]) if worse else ""
        if len(worse) > 1:
            message += f"; and {len(worse) - 1} more"
        if self.judgement.history == "worse":
            Xml.SubElement(case, "failure", message=_xml(message)).text = found
        elif worse:  # acknowledged, or advice
            Xml.SubElement(case, "skipped", message=_xml(message)).text = found
        for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            suite.set(attribute, str(sum(each.find(kind) is not None for each in suite)))
        suite.set("tests", str(len(suite)))
        root = Xml.Element("testsuites")
        root.append(suite)
        Xml.indent(root)
        written: bytes = Xml.tostring(root, encoding="utf-8", xml_declaration=True)
        return written + b"\n"

    def _numbers(self, *, bigger: bool) -> bytes:
        """Return what github-action-benchmark takes as customBiggerIsBetter, or customSmallerIsBetter."""
        numbers: list[dict[str, Any]] = [
            {"name": metric, "unit": metrics.kind_of(metric).unit, "value": value}
            for metric, value in metrics.values(self.tonight).items()
            if metrics.kind_of(metric).bigger_is_better is bigger
        ]
        return (json.dumps(numbers, indent=1, ensure_ascii=False) + "\n").encode()


def line(finding: Finding) -> str:
    """Say in a short line what changed, by how much, and since when."""
    count = len(finding.shifts)
    series = f" ({count} series)" if count > 1 else ""
    said = "acknowledged: " if finding.acknowledged else ""
    what = f"{WORDS[finding.kind]}{_by(finding)}"
    return f"{said}{what} since {when(finding)}: {finding.pattern}{series}"


def details(finding: Finding) -> Iterator[str]:
    """Yield the rest: how much each series changed, what else changed then, and who takes it for right."""
    for shift in finding.shifts:
        before, now = metrics.shown(shift.metric, shift.now.before, shift.now.after)
        yield f"{shift.metric}: {before} to {now}, {size(shift)}"
    yield from circumstances(finding)


def circumstances(finding: Finding) -> Iterator[str]:
    """Yield what else changed in a finding's first night, and who takes it for right."""
    also = ", ".join(f"{name} {before} to {after}" for name, (before, after) in finding.besides.items())
    also = _COMMIT.sub(r"\1", also) or "nothing that is recorded"
    yield f"changed in that night too: {also}"
    if finding.acknowledged:
        entry = finding.acknowledged
        yield f"acknowledged by {entry.who} until {entry.until}: {entry.reason}"


def _by(finding: Finding) -> str:
    if finding.kind == "back":
        return ""
    shares = [shift.now.share(shift.now.difference) for shift in finding.shifts]
    known = [share for share in shares if share is not None]
    if not known:
        return ""
    signed = finding.kind == "machine"
    sizes = [percentage(share if signed else abs(share), signed) for share in sorted(known, key=abs)]
    return f" by {'up to ' if len({*sizes}) > 1 or len(known) < len(shares) else ''}{sizes[-1]}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> str:
    """Return a table in Markdown; ``align`` has a letter for each column, l or r."""
    rule = "|".join({"l": "---", "r": "--:"}[each] for each in align)
    lines = (f"| {' | '.join(map(_cell, row))} |" for row in (headings, *rows))
    first, *rest = lines
    return "\n".join([first, f"|{rule}|", *rest])


def _bullet(text: str) -> str:
    return f"* {_cell(text)}"


def _found(finding: Finding) -> str:
    """Return a finding as an item of a list; how much each series changed stands in the table."""
    return "\n".join([_bullet(line(finding)), *(f"  {_bullet(text)}" for text in circumstances(finding))])


def _verdict(one: ScenarioNight) -> str:
    kinds = f" ({', '.join(one.causes)})" if one.causes else ""
    return ("not brought up" if one.verdict == "failed" else one.verdict) + kinds


def _reasons(outcome: Outcome) -> Sequence[str]:
    if outcome.failure is not None:
        return outcome.failure.splitlines()
    return outcome.attempts[-1].summary.reasons if outcome.attempts else []


def _acknowledge(tonight: Night, findings: Sequence[Finding]) -> str:
    """Return what to write if a change is as it should be."""
    entries = "".join(
        f"  - machine: {tonight.machine}\n"
        f"    metric: {json.dumps(finding.pattern, ensure_ascii=False)}\n"
        f"    first_night: {finding.night.run_id}\n"
        "    reason: \n    who: \n    until: \n"
        for finding in findings
        if finding.open
    )
    return (
        f"If that is as it should be, say so in `nightly.yaml`:\n\n```yaml\nacknowledgements:\n{entries}```"
    )


def _cell(text: str) -> str:
    """Return text for Markdown: on one line, and with nothing in it that Markdown takes for its own."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _xml(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
