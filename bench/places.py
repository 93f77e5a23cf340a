"""Where could a pod's bandwidth be guaranteed? The paper's section 3.2 argues; this measures.

A study is a directory of ordinary recordings, one a case, and ``places.json``, which says what each of them
shows beside what the paper claims. Cases differ in their shaping alone, and everything is compared with the
first, which has none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict
from rich.console import Console

from bench import analysis, summary
from bench.live import Display
from bench.recording import UNFINISHED, Recording
from bench.summary import FlowSummary, Summary
from testbed.scenario import Scenario, load

INDEX = "places.json"
# A direction counts as shaped if it carries less than this share of what it carries unshaped.
SHAPED = 0.9
# A pod got "its" rate, and no more than that, within this share of it.
TOLERANCE = 0.1

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
    Case(UNSHAPED, "none", ("shaping=null",)),
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
    per_pod_towards: bool  # each pod receives its rate and no more
    shapes_egress: bool
    shapes_towards: bool
    floor: bool | None  # the promise holds while containers want the link
    idle_used: bool  # a pod alone gets more than its promise


class Row(Entry):
    """One case, measured."""

    place: str
    classes: str
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


def run(
    cases: Sequence[tuple[Case, Scenario]],
    provider: str,
    orchestrator: str,
    reports: Path,
    console: Console,
) -> Path:
    """Run every case and return the study's directory, analysed and complete.

    A case the kernel refuses is a row with the reason. Raises RuntimeError if the directory is taken.
    """
    from bench import experiment

    directory = reports / f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-places{UNFINISHED}"
    directory.mkdir(parents=True)
    rows = []
    for case, scenario in cases:
        row = Row(place=case.place, classes=case.classes)
        rows.append(row)
        try:
            recording = experiment.run(
                scenario,
                provider=provider,
                orchestrator=orchestrator,
                reports=directory,
                display=Display(console, f"{case.place}, {case.classes}"),
            )
        except RuntimeError as error:
            row.reason = str(error)
            continue
        analysis.analyse(recording)
        row.recording = recording.finish().run_id
    _write(directory, Study(rows=rows))
    analyse(directory)
    return directory.rename(directory.with_name(directory.name.removesuffix(UNFINISHED)))


def read(directory: Path) -> Study:
    """Return a study. Raises OSError or pydantic.ValidationError."""
    return Study.model_validate_json((directory / INDEX).read_text(encoding="utf-8"))


def analyse(directory: Path) -> Study:
    """Make the measured part of ``places.json`` and ``figures/places.*`` of a study's recordings."""
    from bench import places_figure

    study = read(directory)
    summaries = [
        summary.read(Recording(directory / row.recording).summary_file) if row.recording else None
        for row in study.rows
    ]
    unshaped = next((s for s, row in zip(summaries, study.rows, strict=True) if row.place == UNSHAPED), None)
    rows = [measured(row, s, unshaped) if s else row for row, s in zip(study.rows, summaries, strict=True)]
    study = Study(rows=rows)
    _write(directory, study)
    for kind, content in places_figure.render(directory, study).items():
        analysis.write(directory / "figures" / f"places.{kind}", content)
    return study


def measured(row: Row, result: Summary, unshaped: Summary | None) -> Row:
    """Return the row with what its recording shows."""
    measured_rates = rates(result)
    expected = {
        flow.name: flow.expected_goodput_bps
        for flow in result.flows
        if flow.expected_goodput_bps and flow.name != "A-1 alone"
    }
    return row.model_copy(
        update={
            "verdict": result.verdict,
            "expected_bps": expected,
            "rates_bps": measured_rates,
            "answers": _answers(result, measured_rates, expected, rates(unshaped)) if unshaped else None,
        }
    )


def rates(result: Summary) -> dict[Situation, dict[str, float]]:
    """Return each pod's mean in each situation; a pod without a measurement there is left out."""
    wanted: dict[Situation, Callable[[str], tuple[str, Literal["quiet", "disturbed"]]]] = {
        "alone": lambda pod: (f"{pod} alone", "quiet"),
        "towards": lambda pod: (f"to {pod}", "quiet"),
        "sending": lambda pod: (pod, "quiet"),
        "disturbed": lambda pod: (pod, "disturbed"),
    }
    flows = {flow.name: flow for flow in result.flows}
    return {
        situation: {
            pod: flows[name].phases[phase].mean_bps
            for pod in ("A-1", "A-2")
            for name, phase in [where(pod)]
            if name in flows and phase in flows[name].phases
        }
        for situation, where in wanted.items()
    }


def _answers(
    result: Summary,
    got: dict[Situation, dict[str, float]],
    expected: dict[str, float],
    unshaped: dict[Situation, dict[str, float]],
) -> Answers:
    def less(situation: Situation) -> bool:
        return sum(got[situation].values()) < SHAPED * sum(unshaped[situation].values())

    per_pod = _held(result, "quiet")
    return Answers(
        per_pod_sending=per_pod,
        per_pod_towards=all(
            abs(got["towards"].get(pod, 0.0) / rate - 1) <= TOLERANCE for pod, rate in expected.items()
        ),
        shapes_egress=bool(per_pod) or less("alone") or less("sending"),
        shapes_towards=less("towards"),
        floor=_held(result, "disturbed"),
        idle_used=got["alone"].get("A-1", 0.0) > (1 + TOLERANCE) * expected["A-1"],
    )


def _held(result: Summary, phase: Literal["quiet", "disturbed"]) -> bool | None:
    """Did both pods, sending at once, get what they were promised? None if the machine may be why not."""
    together = [flow for flow in result.flows if flow.name in ("A-1", "A-2")]
    if all(_met(flow, phase) for flow in together):
        return True
    return None if result.verdict == "invalid" else False


def _met(flow: FlowSummary, phase: Literal["quiet", "disturbed"]) -> bool:
    return phase in flow.phases and bool(flow.phases[phase].met)


def _write(directory: Path, study: Study) -> None:
    (directory / INDEX).write_text(study.model_dump_json(indent=1) + "\n", encoding="utf-8")
