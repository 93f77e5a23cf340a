"""Runs between zones: what makes the delay is recorded, and one that fails makes the run prove nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import pipeline
from bench.analysis.summary import Summary
from bench.measurement import experiment
from bench.recording import requests
from bench.recording.directory import Recording
from bench.recording.records import Request
from tests.paths import ROOT
from tests.system.bench.test_experiment import Watcher, kinds
from tests.system.conftest import sandbox_of

STATIONS = str(ROOT / "scenarios" / "examples" / "two-stations.yaml")
SHORT = (
    *(f"flows[{index}].duration=3" for index in range(3)),
    *(f"disturbances[{index}].{field}=1" for index in range(2) for field in ("start", "duration")),
    "measurement.warm_up=0.5",
)


def run(
    reports: Path, overrides: tuple[str, ...] = (), during: Callable[[], None] | None = None
) -> tuple[Recording, Summary]:
    asked = Request(scenario=STATIONS, overrides=(*SHORT, *overrides), scale=0.2, reports=str(reports))
    recording = experiment.run(asked, requests.read(asked), Watcher("test", during))
    return recording, pipeline.analyse(recording)


def at_the_relay(*argv: str) -> Callable[[], None]:
    """Return what does something with the process id of the first relay, while the traffic flows."""

    def act() -> None:
        box = sandbox_of(os.getpid()).switch
        process = box.run(["cat", "/run/testbed/relays/trunk0/pid"], check=False).stdout.strip()
        if not process:
            pytest.skip("netem makes the delay here: there is no relay")
        box.run(["sh", "-c", argv[0], "sh", process])

    return act


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_how_late_a_delay_was_is_recorded_of_each_repetition(tmp_path: Path) -> None:
    recording, summary = run(tmp_path, ("measurement.repetitions=2",))
    assert kinds(summary) <= {"promise", "machine"}, (
        summary.reasons
    )  # what it got is the machine's affair here
    for repetition, shown in zip(recording.run_record().repetitions, summary.machine, strict=True):
        told = repetition.delayed
        assert told is not None
        assert [(one.zone, one.out) for one in told] == [
            (zone, out) for zone in ("north", "south") for out in (True, False)
        ]
        assert {one.means for one in told} <= {"relay", "netem"}
        for one in told:
            if one.means == "relay":
                assert one.frames is not None
                assert one.frames > 1000
                assert sum(one.lateness or []) == one.frames
        assert shown.delayed is not None
        assert [one.frames for one in shown.delayed] == [one.frames for one in told]
    page = recording.report_file.read_text()
    assert "Delays between zones" in page
    assert "repetition-1, into zone south" in page


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_a_relay_that_is_killed_makes_the_run_invalid(tmp_path: Path) -> None:
    _, summary = run(tmp_path, during=at_the_relay('kill -KILL "$1"'))
    assert summary.verdict == "invalid"
    assert any(cause.kind == "state" and "relay of zone north" in cause.text for cause in summary.causes)


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_a_relay_that_stood_still_makes_the_run_invalid_and_not_slow(tmp_path: Path) -> None:
    _, summary = run(tmp_path, during=at_the_relay('kill -STOP "$1"; sleep 0.4; kill -CONT "$1"'))
    assert summary.verdict == "invalid"
    assert kinds(summary) <= {"machine", "promise"}, summary.reasons
    assert any(
        cause.kind == "machine" and "the relay out of zone north stood still" in cause.text
        for cause in summary.causes
    )
