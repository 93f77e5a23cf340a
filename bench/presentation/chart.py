"""What the report's chart is made of: every sample, packed, and the library that draws them.

The library is uPlot 1.6.31, taken from the installed package ``youplot`` when a page is rendered: 50 KB, and
nothing is imported for it. What is around it is ``templates/chart.js``. With Bokeh 3.9.2 a page had four
times the bytes, and could be used ten times as late.

A page's bytes are a function of the samples and of zlib: the stream is zlib's own, whose header names neither
a time nor a system, as gzip's does.
"""

from __future__ import annotations

import base64
import functools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.analysis import excuses, phases
from bench.analysis.summary import FlowSummary, Summary
from bench.presentation.figures.style import looks
from bench.recording.records import Repetition, RunRecord
from testbed.scenario import Scenario
from testbed.scenario.units import unit_for

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

PACKAGE, SCRIPT, STYLE = "youplot", "youplot/vendor/uplot.iife.min.js", "youplot/vendor/uplot.min.css"
# A rate is kept in this many digits, and with the power of ten that they are to be multiplied by: more of
# them than anybody reads double what a page has to carry.
DIGITS, POWERS = 6, range(-6, 16)
MICROSECONDS = 1_000_000  # the samples' times are rounded to these


@functools.cache
def library() -> Mapping[str, str]:
    """Return uPlot's ``script`` and ``style``, as the installed package has them."""
    package = distribution(PACKAGE)
    return {
        name: Path(str(package.locate_file(path))).read_text(encoding="utf-8")
        for name, path in (("script", SCRIPT), ("style", STYLE))
    }


def data(samples: pd.DataFrame, scenario: Scenario, record: RunRecord, summary: Summary) -> dict[str, Any]:
    """Return what ``chart.js`` draws, as JSON can hold it; rates are bits per second, times seconds."""
    names, drawn = [flow.name for flow in summary.flows], looks(scenario)
    tables = list(samples.groupby(["repetition", "flow", "source"], sort=False))
    transfers = [
        {
            "repetition": int(str(number)),
            "flow": names.index(str(flow)),
            "source": source,
            "count": len(table),
            "start_us": _microseconds(table["start_s"])[0].item(),
        }
        for (number, flow, source), table in tables
    ]
    return {
        "flows": [_flow(flow, scenario, drawn[flow.name].colour) for flow in summary.flows],
        "panels": _panels(summary.flows),
        "repetitions": [_marks(scenario, repetition) for repetition in record.repetitions],
        "end_s": max(traffic.end for traffic in scenario.traffic),
        "interval_us": round(scenario.measurement.interval * MICROSECONDS),
        "low": scenario.thresholds.sample,
        "transfers": transfers,
        "columns": pack([table for _, table in tables], scenario.measurement.interval),
    }


def pack(tables: Sequence[pd.DataFrame], interval_s: float) -> str:
    """Return three columns of all samples, one transfer after another: compressed, in base64.

    The columns are the pause in µs since the sample before, the µs by which the sample is longer than the
    interval, both with signs as ``_unsigned`` has them, and the rate as ``_digits`` has it. Each is a column
    of uint32, and is stored as its lowest bytes, its second lowest, and so on: the upper ones hardly differ.
    """
    import numpy as np

    interval = round(interval_s * MICROSECONDS)
    pauses, lengths, rates = [], [], []
    for table in tables:
        starts, ends = _microseconds(table["start_s"]), _microseconds(table["end_s"])
        pauses.append(np.append(0, starts[1:] - ends[:-1]))
        lengths.append(ends - starts - interval)
        rates.append(_digits(table["bits_per_second"].to_numpy()))
    nothing = [np.zeros(0, dtype=np.int64)]
    columns = [
        _unsigned(np.concatenate(pauses or nothing)),
        _unsigned(np.concatenate(lengths or nothing)),
        np.concatenate(rates or nothing),
    ]
    planes = [column.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes() for column in columns]
    return base64.b64encode(zlib.compress(b"".join(planes), 9)).decode()


def _microseconds(seconds: pd.Series[float]) -> Integers:
    import numpy as np

    return np.rint(seconds.to_numpy() * MICROSECONDS).astype(np.int64)


def _unsigned(values: Integers) -> Integers:
    """Return 0, -1, 1, -2, ... as 0, 1, 2, 3, ...: small ones stay small."""
    return (values << 1) ^ (values >> 63)


def _digits(rates: NDArray[np.float64]) -> Integers:
    """Return each rate as its digits, and 20 bits above them the place of its power of ten in POWERS.

    A processor's own logarithms and powers may differ from another's in the last bit; a table's do not.
    """
    import numpy as np

    tens = np.array([float(f"1e{power}") for power in POWERS])
    places = np.searchsorted(tens[DIGITS:], rates, side="right")
    digits = np.rint(rates / tens[places]).astype(np.int64)
    packed: Integers = digits | places.astype(np.int64) << 20
    return packed


def _flow(flow: FlowSummary, scenario: Scenario, colour: str) -> dict[str, Any]:
    traffic = next(traffic for traffic in scenario.traffic if traffic.label == flow.name)
    return {
        "name": flow.name,
        "colour": colour,
        "guarantee": flow.guarantee_bps,
        "expected": flow.expected_goodput_bps,
        "start_s": traffic.start,
        "end_s": traffic.end,
        "warm_up_s": 0 if flow.role == "disturbance" else scenario.measurement.warm_up,
    }


def _panels(flows: Sequence[FlowSummary]) -> list[dict[str, Any]]:
    """Return what is promised apart from the rest, which may be many times as much."""
    parts = [
        [index for index, flow in enumerate(flows) if (flow.role == "guaranteed") == promised]
        for promised in (True, False)
    ]
    return [{"flows": part, **_unit(flows[index] for index in part)} for part in parts if part]


def _unit(flows: Iterable[FlowSummary]) -> dict[str, Any]:
    unit = unit_for(
        rate
        for flow in flows
        for rate in (flow.guarantee_bps, *(phase.mean_bps for phase in flow.phases.values()))
    )
    return {"unit": unit.name, "bps": unit.bits_per_second}


def _marks(scenario: Scenario, repetition: Repetition) -> dict[str, Any]:
    """Return what else there was to see at which time of a repetition; phases by flow."""
    stalls, saturated = excuses.moments(repetition)
    return {
        "disturbances": sorted(phases.span_of(one, repetition) for one in scenario.disturbances),
        "phases": [phases.disturbances(scenario, one, repetition) for one in scenario.traffic],
        "stalls": stalls,
        "saturated": saturated,
    }
