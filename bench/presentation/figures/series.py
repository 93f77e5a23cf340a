"""What a figure draws of each transfer: its throughput against time, repetitions put together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """One transfer: median, lowest and highest of the repetitions, bits per second, against time."""

    seconds: Floats
    median: Floats
    low: Floats
    high: Floats
    peak: float  # the highest sample after the warm-up

    @property
    def level(self) -> float:
        """A rate beside which a label of the whole line belongs."""
        return float(sorted(self.median)[len(self.median) // 2])


def series(samples: pd.DataFrame, scenario: Scenario) -> dict[str, Series]:
    """Return what the receivers saw, by flow; the n-th samples of all repetitions belong together."""
    import numpy as np

    interval_s, warm_up = scenario.measurement.interval, scenario.measurement.warm_up
    starts = {traffic.label: traffic.start for traffic in scenario.traffic}
    result: dict[str, Series] = {}
    for flow, table in samples[samples["source"] == "receiver"].groupby("flow", sort=False):
        begun = table.groupby("repetition")["start_s"].transform("min")
        number = ((table["start_s"] - begun) / interval_s).round()
        middle = (table["start_s"] + table["end_s"]) / 2
        together = table.assign(middle=middle).groupby(number)
        rates = together["bits_per_second"]
        judged = table[table["start_s"] >= starts[str(flow)] + warm_up]
        result[str(flow)] = Series(
            seconds=np.asarray(together["middle"].median(), dtype=np.float64),
            median=np.asarray(rates.median(), dtype=np.float64),
            low=np.asarray(rates.min(), dtype=np.float64),
            high=np.asarray(rates.max(), dtype=np.float64),
            peak=float((table if judged.empty else judged)["bits_per_second"].max()),
        )
    return result
