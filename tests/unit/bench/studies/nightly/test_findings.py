"""What is worse is told until it is as before, or taken for right; and it is known whose it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

import pytest

from bench.studies.nightly import nightly
from bench.studies.nightly.findings import Acknowledgement, Acknowledgements, Finding
from bench.studies.nightly.night import Night, ScenarioNight
from bench.studies.nightly.report import Report, details, line
from tests.unit.bench.studies.nightly.builders import MACHINE, night, scenario, silent

FILE = Path("nightly.yaml")
NOBODY = Acknowledgements(FILE)


def followed(
    nights: Sequence[Night], known: Acknowledgements = NOBODY, at: Iterable[int] | None = None
) -> dict[int, Report]:
    """Return what was told in nights, or in some of them, by number: the first one is 0."""
    numbers = range(len(nights)) if at is None else at
    return {number: nightly.conclude(nights[: number + 1], {}, known) for number in numbers}


def last(nights: Sequence[Night], known: Acknowledgements = NOBODY) -> Report:
    return nightly.conclude(nights, {}, known)


def told(reports: Mapping[int, Report]) -> dict[int, Sequence[Finding]]:
    return {number: report.findings for number, report in reports.items() if report.findings}


def gates(reports: Mapping[int, Report]) -> list[str]:
    return [report.judgement.gate for report in reports.values()]


def lowered(count: int, since: int, factor: float = 0.95, carried: float = 1.0) -> list[Night]:
    return [
        night(number, scenario(number, carried, C=factor) if number >= since else None)
        for number in range(count)
    ]


def test_a_fall_of_one_flow_stands_from_its_fifth_night_on() -> None:
    reports = followed(lowered(60, 13), at=(16, 17, 18, 19, 59))
    # Below 20 nights it is advice.
    assert gates(reports) == ["passed", "advice", "advice", "worse", "worse"]
    assert [bool(list(report.notes())) for report in reports.values()] == [False, True, True, False, False]
    for number, (finding,) in told(reports).items():
        assert finding.kind == "worse"
        assert finding.night.run_id == night(13).run_id
        assert (finding.nights, finding.days) == (number - 12, number - 13)
        assert [shift.metric for shift in finding.shifts] == [
            "small/A -> C/quiet/mean",
            "small/A -> C/disturbed/mean",
        ]
        for shift in finding.shifts:
            share = shift.now.share(shift.now.difference)
            assert share is not None
            assert abs(share + 0.05) < 0.015
    (finding,) = reports[17].findings
    assert re.fullmatch(
        r"worse by( up to)? [45]\.\d % since 2026-11-14 \(5 nights, 4 days\): small/A -> C/\*/mean "
        r"\(2 series\)",
        line(finding),
    )
    assert list(details(finding))[-1] == "changed in that night too: nothing that is recorded"


def test_a_rise_is_told_for_twenty_nights_and_fails_nothing() -> None:
    reports = followed(lowered(50, 25, factor=1.05), at=(28, 29, 44, 45))
    assert list(told(reports)) == [29, 44]
    assert {finding.kind for (finding,) in told(reports).values()} == {"better"}
    assert set(gates(reports)) == {"passed"}


def test_a_fall_is_open_until_the_level_is_back() -> None:
    nights = [*lowered(32, 22), *(night(number) for number in range(32, 60))]
    reports = followed(nights, at=(25, 26, 35, 36, 51, 52))
    assert gates(reports) == ["passed", "worse", "worse", "passed", "passed", "passed"]
    assert [finding.kind for number in (36, 51) for finding in reports[number].findings] == ["back"] * 2
    assert reports[52].findings == []
    (said,) = map(line, reports[36].findings)
    assert re.fullmatch(r"back to the level before since 2026-12-03 \(5 nights, 4 days\): small/A .*", said)


def test_a_fall_that_is_half_undone_is_open_still() -> None:
    back = (night(number, scenario(number, C=0.95)) for number in range(32, 42))
    (finding,) = last([*lowered(32, 22, factor=0.90), *back]).findings
    assert (finding.kind, finding.night.run_id) == ("worse", night(22).run_id)
    assert re.match(
        r"worse by( up to)? [45]\.\d % since", line(finding)
    )  # as it is tonight, and not as it was


def test_a_second_fall_is_another_finding_and_each_ends_with_its_own_level() -> None:
    factors = [1.0] * 20 + [0.95] * 8 + [0.90] * 8 + [0.95] * 8 + [1.0] * 8
    nights = [night(number, scenario(number, C=factor)) for number, factor in enumerate(factors)]
    reports = followed(nights, at=(24, 32, 39, 40, 47, 48))
    first, second = night(20).run_id, night(28).run_id
    assert [
        [finding.night.run_id for finding in report.findings if finding.open] for report in reports.values()
    ] == [[first], [first, second], [first, second], [first], [first], []]
    shares = [shift.now.share(shift.now.difference) for each in reports[32].findings for shift in each.shifts]
    assert shares == pytest.approx([-0.10, -0.10, -0.05, -0.05], abs=0.01)


def test_a_night_that_says_nothing_leaves_a_finding_open() -> None:
    judged = last([*lowered(27, 20), *map(silent, range(27, 30))]).judgement
    assert (judged.gate, judged.tonight) == ("worse", "no statement")
    assert judged.sentence.startswith("Something is worse than it was; no statement: ")


def test_what_is_violated_is_worse_than_what_is_worse() -> None:
    nights = lowered(26, 20)
    broken = scenario(25).model_copy(update={"verdict": "violated", "causes": ["promise"]})
    judged = last([*nights[:-1], night(25, broken)]).judgement
    assert (judged.gate, judged.history) == ("broken", "worse")
    assert judged.sentence.endswith("; something is worse than it was")


def test_a_series_that_is_measured_no_more_is_followed_for_twenty_nights() -> None:
    def other(number: int) -> Night:
        return night(number).model_copy(update={"scenarios": {"other": scenario(number)}})

    reports = followed([*lowered(30, 20), *map(other, range(30, 55))], at=(48, 49))
    assert gates(reports) == ["worse", "passed"]


def test_days_are_counted_where_nights_are_missing() -> None:
    nights = [one for number, one in enumerate(lowered(40, 20)) if number not in range(22, 26)]
    (finding,) = last(nights).findings
    assert (finding.nights, finding.days) == (16, 19)


def test_series_that_changed_a_night_apart_are_one_finding() -> None:
    nights = [
        night(number, scenario(number, C=0.95 if number >= 20 else 1.0, D=0.94 if number >= 21 else 1.0))
        for number in range(27)
    ]
    (finding,) = last(nights).findings
    assert finding.night.run_id == night(20).run_id
    assert len(finding.shifts) == 4
    assert finding.pattern == "small/*/mean"


def test_an_outlier_of_some_nights_is_no_change() -> None:
    nights = lowered(40, 99)
    for number in range(25, 28):
        nights[number] = night(number, scenario(number, C=0.7))
    assert told(followed(nights, at=range(25, 40))) == {}


def test_if_the_unshaped_paths_changed_too_it_is_the_machines() -> None:
    reports = followed(lowered(30, 20, carried=0.95), at=(23, 24, 29))
    assert list(told(reports)) == [24, 29]
    (finding,) = reports[29].findings
    assert finding.kind == "machine"
    assert "small/calibration" in [shift.metric for shift in finding.shifts]
    assert re.match(r"changed with the machine by up to -5\.\d % since 2026-11-21", line(finding))
    assert set(gates(reports)) == {"passed"}


def test_a_faster_machine_does_not_excuse_a_fall() -> None:
    (finding,) = last(lowered(25, 20, carried=1.02)).findings
    assert finding.kind == "worse"


def test_what_else_changed_that_night_is_named() -> None:
    nights = [
        one if number < 13 else one.model_copy(update={"beside": {**one.beside, "kernel": "6.18.2-1"}})
        for number, one in enumerate(lowered(18, 13))
    ]
    nights[12] = silent(12).model_copy(update={"beside": nights[13].beside})
    (finding,) = last([*nights, *lowered(20, 13)[18:]]).findings
    # The night before said nothing, so it is compared with the one before that.
    assert finding.besides == {"kernel": ("6.18.1-1", "6.18.2-1")}
    *_, beside = details(finding)
    assert beside == "changed in that night too: kernel 6.18.1-1 to 6.18.2-1"


def test_nights_that_say_nothing_do_not_count() -> None:
    nights = lowered(30, 20)
    nights[21] = silent(21)
    assert list(told(followed(nights, at=(24, 25)))) == [25]


def test_another_setting_begins_anew() -> None:
    other = [
        night(number, scenario(number).model_copy(update={"setting": "node"})) for number in range(20, 30)
    ]
    lower = [night(one, scenario(one, C=0.5).model_copy(update={"setting": "node"})) for one in range(20, 30)]
    for later in (other, lower):
        assert told(followed([*lowered(20, 99), *later], at=range(20, 30))) == {}


def acknowledging(
    since: int, until: date = date(2030, 1, 1), metric: str = "small/A -> C/*"
) -> Acknowledgements:
    entry = Acknowledgement(
        machine=MACHINE,
        metric=metric,
        first_night=night(since).run_id,
        reason="slower, but right",
        who="somebody",
        until=until.isoformat(),
    )
    return Acknowledgements(FILE, [entry])


def test_an_acknowledged_change_is_told_and_fails_nothing() -> None:
    nights = [*lowered(40, 20), *(night(number) for number in range(40, 50))]
    reports = followed(nights, at=(24, 29)) | followed(nights, acknowledging(20), at=(30, 43, 44, 49))
    assert gates(reports) == ["worse", "worse", "acknowledged", "acknowledged", "passed", "passed"]
    (finding,) = reports[30].findings
    assert not finding.open
    assert line(finding).startswith("acknowledged: worse by ")
    assert list(details(finding))[-1] == "acknowledged by somebody until 2030-01-01: slower, but right"
    assert [finding.kind for finding in reports[44].findings] == ["back"]


def test_what_is_acknowledged_and_gets_worse_again_is_another_finding() -> None:
    nights = [*lowered(30, 20), *(night(number, scenario(number, C=0.90)) for number in range(30, 40))]
    reports = followed(nights, acknowledging(20), at=(33, 34))
    assert gates(reports) == ["acknowledged", "worse"]
    second, first = reports[34].findings
    assert (second.night.run_id, second.open) == (night(30).run_id, True)
    assert (first.night.run_id, first.open) == (night(20).run_id, False)


def test_one_glob_acknowledges_all_series_of_a_change_and_no_other() -> None:
    nights = [
        night(number, scenario(number, C=0.95 if number >= 20 else 1.0, D=0.95 if number >= 30 else 1.0))
        for number in range(40)
    ]
    report = last(nights, acknowledging(20, metric="small/*/mean"))
    assert [(one.night.run_id, one.open) for one in report.findings] == [
        (night(30).run_id, True),
        (night(20).run_id, False),
    ]


def test_a_change_is_acknowledged_though_its_night_is_known_better_later() -> None:
    assert last(lowered(25, 20), acknowledging(21)).judgement.gate == "acknowledged"


def test_an_expired_acknowledgement_holds_no_more_and_is_a_warning() -> None:
    until = date.fromisoformat(night(25).started_at[:10])
    reports = followed(lowered(30, 13), acknowledging(13, until), at=(25, 26))
    assert gates(reports) == ["acknowledged", "worse"]
    assert reports[25].warnings == []
    assert reports[26].warnings == [
        f"nightly.yaml: acknowledgements[0]: it expired on {until}, and holds no more"
    ]


def test_an_acknowledgement_that_matches_nothing_is_a_warning() -> None:
    (warning,) = last(lowered(3, 99), acknowledging(1, metric="small/A -> X/*")).warnings
    assert warning.startswith("nightly.yaml: acknowledgements[0].metric: 'small/A -> X/*' matches nothing")
    assert warning.endswith(" (nearest: small/A -> C/retransmissions)")


@pytest.mark.parametrize(("count", "unfit"), [(4, False), (5, True)])
def test_a_machine_that_says_nothing_too_often_is_not_fit(count: int, unfit: bool) -> None:
    nights = [silent(number) if 20 <= number < 20 + count else night(number) for number in range(30)]
    report = last(nights)
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
    assert last([night(0, one)]).judgement.gate == gate
