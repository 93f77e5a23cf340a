"""When each request was due, sent and answered: what exchangers left, as one table on the run's clock."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import AfterValidator

from bench.analysis import phases, statistics
from bench.generators import Exchange, Exchanger, RawDataError, exchanger_of, idle_sample
from bench.observations.causes import Cause, Part, lost
from bench.recording.directory import IDLE, Moment, Recording
from bench.recording.records import Repetition, RunRecord, Transfer, receiver_slug, slugs
from testbed.scenario import Requests, Scenario

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

COLUMNS = {
    "repetition": "int64",  # as its directory raw/repetition-N counts: from 0
    "requests": "str",  # their label
    "due_s": "float64",  # seconds since the repetition's beginning
    "sent_s": "float64",
    "answered_s": "float64",  # NaN: there was no answer
    "status": "str",  # answered, late, lost, or the name of a system's error
    "round_trip_s": "float64",  # TCP's own, smoothed; NaN: not known
    "phase": "str",  # in which it counts; warm-up: in none
}
DIGITS = 7  # of a time in seconds: as many as are recorded
Time = Annotated[float, AfterValidator(lambda seconds: round(seconds, DIGITS))]
ANSWERED = "answered"  # in time; with any other status an exchange counts as lost


class IdlePath(Part):
    """What exchanges take where nothing else is under way: medians, seconds."""

    moment: Moment  # before or after the traffic
    exchange_s: Time  # from when they were due
    echo_s: Time | None  # what ping would tell; null: nobody answers there
    overhead_s: Time | None  # what client and server add to that
    round_trip_s: Time | None  # TCP's own; null: not known


class Readings(NamedTuple):
    """Everything that exchangers say about a run."""

    exchanges: pd.DataFrame  # columns as in COLUMNS
    idle: dict[str, list[IdlePath]]  # by the label of the requests
    faults: list[Cause]  # requests without a measurement
    endpoints: dict[str, dict[str, int]]  # of requests to a service: how many each of its pods has seen


def read(recording: Recording, scenario: Scenario, record: RunRecord) -> Readings:
    """Return the exchanges of a recording; requests that failed are a fault, and no exchanges."""
    tables, faults = [], []
    endpoints: dict[str, Counter[str]] = {}
    for number, repetition in enumerate(record.repetitions):
        for requests in scenario.requests:
            transfer = repetition.transfers.get(requests.label)
            if transfer is None or transfer.error:
                text = "the requests were not made" if transfer is None else transfer.error or ""
                faults.append(lost(requests.label, text, number))
                continue
            exchanger = exchanger_of(scenario, requests)
            file = recording.raw_file(number, transfer.slug, "sender", exchanger.suffix_of("sender"))
            try:
                found = exchanger.read_exchanges(file, requests.count)
            except RawDataError as error:
                faults.append(
                    lost(requests.label, f"{file.relative_to(recording.directory)}: {error}", number)
                )
                continue
            table = _table(found, number, requests.label, transfer.started_s)
            tables.append(table.assign(phase=phases_of(requests, table, scenario, repetition)))
            if requests.destination in scenario.services:
                try:
                    seen = _seen(recording, scenario, number, requests, transfer)
                except RawDataError as error:
                    faults.append(lost(requests.label, str(error), number))
                    continue
                endpoints.setdefault(requests.label, Counter()).update(seen)
    paths, unknown = _idle(recording, scenario)
    return Readings(joined(tables), paths, [*faults, *unknown], {**endpoints})


def _seen(
    recording: Recording, scenario: Scenario, repetition: int, requests: Requests, transfer: Transfer
) -> dict[str, int]:
    """Return how many requests each pod of a service has seen. Raises RawDataError with the file."""
    exchanger = exchanger_of(scenario, requests)
    found = {}
    for pod in scenario.receivers_of(requests):
        name, suffix = receiver_slug(transfer.slug, pod), exchanger.suffix_of("receiver")
        file = recording.raw_file(repetition, name, "receiver", suffix)
        try:
            found[pod] = exchanger.read_count(file)
        except RawDataError as error:
            raise RawDataError(f"{file.relative_to(recording.directory)}: {error}") from None
    return found


def joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return several tables of exchanges as one."""
    import pandas as pd

    nothing = pd.DataFrame({name: [] for name in COLUMNS})
    return (pd.concat(tables, ignore_index=True) if tables else nothing).astype(COLUMNS)


def _table(found: list[Exchange], repetition: int, label: str, started_s: float) -> pd.DataFrame:
    import pandas as pd

    table = pd.DataFrame(found, columns=list(Exchange._fields)).astype(
        {name: kind for name, kind in COLUMNS.items() if name in Exchange._fields}
    )
    for name in ("due_s", "sent_s", "answered_s"):
        table[name] = (table[name] + started_s).round(DIGITS)
    table.insert(0, "requests", label)
    table.insert(0, "repetition", repetition)
    return table


def phases_of(
    requests: Requests, table: pd.DataFrame, scenario: Scenario, repetition: Repetition
) -> NDArray[np.str_]:
    """Return the phase of each exchange: that in which it was due, or by which it was disturbed."""
    import numpy as np

    disturbed = phases.disturbances(scenario, requests, repetition)
    warm_up = scenario.measurement.warm_up
    due = table["due_s"].to_numpy()
    ended = table["answered_s"].fillna(-1).to_numpy()
    begun = phases.span_of(requests, repetition).start
    # One without an answer counts by the moment at which it was due.
    found = phases.classify(due, np.maximum(ended, np.nextafter(due, math.inf)), begun + warm_up, disturbed)
    # What a disturbance left in buffers and queues is still on its way after it.
    for stretch in disturbed:
        settling = (due >= stretch.end) & (due < stretch.end + warm_up) & (found == phases.QUIET)
        found = np.where(settling, phases.WARM_UP, found)
    return found


def _idle(recording: Recording, scenario: Scenario) -> tuple[dict[str, list[IdlePath]], list[Cause]]:
    found: dict[str, list[IdlePath]] = {}
    faults = []
    names = slugs(one.label for one in scenario.requests)
    for moment, name in IDLE.items():
        for requests in scenario.requests:
            exchanger, slug = exchanger_of(scenario, requests), names[requests.label]
            asked, echoed = (
                recording.raw_directory / name / exchanger.file_name(slug, role)
                for role in ("sender", "echo")
            )
            try:
                path = _path(exchanger, moment, idle_sample(requests).count, asked, echoed)
            except RawDataError as error:
                text = f"the idle path is not known: {asked.relative_to(recording.directory)}: {error}"
                faults.append(lost(requests.label, text))
                continue
            found.setdefault(requests.label, []).append(path)
    return found, faults


def _path(exchanger: Exchanger, moment: Moment, count: int, asked: Path, echoed: Path) -> IdlePath:
    """Return what an idle path takes. Raises RawDataError; without pings it is known all the same."""
    found = exchanger.read_exchanges(asked, count)
    took = _median([one.answered_s - one.due_s for one in found if one.answered_s is not None])
    if took is None:
        raise RawDataError("no exchange was answered")
    try:
        # A ping's time begins when it is sent, whenever that was.
        echoes = [
            one.answered_s - one.sent_s
            for one in exchanger.read_exchanges(echoed, count)
            if one.answered_s is not None
        ]
    except RawDataError:
        echoes = []
    trips = [one.round_trip_s for one in found if one.round_trip_s is not None]
    echo = _median(echoes)
    return IdlePath(
        moment=moment,
        exchange_s=took,
        echo_s=echo,
        overhead_s=None if echo is None else took - echo,
        round_trip_s=_median(trips),
    )


def _median(values: list[float]) -> float | None:
    return statistics.percentile(values, 0.5) if values else None


def latencies(table: pd.DataFrame) -> statistics.Floats:
    """Return how long each exchange took from when it was due, seconds; one that was lost: for ever."""
    import numpy as np

    took = (table["answered_s"] - table["due_s"]).round(DIGITS).to_numpy()
    return np.where(table["status"].to_numpy() == ANSWERED, took, math.inf)
