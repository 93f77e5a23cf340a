"""What the second gate makes of real nights: runs of ``contmec``, one after another on one machine.

``real.jsonl.xz`` is the history that ``./invokew nightly --scenario contmec --repetitions 1`` left, on a
virtual machine of 2 processors. What is planted in it below is said by the test.
"""

from __future__ import annotations

import lzma
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from bench.studies.nightly import nightly
from bench.studies.nightly.findings import Acknowledgement, Acknowledgements
from bench.studies.nightly.night import Night
from bench.studies.nightly.report import Report, line
from tests import cases
from tests.unit.bench.studies.nightly.builders import FIRST

HISTORIES = cases.some_of("CONCORDE_HISTORIES", 3, 200)
UP_TO_ALL = (1, 200)  # of which what is said here is true; some of them may be the one in a hundred
NIGHTS = 30
FLOW = "(2) A-2 -> A-3"
REAL = [
    Night.model_validate_json(line)
    for line in lzma.decompress(Path(__file__).with_name("real.jsonl.xz").read_bytes()).splitlines()
]
NOTHING = Acknowledgements(Path("nightly.yaml"))


def on(number: int, real: Night, flow: float = 1.0, carried: float = 1.0) -> Night:
    """Return a real night as if it were another; what its flow and its unshaped paths got is multiplied."""
    began = FIRST + timedelta(days=number)
    one = real.scenarios["contmec"]
    changed = one.flows[FLOW]
    phases = {
        name: phase.model_copy(update={"mean_bps": phase.mean_bps * flow})
        for name, phase in changed.phases.items()
    }
    flows = {**one.flows, FLOW: changed.model_copy(update={"phases": phases})}
    carries = (one.calibration_bps or 0.0) * carried
    return real.model_copy(
        update={
            "run_id": f"{began:%Y%m%dT%H%M%SZ}-{real.run_id}",
            "started_at": began.isoformat(),
            "scenarios": {"contmec": one.model_copy(update={"flows": flows, "calibration_bps": carries})},
        }
    )


def reports(nights: Sequence[Night], acknowledged: Acknowledgements = NOTHING) -> Mapping[int, Report]:
    """Return the nights that tell something, by number, after going through all of them."""
    found = (nightly.conclude(nights[: number + 1], {}, acknowledged) for number in range(len(nights)))
    return {number: report for number, report in enumerate(found) if report.findings}


def resampled(seed: int, factor: float = 1.0, since: int = NIGHTS) -> list[Night]:
    chance = Random(seed)
    drawn = chance.choices(REAL, k=NIGHTS)
    return [on(number, one, factor if number >= since else 1.0) for number, one in enumerate(drawn)]


def test_there_are_at_least_forty_real_runs() -> None:
    assert len({night.run_id for night in REAL}) >= 40
    assert len({night.machine for night in REAL}) == 1


def with_less(carried: float = 1.0) -> list[Night]:
    """20 nights, with 5 % off one flow from night 14 on; what is unshaped is multiplied then."""
    return [
        on(number, REAL[number], *((0.95, carried) if number >= 13 else (1.0, 1.0))) for number in range(20)
    ]


def test_five_percent_off_one_flow_from_night_14_are_found_on_night_18() -> None:
    nights = with_less()
    told = reports(nights)
    assert list(told) == [17, 18, 19]
    assert [report.judgement.gate for report in told.values()] == ["advice", "advice", "worse"]
    (finding,) = told[17].findings
    assert finding.kind == "worse"
    assert finding.night.run_id == nights[13].run_id
    for shift in finding.shifts:
        assert shift.metric.startswith(f"contmec/{FLOW}/")
        share = shift.change.share(shift.change.difference)
        assert share is not None
        assert abs(share + 0.05) < 0.015
    assert len(line(finding)) <= 120


def test_what_is_acknowledged_fails_nothing() -> None:
    nights = with_less()
    entry = Acknowledgement.model_validate(
        {
            "machine": nights[0].machine,
            "metric": f"contmec/{FLOW}/*",
            "first_night": nights[13].run_id,
            "reason": "a smaller class",
            "who": "somebody",
            "until": "2027-12-31",
        }
    )
    told = reports(nights, Acknowledgements(Path("nightly.yaml"), [entry]))
    assert [report.judgement.gate for report in told.values()] == ["acknowledged"] * 3


def test_the_same_off_what_is_unshaped_too_is_the_machine() -> None:
    told = reports(with_less(carried=0.95))
    assert list(told) == [17, 18, 19]
    assert {finding.kind for report in told.values() for finding in report.findings} == {"machine"}


@pytest.mark.long
def test_real_nights_hardly_ever_raise_an_alarm() -> None:
    def judge(factor: int) -> None:
        histories = HISTORIES(factor)
        alarms = [seed for seed in histories if reports(resampled(seed))]
        assert len(alarms) <= len(histories) // 100

    cases.with_more_samples(judge, UP_TO_ALL)


@pytest.mark.long
def test_a_rise_is_found_as_often_as_a_fall() -> None:
    def judge(factor: int) -> None:
        histories = HISTORIES(factor)
        found = {
            change: sum(_found(resampled(seed, change, since=20), kind) for seed in histories)
            for change, kind in ((0.95, "worse"), (1.05, "better"))
        }
        assert min(found.values()) >= 0.95 * len(histories)
        assert abs(found[0.95] - found[1.05]) <= 0.03 * len(histories)

    cases.with_more_samples(judge, UP_TO_ALL)


def _found(nights: Sequence[Night], kind: str) -> bool:
    return any(
        finding.kind in (kind, "machine") and finding.night.run_id == nights[20].run_id
        for finding in nightly.conclude(nights[:25], {}, NOTHING).findings
    )
