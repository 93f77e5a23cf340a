"""Runs on a machine that others keep busy: it disturbs whatever runs beside it, so it runs alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import pipeline
from bench.measurement import experiment
from bench.recording import requests
from bench.recording.records import Request
from tests.system.bench import hog
from tests.system.bench.test_experiment import SHORT, Watcher, kinds


@hog.needs_root
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("turn", range(int(os.environ.get("CONCORDE_STARVED_RUNS", "1"))))
def test_a_hog_on_every_processor_is_the_machine_s_fault(turn: int, tmp_path: Path) -> None:
    request = Request(scenario="kubernetes", overrides=tuple(SHORT[:-1]), reports=str(tmp_path))
    with hog.on_all():
        recording = experiment.run(request, requests.read(request), Watcher("test"))
    summary = pipeline.analyse(recording)
    assert summary.verdict == "invalid", summary.reasons
    assert kinds(summary) == {"machine"}, summary.reasons
