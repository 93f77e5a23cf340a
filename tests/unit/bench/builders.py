"""Small scenarios, records and samples for the tests of what is made of a recording."""

from __future__ import annotations

import atexit
import shutil
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

from bench.analysis.exchanges import COLUMNS as EXCHANGES
from bench.analysis.exchanges import phases_of as phases
from bench.analysis.samples import COLUMNS, role_of
from bench.recording.records import Calibration, CpuUse, Repetition, RunRecord, Seconds, Transfer
from testbed.scenario import Scenario


def _unpacked(file: Path) -> Path:
    """Return a directory with the files of a tar archive; it is there as long as this process."""
    directory = Path(tempfile.mkdtemp(prefix="recordings-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    with tarfile.open(file) as packed:
        for member in filter(tarfile.TarInfo.isfile, packed):
            stream = packed.extractfile(member)
            (directory / member.name).parent.mkdir(parents=True, exist_ok=True)
            (directory / member.name).write_bytes(stream.read() if stream else b"")
    return directory


DATA = _unpacked(Path(__file__).parent / "data" / "recordings.tar.xz")

Rate = Callable[[str, float], float]  # bits per second of a flow at a time


def scenario(**fields: Any) -> Scenario:
    """Two pods that are promised 100 and 200 Mbit/s for 10 s, and a disturbance from 3 s to 6 s."""
    return Scenario.model_validate(
        {
            "name": "small",
            "nodes": {"master": {}, "left": {}, "right": {}},
            "clusters": {
                "a": {"master": "master", "workers": ["left", "right"], "pod_cidr": "172.16.0.0/16"}
            },
            "pods": {
                "A": {"cluster": "a", "node": "left", "guarantee": "100M"},
                "B": {"cluster": "a", "node": "left", "guarantee": "200M"},
                "C": {"cluster": "a", "node": "right"},
                "D": {"cluster": "a", "node": "right"},
            },
            "containers": {"one": {"node": "left"}, "two": {"node": "right"}},
            "flows": [{"from": "A", "to": "C"}, {"from": "B", "to": "D"}],
            "disturbances": [{"name": "noise", "from": "one", "to": "two", "start": 3, "duration": 3}],
            **fields,
        }
    )


def repetition(of: Scenario, late: float = 0.0, busy: float = 0.5) -> Repetition:
    return Repetition(
        transfers={
            traffic.label: Transfer(slug=f"t{number}", started_s=traffic.start + late)
            for number, traffic in enumerate(of.transfers)
        },
        cpu=[CpuUse(start_s=0.0, end_s=of.duration + 1, busy=busy, steal=0.0)],
    )


def record(of: Scenario, **fields: Any) -> RunRecord:
    return RunRecord(
        run_id="20260101T000000Z-small-pod",
        **{
            "started_at": "2026-01-01T00:00:00Z",
            "provider": "netns",
            "orchestrator": "cni",
            "seconds": Seconds(up=0.1, calibration=1.0, traffic=10.0, down=0.1),
            "calibration": Calibration(seconds=1.0, bits_per_second={"A -> C": 5e9, "B -> D": 5e9}),
            "repetitions": [repetition(of) for _ in range(of.measurement.repetitions)],
            "faults": [],
            **fields,
        },
    )


def samples(of: Scenario, rate: Rate, repetitions: int | None = None) -> pd.DataFrame:
    """One receiver's sample an interval of every transfer; ``rate`` says how much it got."""
    rows = [
        (
            number,
            traffic.label,
            role_of(of, traffic),
            start,
            start + of.measurement.interval,
            got,
            "receiver",
            None,
            None,
            None,
        )
        for number in range(repetitions or of.measurement.repetitions)
        for traffic in of.traffic
        for start in _starts(traffic.start, traffic.end, of.measurement.interval)
        for got in [rate(traffic.label, start)]
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


def exchanges(
    of: Scenario,
    took: Callable[[str, float], float | None],
    late: Callable[[float], float] = lambda _due: 0.0,
    number: int = 0,
    done: Repetition | None = None,
) -> pd.DataFrame:
    """Every exchange of a repetition; ``took`` says how long one took that was due at a time, None: lost."""
    tables = []
    for requests in of.requests:
        due = [requests.start + index / requests.rate for index in range(requests.count)]
        taken = [took(requests.label, moment) for moment in due]
        table = pd.DataFrame(
            {
                "repetition": number,
                "requests": requests.label,
                "due_s": due,
                "sent_s": [moment + late(moment) for moment in due],
                "answered_s": [None if t is None else m + t for m, t in zip(due, taken, strict=True)],
                "status": ["lost" if t is None else "answered" for t in taken],
                "round_trip_s": 0.001,
            }
        ).astype({"answered_s": "float64"})
        tables.append(table.assign(phase=phases(requests, table, of, done or repetition(of))))
    return pd.concat(tables, ignore_index=True).astype(EXCHANGES)


def with_senders(table: pd.DataFrame, windows: Callable[[float], float]) -> pd.DataFrame:
    """Add the senders' side; ``windows`` tells what theirs would carry, by the sample's start."""
    sent = table.assign(source="sender", window_bps=table["start_s"].map(windows))
    return pd.concat([table, sent], ignore_index=True)


def _starts(start: float, end: float, interval: float) -> list[float]:
    return [round(start + index * interval, 6) for index in range(round((end - start) / interval))]
