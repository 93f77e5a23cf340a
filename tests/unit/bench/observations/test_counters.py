from __future__ import annotations

import pytest

from bench.analysis import samples
from bench.observations.causes import Cause
from bench.observations.counters import contradictions
from bench.observations.observation import Evidence
from bench.recording.directory import Recording
from bench.recording.records import RunRecord
from tests.unit.bench.builders import DATA, record, scenario

RECEIVED = 125_000_000  # bytes: ten seconds at 100 Mbit/s
CHARGED = RECEIVED * 1464 // 1398


def checked(received: int = RECEIVED, sent: int = RECEIVED, **counters: int) -> list[Cause]:
    experiment = scenario(flows=[{"from": "A", "to": "C"}])
    made: RunRecord = record(experiment)
    for name, value in counters.items():
        setattr(made.repetitions[0].transfers["A -> C"], name, value)
    totals = {(0, "A -> C", "receiver"): received, (0, "A -> C", "sender"): sent}
    return list(contradictions(Evidence(experiment, made, totals)))


@pytest.mark.parametrize("name", ["held", "violated", "udp"])
def test_real_recordings_agree_with_themselves(name: str) -> None:
    recording = Recording(DATA / name)
    experiment, made = recording.scenario(), recording.run_record()
    totals = samples.read(recording, experiment, made).totals
    assert list(contradictions(Evidence(experiment, made, totals))) == []
    assert any(t.class_bytes for r in made.repetitions for t in r.transfers.values())


def test_agreement() -> None:
    assert checked(sender_interface_bytes=RECEIVED + 10_000, class_bytes=CHARGED) == []


@pytest.mark.parametrize(
    ("counters", "words"),
    [
        ({"sent": RECEIVED * 9 // 10}, "its sender counted 112,500,000"),
        ({"sender_interface_bytes": RECEIVED // 2}, "its pod's eth0 sent 62,500,000"),
        ({"class_bytes": CHARGED * 9 // 10}, "its HTB class counted"),
        ({"class_bytes": 0}, "its HTB class counted 0"),
        ({"sent": 2 * RECEIVED}, "more is missing than socket buffers hold"),
    ],
)
def test_contradictions(counters: dict[str, int], words: str) -> None:
    (cause,) = checked(**counters)
    assert (cause.kind, cause.flow, cause.repetition) == ("measurement", "A -> C", 0)
    assert cause.text.startswith("A -> C, repetition-0: ")
    assert words in cause.text
    assert cause.observed is not None
    assert cause.required is not None
    assert cause.observed != cause.required


def test_retransmissions_and_queues_are_no_contradiction() -> None:
    assert checked(sent=RECEIVED + 4_000_000, class_bytes=CHARGED * 2) == []


def test_a_transfer_without_a_measurement_is_left_to_its_fault() -> None:
    experiment = scenario()
    assert list(contradictions(Evidence(experiment, record(experiment)))) == []
