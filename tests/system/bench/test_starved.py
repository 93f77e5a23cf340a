"""Runs on a machine that others keep busy: it disturbs whatever runs beside it, so it runs alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import pipeline
from bench.measurement import experiment
from bench.recording import requests
from bench.recording.records import Request
from tests.system.bench import hog, test_zones
from tests.system.bench.test_experiment import SHORT, Watcher, kinds


@pytest.mark.alone
@hog.needs_root
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("turn", range(3))
def test_a_hog_on_every_processor_is_the_machine_s_fault(turn: int, tmp_path: Path) -> None:
    request = Request(scenario="kubernetes", overrides=tuple(SHORT[:-1]), reports=str(tmp_path))
    with hog.on_all():
        recording = experiment.run(request, requests.read(request), Watcher("test"))
    summary = pipeline.analyse(recording)
    assert summary.verdict == "invalid", summary.reasons
    assert kinds(summary) == {"machine"}, summary.reasons


@pytest.mark.alone
@hog.needs_root
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("turn", range(3))
def test_a_relay_without_a_processor_makes_the_run_invalid_and_not_slow(turn: int, tmp_path: Path) -> None:
    asked = Request(
        scenario=test_zones.STATIONS, overrides=test_zones.SHORT, scale=0.2, reports=str(tmp_path)
    )
    with hog.on_all():
        recording = experiment.run(asked, requests.read(asked), Watcher("test"))
    summary = pipeline.analyse(recording)
    if any(trunk.means != "relay" for one in summary.machine for trunk in one.delayed or []):
        pytest.skip("netem makes the delay here: there is no relay")
    assert summary.verdict == "invalid", summary.reasons
    late = [cause for cause in summary.causes if "zone north was late" in cause.text]
    assert {cause.kind for cause in late} == {"machine"}, summary.reasons
