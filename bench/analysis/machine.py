"""What machine and kernel had to do in each repetition, so that odd results have a cause.

All of it was recorded as differences over the repetition. What was not recorded, by an earlier version or
because nothing here can read it, is null.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from bench.analysis import samples
from bench.observations import delays
from bench.observations.causes import Fine, Part
from bench.observations.delays import Trunk
from bench.recording.records import RunRecord
from testbed.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd

    from bench.analysis.samples import Tables

# An interval that is off by more than this share of what was asked for is irregular.
IRREGULAR = 0.1


class Intervals(Part):
    """How regular a receiver's reporting intervals are."""

    share: Fine  # of those that are off by more than a tenth
    longest_s: Fine


class Machine(Part):
    """One repetition."""

    repetition: int
    softirq: dict[str, list[Fine]] | None  # by machine, of each processor: share of its time
    pressure: Fine | None  # share of time in which something waited for a processor, where most did
    dropped: dict[str, int] | None  # packets, by queue on a transfer's way
    default_class_bytes: dict[str, int] | None  # by queue that has a default class
    retransmits: dict[str, int]  # segments, by flow whose generator counts them
    irregular: dict[str, Intervals]  # by flow
    # By trunks that take time; what else was observed, by observation. Not in the file if there is nothing.
    delayed: list[Trunk] | None = Field(None, exclude_if=lambda trunks: trunks is None)
    observed: dict[str, dict[str, Any]] = Field({}, exclude_if=lambda found: not found)


def observe(
    tables: Tables, retransmits: Mapping[tuple[int, str], int], scenario: Scenario, record: RunRecord
) -> list[Machine]:
    """Return what is known of each repetition. ``retransmits`` is by repetition and flow."""
    found = []
    for number, repetition in enumerate(record.repetitions):
        loads = repetition.loads
        pressures = [load.pressure for load in (loads or {}).values() if load.pressure is not None]
        found.append(
            Machine(
                repetition=number,
                softirq=None if loads is None else {name: load.softirq for name, load in loads.items()},
                pressure=max(pressures, default=None),
                dropped=repetition.dropped,
                default_class_bytes=repetition.by_default,
                retransmits={flow: count for (of, flow), count in retransmits.items() if of == number},
                irregular={
                    flow.label: _intervals(table, scenario.measurement.interval)
                    for flow, table in samples.received(tables, scenario.traffic, number)
                },
                delayed=delays.told(repetition),
                observed=repetition.observed,
            )
        )
    return found


def _intervals(received: pd.DataFrame, interval_s: float) -> Intervals:
    lengths = (received["end_s"] - received["start_s"]).to_numpy()
    off = abs(lengths - interval_s) > IRREGULAR * interval_s
    return Intervals(share=float(off.mean()), longest_s=float(lengths.max()))
