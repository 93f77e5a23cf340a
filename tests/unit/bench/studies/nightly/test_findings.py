"""A change is told once, with all that changed in its night; and it is known whose it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path

import pytest

from bench.studies.nightly import nightly
from bench.studies.nightly.acknowledgements import Acknowledgement, Acknowledgements
from bench.studies.nightly.findings import Finding
from bench.studies.nightly.night import Night, ScenarioNight
from bench.studies.nightly.report import Report, sentence
from tests.unit.bench.studies.nightly.builders import MACHINE, night, scenario, silent

FILE = Path("nightly.yaml")
Known = Callable[[Sequence[Night]], Acknowledgements]


def followed(nights: Sequence[Night], known: Known | None = None) -> list[Report]:
    """Go through nights one after another."""
    history: list[Night] = []
    reports = []
    for one in nights:
        acknowledged = known([*history, one]) if known else Acknowledgements(FILE)
        report = nightly.conclude([*history, one], {}, acknowledged)
        history.append(report.tonight)
        reports.append(report)
    return reports


def told(reports: Sequence[Report]) -> dict[int, Sequence[Finding]]:
    return {number: report.findings for number, report in enumerate(reports) if report.findings}


def lowered(count: int, since: int, factor: float = 0.95, carried: float = 1.0) -> list[Night]:
    return [
        night(number, scenario(number, carried, C=factor) if number >= since else None)
        for number in range(count)
    ]


def test_a_fall_of_one_flow_is_told_once_on_the_fifth_night() -> None:
    found = told(followed(lowered(40, 13)))
    assert list(found) == [17]
    (finding,) = found[17]
    assert finding.kind == "worse"
    assert finding.night.run_id == night(13).run_id
    assert [shift.metric for shift in finding.shifts] == [
        "small/A -> C/quiet/mean",
        "small/A -> C/disturbed/mean",
    ]
    for shift in finding.shifts:
        share = shift.change.share(shift.change.difference)
        assert share is not None
        assert abs(share + 0.05) < 0.015
    line = sentence(finding)
    assert "\n" not in line
    assert line.startswith(f"worse from night {night(13).run_id} on: small/A -> C/quiet/mean -")
    assert line.endswith("; nothing else changed then")


def test_a_rise_is_told_as_often_and_fails_nothing() -> None:
    reports = followed(lowered(40, 25, factor=1.05))
    (finding,) = told(reports)[29]
    assert list(told(reports)) == [29]
    assert finding.kind == "better"
    assert {report.judgement.gate for report in reports} == {"passed"}


def test_a_fall_fails_once_when_there_are_twenty_nights() -> None:
    early, late = followed(lowered(30, 12)), followed(lowered(30, 20))
    assert {report.judgement.gate for report in early} == {"passed"}
    assert any(line.startswith("advice only") for line in early[16].notes())
    assert [number for number, report in enumerate(late) if report.judgement.gate == "worse"] == [24]


def test_if_the_unshaped_paths_changed_too_it_is_the_machines() -> None:
    reports = followed(lowered(30, 20, carried=0.95))
    ((finding,),) = told(reports).values()
    assert finding.kind == "machine"
    assert "small/calibration" in [shift.metric for shift in finding.shifts]
    assert "so it is the machine's" in sentence(finding)
    assert {report.judgement.gate for report in reports} == {"passed"}


def test_a_faster_machine_does_not_excuse_a_fall() -> None:
    ((finding,),) = told(followed(lowered(25, 20, carried=1.02))).values()
    assert finding.kind == "worse"


def test_what_else_changed_that_night_is_named() -> None:
    nights = [
        one if number < 13 else one.model_copy(update={"beside": {**one.beside, "kernel": "6.18.2-1"}})
        for number, one in enumerate(lowered(18, 13))
    ]
    nights[12] = silent(12).model_copy(update={"beside": nights[13].beside})
    ((finding,),) = told(followed([*nights, *lowered(20, 13)[18:]])).values()
    # The night before said nothing, so it is compared with the one before that.
    assert finding.besides == {"kernel": ("6.18.1-1", "6.18.2-1")}
    assert sentence(finding).endswith("; kernel from 6.18.1-1 to 6.18.2-1 changed then")


def test_nights_that_say_nothing_do_not_count() -> None:
    nights = lowered(30, 20)
    nights[21] = silent(21)
    assert list(told(followed(nights))) == [25]


def test_another_setting_begins_anew() -> None:
    other = [
        night(number, scenario(number).model_copy(update={"setting": "node"})) for number in range(20, 30)
    ]
    lower = [night(one, scenario(one, C=0.5).model_copy(update={"setting": "node"})) for one in range(20, 30)]
    assert told(followed([*lowered(20, 99), *other])) == {}
    assert told(followed([*lowered(20, 99), *lower])) == {}


def acknowledging(since: int, until: date = date(2030, 1, 1), metric: str = "small/A -> C/*") -> Known:
    entry = Acknowledgement(
        machine=MACHINE,
        metric=metric,
        first_night=night(since).run_id,
        reason="slower, but right",
        who="somebody",
        until=until.isoformat(),
    )
    return lambda nights: Acknowledgements(FILE, [entry] if len(nights) > since else [])


def test_an_acknowledged_change_is_silent_and_its_end_is_a_new_one() -> None:
    assert told(followed(lowered(40, 13), acknowledging(13))) == {}
    back = [*lowered(30, 13), *(night(number) for number in range(30, 40))]
    (found,) = told(followed(back, acknowledging(13)))
    assert found == 34
    (finding,) = told(followed(back, acknowledging(13)))[34]
    assert finding.kind == "better"
    assert finding.night.run_id == night(30).run_id


def test_an_expired_acknowledgement_holds_no_more_and_is_a_warning() -> None:
    until = date.fromisoformat(night(25).started_at[:10])
    reports = followed(lowered(30, 13), acknowledging(13, until))
    assert list(told(reports)) == [26]
    assert reports[25].warnings == []
    assert reports[26].warnings == [
        f"nightly.yaml: acknowledgements[0]: it expired on {until}, and holds no more"
    ]


def test_an_acknowledgement_that_matches_nothing_is_a_warning() -> None:
    report = followed(lowered(3, 99), acknowledging(1, metric="small/C/*"))[-1]
    assert report.warnings == ["nightly.yaml: acknowledgements[0].metric: 'small/C/*' matches nothing"]


@pytest.mark.parametrize(("count", "unfit"), [(4, False), (5, True)])
def test_a_machine_that_says_nothing_too_often_is_not_fit(count: int, unfit: bool) -> None:
    nights = [silent(number) if 20 <= number < 20 + count else night(number) for number in range(30)]
    report = nightly.conclude(nights, {}, Acknowledgements(FILE))
    assert report.judgement.unfit is unfit
    assert any("not fit" in line for line in report.notes()) is unfit


@pytest.mark.parametrize(
    ("verdict", "causes", "gate"),
    [
        ("held", [], "passed"),
        ("violated", ["promise"], "broken"),
        ("invalid", ["state"], "broken"),
        ("invalid", ["machine", "promise"], "broken"),
        ("invalid", ["machine"], "no statement"),
        ("invalid", ["measurement"], "no statement"),
        ("failed", [], "not up"),
    ],
)
def test_the_first_gate_goes_by_causes(verdict: str, causes: list[str], gate: str) -> None:
    one = ScenarioNight.model_validate({"verdict": verdict, "causes": causes, "attempts": 1})
    assert nightly.conclude([night(0, one)], {}, Acknowledgements(FILE)).judgement.gate == gate
