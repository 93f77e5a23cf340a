"""What a figure of a recording is drawn of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bench.analysis.summary import Summary
from bench.recording.records import RunRecord
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Subject:
    """One recording, analysed."""

    scenario: Scenario
    record: RunRecord
    summary: Summary
    samples: pd.DataFrame  # as bench.analysis.samples has them; empty without traffic
    exchanges: pd.DataFrame  # as bench.analysis.exchanges has them; empty without requests
    scale: float = 1.0  # what every rate was multiplied by, as far as that was recorded
