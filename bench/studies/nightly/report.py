"""All that is to be told of a night, and the files that tell it to people and to other programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as Xml

from bench.studies.nightly import metrics
from bench.studies.nightly.findings import Finding, Shift
from bench.studies.nightly.gates import ADVISORY, LOOKED_AT, Judgement
from bench.studies.nightly.night import Night, Outcome, ScenarioNight
from testbed.scenario.units import format_bps

SENTENCES = {
    "passed": "every guarantee held",
    "broken": "a guarantee was violated, or something was not as configured",
    "not up": "a testbed could not be brought up",
    "no statement": "no statement: the machine, or the measurement, and not the guarantee was the limit",
    "worse": "every guarantee held, but something is worse than it was",
}
HEADINGS = {"worse": "worse", "better": "better", "machine": "changed, with the machine"}
# What XML 1.0 has no character for (section 2.2).
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Report:
    """One night, and what it shows beside those before."""

    nights: Sequence[Night]  # tonight last
    outcomes: Mapping[str, Outcome]  # of tonight, by scenario
    judgement: Judgement
    findings: Sequence[Finding]
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
        """Yield what the nights together show, a line each finding, and what is the matter otherwise."""
        yield from map(sentence, self.findings)
        if self.findings and self.judgement.advisory:
            yield f"advice only: of this machine there are fewer than {ADVISORY} nights that say something"
        if self.judgement.unfit:
            yield (
                f"this machine is not fit for it: {self.judgement.silent} of the last "
                f"{min(LOOKED_AT, len(self.nights))} nights said nothing"
            )
        yield from self.warnings

    def files(self) -> dict[str, bytes]:
        """Return all exports, by name."""
        from bench.studies.nightly import trend

        return {
            "nightly.md": self._markdown().encode(),
            "junit.xml": self._junit(),
            "bigger.json": self._numbers(bigger=True),
            "smaller.json": self._numbers(bigger=False),
            "trend.html": trend.render(self.nights).encode(),
        }

    def _markdown(self) -> str:
        gate, tonight = self.judgement.gate, self.tonight
        rows = [
            f"| {' | '.join(map(_cell, (name, _verdict(one), str(one.attempts), one.recording or '–')))} |"
            for name, one in tonight.scenarios.items()
        ]
        parts = [
            f"# {SENTENCES[gate][0].upper()}{SENTENCES[gate][1:]}",
            f"Night `{tonight.run_id}` of machine `{tonight.machine}`, commit `{tonight.commit[:12]}`.",
            "\n".join(["| scenario | verdict | attempts | recording |", "|---|---|---|---|", *rows]),
        ]
        told = [*self.reasons(), *self.notes()]
        if told:
            parts.append("\n".join(f"* {_cell(line)}" for line in told))
        if any(finding.kind == "worse" for finding in self.findings):
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
        if self.judgement.gate == "worse":
            found = "\n".join(sentence(finding) for finding in self.findings)
            Xml.SubElement(case, "failure", message="worse").text = _xml(found)
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


def sentence(finding: Finding) -> str:
    """Say what changed, from when on, how much, and what else changed then."""
    night = finding.night
    changed = ", ".join(_size(shift) for shift in finding.shifts)
    text = f"{HEADINGS[finding.kind]} from night {night.run_id} on: {changed}"
    also = [f"{name} from {before} to {after}" for name, (before, after) in finding.besides.items()]
    if any(shift.machine and not shift.metric.endswith(metrics.CALIBRATION) for shift in finding.shifts):
        text += "; what the same paths carry without shaping changed too, so it is the machine's"
    return f"{text}; {_joined(also) or 'nothing else'} changed then"


def _size(shift: Shift) -> str:
    change, unit = shift.change, metrics.kind_of(shift.metric).unit
    share, low, high = (change.share(each) for each in (change.difference, change.low, change.high))
    if share is None or low is None or high is None:
        size = f"{change.difference:+.4g} ({change.low:+.4g} to {change.high:+.4g}) {unit}"
    else:
        size = f"{share * 100:+.2f} % ({low * 100:+.2f} to {high * 100:+.2f} %)"
    return f"{shift.metric} {size}, to {_value(change.after, unit)}"


def _value(value: float, unit: str) -> str:
    return format_bps(value) if unit == "bit/s" else f"{value:.4g} {unit}"


def _joined(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def _verdict(one: ScenarioNight) -> str:
    kinds = f" ({', '.join(one.causes)})" if one.causes else ""
    return ("not brought up" if one.verdict == "failed" else one.verdict) + kinds


def _reasons(outcome: Outcome) -> Sequence[str]:
    if outcome.failure is not None:
        return outcome.failure.splitlines()
    return outcome.attempts[-1].summary.reasons if outcome.attempts else []


def _acknowledge(tonight: Night, findings: Sequence[Finding]) -> str:
    """Return what to write if a change is as it should be."""
    worse = [(finding, shift) for finding in findings for shift in finding.shifts if shift.kind == "worse"]
    entries = "".join(
        f"  - machine: {tonight.machine}\n"
        f"    metric: {json.dumps(shift.metric, ensure_ascii=False)}\n"
        f"    first_night: {finding.night.run_id}\n"
        "    reason: \n    who: \n    until: \n"
        for finding, shift in worse
    )
    return (
        f"If that is as it should be, say so in `nightly.yaml`:\n\n```yaml\nacknowledgements:\n{entries}```"
    )


def _cell(text: str) -> str:
    """Return text for Markdown: on one line, and with nothing in it that Markdown takes for its own."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", " ".join(text.split()))


def _xml(text: str) -> str:
    return _NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)
