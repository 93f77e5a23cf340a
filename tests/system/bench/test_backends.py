"""The paper's scenarios with two backends at once, every pair that this machine runs: guarantees are held.

They are judged by how much gets through, so they run alone.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest

from bench import pipeline
from bench.analysis.summary import Summary
from bench.measurement import experiment
from bench.recording import requests
from bench.recording.records import Request
from testbed import doctor
from testbed.scenario.addressing import Addressing
from testbed.scenario.networks import KINDS
from tests import cases
from tests.system.bench.test_experiment import Watcher

RUNS = cases.count("CONCORDE_BACKEND_RUNS", 1, 2)
SECONDS = 4  # of each flow at first


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("scenario", ["contmec", "congested"])
@pytest.mark.parametrize(("one", "other"), [*combinations(KINDS, 2)])
def test_guarantees_are_held_on_every_pair_of_backends(
    scenario: str, one: str, other: str, tmp_path: Path
) -> None:
    """Of five runs one may be invalid: the machine is not always its own."""
    overrides = (f"clusters.a.backend={one}", f"clusters.b.backend={other}")
    request = Request(scenario=scenario, overrides=overrides, scale=0.1, reports=str(tmp_path))
    if faults := list(doctor.refused(Addressing(requests.read(request)))):
        pytest.skip(faults[0].message)

    def judge(factor: int) -> None:
        longer = request.model_copy(update={"duration": SECONDS * factor})
        summaries = [_run(longer) for _ in range(RUNS)]
        verdicts = Counter(summary.verdict for summary in summaries)
        reasons = [reason for summary in summaries for reason in summary.reasons]
        assert not verdicts["violated"], reasons
        if verdicts["invalid"] > RUNS // 5:
            pytest.skip(f"the machine was the limit: {reasons}")

    cases.with_more_samples(judge)


def _run(request: Request) -> Summary:
    return pipeline.analyse(experiment.run(request, requests.read(request), Watcher("test")))
