"""What a figure draws of each transfer: its throughput against time, repetitions put together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from testbed.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Flags = NDArray[np.bool_]

LOOSEST = 1.6


@dataclass(frozen=True)
class Series:
    """One transfer: median, lowest and highest of the repetitions, bits per second, against time."""

    seconds: Floats
    median: Floats
    low: Floats
    high: Floats
    peak: float  # the highest sample after the warm-up

    def scaled(self, factor: float) -> Series:
        """Return the same with every rate multiplied."""
        rates = (self.median * factor, self.low * factor, self.high * factor)
        return Series(self.seconds, *rates, self.peak * factor)

    @property
    def most(self) -> float:
        """The highest of all that is drawn."""
        return float(max(self.high, default=0.0))

    @property
    def level(self) -> float:
        """A rate beside which a label of the whole line belongs."""
        return float(sorted(self.median)[len(self.median) // 2])


def series(samples: pd.DataFrame, scenario: Scenario) -> dict[str, Series]:
    """Return what the receivers saw, by flow; the n-th samples of all repetitions belong together."""
    import numpy as np

    interval_s, warm_up = scenario.measurement.interval, scenario.measurement.warm_up
    starts = {traffic.label: traffic.start for traffic in scenario.traffic}
    received = samples[samples["source"] == "receiver"]
    # All flows at once: pandas takes as long for one as for a hundred.
    begun = received.groupby(["flow", "repetition"])["start_s"].transform("min")
    together = received.assign(
        number=((received["start_s"] - begun) / interval_s).round(),
        middle=(received["start_s"] + received["end_s"]) / 2,
    ).groupby(["flow", "number"])
    rates = together["bits_per_second"]
    drawn = {
        "seconds": together["middle"].median(),
        "median": rates.median(),
        "low": rates.min(),
        "high": rates.max(),
    }
    places = drawn["seconds"].groupby(level="flow").indices
    judged = received[received["start_s"] >= received["flow"].map(starts).astype(np.float64) + warm_up]
    peaks = {
        **received.groupby("flow")["bits_per_second"].max(),
        **judged.groupby("flow")["bits_per_second"].max(),
    }
    return {
        flow: Series(
            **{name: values.to_numpy(np.float64)[places[flow]] for name, values in drawn.items()},
            peak=float(peaks[flow]),
        )
        for flow in received["flow"].unique()
    }


def ceiling(lines: Iterable[Series], promised: Iterable[float]) -> float:
    """Return the rate that axes have to reach for all of these to be on them, bits per second.

    It is at most LOOSEST times what is judged: what begins with a saved-up burst would flatten the rest. What
    is above that is drawn at the upper edge (``cut``).
    """
    known = list(lines)
    judged = max([*promised, *(line.peak for line in known)], default=0.0)
    most = max([judged, *(line.most for line in known)])
    return min(most, LOOSEST * judged) if judged else most


def cut(values: Floats, most: float) -> tuple[Floats, Flags]:
    """Return values that are not above the upper edge, and which of them were."""
    import numpy as np

    return np.minimum(values, most), values > most
