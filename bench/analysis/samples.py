"""What each transfer got, when: its generator's records as one tidy table on the run's clock.

The receiver's records are what is judged: a sender counts what it wrote to its socket, which is not what
arrived. The sender's are kept, as ``source`` = ``sender``, to check the receiver's against.
"""

from __future__ import annotations

import io
import math
import shlex
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from bench.generators import RawDataError, Record, generator_of, is_guaranteed
from bench.observations.causes import Cause, lost
from bench.recording.atomic import StoredError, remedy
from bench.recording.directory import Recording
from bench.recording.records import RunRecord, Transfer
from testbed.scenario import Scenario, Traffic, texts

if TYPE_CHECKING:
    import pandas as pd

    Tables = dict[Hashable, pd.DataFrame]  # samples by flow, repetition and source
    Received = list[tuple[Traffic, pd.DataFrame]]  # of one repetition

Role = Literal["guaranteed", "unguaranteed", "disturbance"]

COLUMNS = {
    "repetition": "int64",  # as its directory raw/repetition-N counts: from 0
    "flow": "str",  # the label of a flow or disturbance
    "role": "str",  # guaranteed, unguaranteed or disturbance
    "start_s": "float64",  # seconds since the repetition's beginning
    "end_s": "float64",
    "bits_per_second": "float64",  # payload
    "source": "str",  # receiver or sender
    "window_bps": "float64",  # a sender's congestion window over its round trip; NaN: not known
    "exchange_s": "float64",  # median time of the exchanges in it, seconds; NaN: none was timed
    "round_trip_s": "float64",  # a TCP sender's own, smoothed, at its end, seconds; NaN: not known
}
ADDED = ("exchange_s", "round_trip_s")  # samples of earlier versions do not have these
# What pyarrow raises for bytes that it cannot read, and pandas for values that are no column's.
UNREADABLE = (ValueError, TypeError, OSError, KeyError, IndexError, NotImplementedError)
SIDES = ("receiver", "sender")


class Readings(NamedTuple):
    """Everything raw output says about a run."""

    samples: pd.DataFrame  # columns as in COLUMNS
    totals: dict[tuple[int, str, str], int]  # payload bytes by repetition, label and source, all records
    retransmits: dict[tuple[int, str], int]  # segments that a sender sent again, by repetition and label
    faults: list[Cause]  # transfers without a measurement


def role_of(scenario: Scenario, traffic: Traffic) -> Role:
    """Return the part a flow or disturbance plays in the verdict."""
    if traffic not in scenario.flows:
        return "disturbance"
    return "guaranteed" if is_guaranteed(scenario, traffic) else "unguaranteed"


def read(recording: Recording, scenario: Scenario, record: RunRecord) -> Readings:
    """Return the samples, totals and faults of a recording; a transfer that failed is a fault, not a zero."""
    import pandas as pd

    found, faults = _Found({name: [] for name in COLUMNS}, {}, {}), list[Cause]()
    planned = {transfer.label for transfer in scenario.transfers}
    for number, repetition in enumerate(record.repetitions):
        for label in sorted(repetition.transfers.keys() - planned):
            faults.append(lost(label, f"the transfer is not in {recording.scenario_file.name}", number))
        for traffic in scenario.traffic:
            transfer = repetition.transfers.get(traffic.label)
            if transfer is None:
                faults.append(lost(traffic.label, "the transfer was not made", number))
                continue
            if transfer.error:
                faults.append(lost(traffic.label, transfer.error, number))
                continue
            for source in SIDES:
                try:
                    _read_side(found, recording, scenario, traffic, number, transfer, source)
                except RawDataError as error:
                    faults.append(lost(traffic.label, str(error), number))
    return Readings(pd.DataFrame(found.columns).astype(COLUMNS), found.totals, found.retransmits, faults)


class _Found(NamedTuple):
    """What was read so far, as in ``Readings``."""

    columns: dict[str, list[object]]
    totals: dict[tuple[int, str, str], int]
    retransmits: dict[tuple[int, str], int]


def _read_side(
    found: _Found,
    recording: Recording,
    scenario: Scenario,
    traffic: Traffic,
    number: int,
    transfer: Transfer,
    source: str,
) -> None:
    """Read what one side of a transfer left in a repetition. Raises RawDataError with the file's name."""
    generator, role = generator_of(scenario, traffic), role_of(scenario, traffic)
    file = recording.raw_file(number, transfer.slug, source, generator.suffix)
    try:
        records = generator.read_records(file)
    except RawDataError as error:
        raise RawDataError(f"{file.relative_to(recording.directory)}: {error}") from None
    found.totals[number, traffic.label, source] = sum(entry.bytes for entry in records)
    again = [entry.retransmits for entry in records if entry.retransmits is not None]
    if again:
        found.retransmits[number, traffic.label] = sum(again)
    for entry in whole(records, scenario.measurement.interval, traffic.duration):
        values = (
            number,
            traffic.label,
            role,
            round(transfer.started_s + entry.start_s, 6),
            round(transfer.started_s + entry.end_s, 6),
            entry.bits_per_second,
            source,
            entry.window_bps,
            entry.exchange_s,
            entry.round_trip_s,
        )
        for column, value in zip(found.columns.values(), values, strict=True):
            column.append(value)


def parted(samples: pd.DataFrame) -> Tables:
    """Return the samples of each transfer in each repetition, by their source, where there are any.

    All at once: pandas takes as long for one as for a hundred.
    """
    grouped = samples.groupby(["flow", "repetition", "source"], sort=False)
    return dict(iter(grouped[["start_s", "end_s", "bits_per_second", "window_bps"]]))


def received(tables: Tables, traffic: Iterable[Traffic], repetition: int) -> Received:
    """Return the receivers' samples of some transfers in a repetition, of those that have any."""
    found = ((one, tables.get((one.label, repetition, "receiver"))) for one in traffic)
    return [(one, table) for one, table in found if table is not None]


def table(file: Path) -> pd.DataFrame:
    """Return the samples that an analysis wrote. Raises StoredError, for those of another version too."""
    with remedy(f"make them again: ./invokew figures {shlex.quote(str(file.parent))}"):
        return _table(file)


def _table(file: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        found = pd.read_parquet(io.BytesIO(texts.read_bytes(file)))
        found = found.assign(**{name: math.nan for name in ADDED if name not in found})
        if missing := [name for name in COLUMNS if name not in found]:
            raise StoredError(file, f"not a table of samples: without {', '.join(missing)}")
        return found[list(COLUMNS)].astype(COLUMNS)
    except texts.TextError as error:
        raise StoredError(file, str(error)) from None
    except UNREADABLE as error:
        raise StoredError(file, f"not a table of samples: {error}") from None


def whole(records: list[Record], interval_s: float, duration_s: float) -> list[Record]:
    """Return the records that are samples.

    Left out are records shorter than half an interval (the rest that a tool reports when it ends) and those
    whose middle lies after the transfer's duration (what queues still held when the sender stopped).
    """
    return [
        record
        for record in records
        if record.end_s - record.start_s >= interval_s / 2
        and (record.start_s + record.end_s) / 2 <= duration_s
    ]
