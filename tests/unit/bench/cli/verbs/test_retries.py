"""What follows a run that is invalid because of the machine; runs are made by nobody here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from bench.analysis.summary import Summary, build
from bench.analysis.verdict import Verdict
from bench.cli.verbs import retries
from bench.cli.verbs.retries import Allowance, Answer, Judged
from bench.observations.causes import Cause
from bench.presentation.commands import Following
from bench.recording.directory import Recording
from bench.recording.records import Calibration, Foreseen, Request
from tests.unit.bench.builders import record, scenario

ALL = (1.0, 0.5, 0.2, 0.1)
CAN: dict[float, bool] = dict.fromkeys(ALL, True)
SLOW = "invalid machine"
RUN = "20260101T000000Z-small-pod"
NEXT = Following("./invokew doctor", "what this machine lacks")
ASKED = Request(scenario="contmec")
Capture = pytest.CaptureFixture[str]


class Runs:
    """Makes runs that end as they are told to."""

    def __init__(self, outcomes: Sequence[str | BaseException], foreseen: dict[float, bool] = CAN) -> None:
        self._outcomes = iter(outcomes)
        self._foreseen = foreseen
        self.made: list[tuple[float, str | None]] = []

    def __call__(self, request: Request, retry_of: str | None) -> Judged:
        self.made.append((request.scale, retry_of))
        outcome = next(self._outcomes)
        if isinstance(outcome, BaseException):
            raise outcome
        return Judged(Recording(Path("reports/run")), summary(outcome, self._foreseen), NEXT)


def summary(outcome: str, foreseen: dict[float, bool]) -> Summary:
    verdict, _, kind = outcome.partition(" ")
    of = scenario()
    found = [Foreseen(scale=scale, margin=1.0, can_tell=can) for scale, can in foreseen.items()]
    calibrated = Calibration(seconds=1.0, bits_per_second={"A -> C": 5e9}, foreseen=found)
    made = record(of, calibration=calibrated, calibrations=[calibrated])
    judged = Verdict(cast(Any, verdict), [Cause(kind=cast(Any, kind), text="why")] if kind else [], [])
    return build(of, made, [], judged)


def answered(outcomes: Sequence[Any], **more: Any) -> tuple[Answer, list[float]]:
    foreseen, asked = more.pop("foreseen", CAN), more.pop("asked", ASKED)
    runs = Runs(outcomes, foreseen)
    found = retries.answer(asked, runs, Allowance(**more))
    assert [of for _, of in runs.made] == [None, *[RUN] * (len(runs.made) - 1)]
    assert [one.request.scale for one in found.attempts] == [scale for scale, _ in runs.made][
        : len(found.attempts)
    ]
    return found, [scale for scale, _ in runs.made]


@pytest.mark.parametrize(
    ("outcomes", "made", "verdict"),
    [
        (["held"], [1], "held"),
        (["violated promise"], [1], "violated"),
        (["invalid measurement"], [1], "invalid"),
        (["invalid state"], [1], "invalid"),
        ([SLOW, "held"], [1, 1], "held"),  # it is what was asked for
        ([SLOW, SLOW, "violated promise"], [1, 1, 0.5], "invalid"),
        ([SLOW, SLOW, SLOW, SLOW, "held"], [1, 1, 0.5, 0.2, 0.1], "invalid"),
        ([SLOW] * 5, [1, 1, 0.5, 0.2, 0.1], "invalid"),
        ([SLOW, "invalid measurement"], [1, 1], "invalid"),
    ],
)
def test_it_is_tried_until_there_is_a_statement(outcomes: list[str], made: list[float], verdict: str) -> None:
    found, scales = answered(outcomes)
    assert scales == made
    assert found.asked.judged.summary.verdict == verdict
    assert found.ended == ""


@pytest.mark.parametrize(
    ("foreseen", "made"),
    [
        ({1.0: False, 0.5: True, 0.2: True, 0.1: True}, [1, 0.5]),
        ({1.0: False, 0.5: False, 0.2: True, 0.1: True}, [1, 0.2]),
        ({1.0: False, 0.5: False, 0.2: False, 0.1: False}, [1]),
    ],
)
def test_what_the_calibration_excludes_is_left_out(foreseen: dict[float, bool], made: list[float]) -> None:
    found, scales = answered([SLOW, "held"], foreseen=foreseen)
    assert scales == made
    assert found.silent == (made == [1])


def test_scales_are_of_the_scenario_s_own_rates() -> None:
    half = ASKED.model_copy(update={"scale": 0.5})
    assert answered([SLOW] * 4, asked=half)[1] == [0.5, 0.5, 0.2, 0.1]
    # Foreseen at a fifth of half of every rate it cannot tell, which does not exclude a fifth of every rate.
    slow = {1.0: False, 0.5: True, 0.2: False, 0.1: False}
    assert answered([SLOW, SLOW], asked=half, foreseen=slow)[1] == [0.5]
    tenth = ASKED.model_copy(update={"scale": 0.1})
    assert answered([SLOW, SLOW], asked=tenth)[1] == [0.1, 0.1]


def test_nothing_is_tried_again_that_is_not_allowed(capsys: Capture) -> None:
    assert answered([SLOW], most=0)[1] == [1]
    assert answered([SLOW] * 3, most=2)[1] == [1, 1, 0.5]
    assert capsys.readouterr().out.splitlines()[-1] == "small: no statement (--retry 2)"


def test_three_minutes_are_for_all_scenarios_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def lasting(seconds: float) -> Callable[[Request, str | None], Judged]:
        made = Runs([SLOW] * 5)

        def run(request: Request, retry_of: str | None) -> Judged:
            now[0] += seconds
            return made(request, retry_of)

        return run

    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    allowance = Allowance()
    first = retries.answer(ASKED, lasting(50), allowance)
    assert len(first.attempts) == 4  # what is asked for, and 150 s more
    assert first.ended == "a further run takes 50 s, and 30 s of 180 s for them are left"
    second = retries.answer(ASKED, lasting(31), allowance)
    assert len(second.attempts) == 1
    third = retries.answer(ASKED, lasting(20), allowance)
    assert len(third.attempts) == 2


def test_a_further_run_that_fails_leaves_what_was_asked_for_its_verdict(capsys: Capture) -> None:
    found, _ = answered([SLOW, OSError(28, "No space left on device")])
    assert found.asked.judged.summary.verdict == "invalid"
    assert "No space left on device" in capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt):
        answered([SLOW, KeyboardInterrupt()])
    with pytest.raises(BrokenPipeError):
        answered([SLOW, BrokenPipeError()])
    with pytest.raises(RuntimeError):
        answered([RuntimeError("the first")])


def test_what_came_of_it_is_said(capsys: Capture) -> None:
    answered([SLOW, SLOW, "held"])
    assert capsys.readouterr().out.splitlines() == [
        "small: invalid, and it may have been the machine: once more",
        "small: invalid, and it may have been the machine: at half of every rate",
        "small: invalid as asked for, at half of every rate held: reports/run",
    ]
    answered([SLOW], foreseen=dict.fromkeys(ALL, False))
    assert capsys.readouterr().out == (
        "small: this machine cannot tell at any of the scales 1, 0.5, 0.2, 0.1\n"
    )
    answered([SLOW, "held"])
    assert capsys.readouterr().out.splitlines()[-1] == "small: held, once more"
