"""What is kept of queues that are read again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.measurement.readings import on_clock
from bench.recording import archive, queues
from bench.recording.atomic import StoredError
from bench.recording.queues import Queue
from testbed.scenario import ScenarioError, load
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"

LEAF = Queue("eth0", "pfifo", "10:", "1:10", 5, 1, 0, 0, 0)
CLASS = Queue("eth0", "htb", "1:10", "1:1", 5, 1, 2, 3, 4)


def test_what_did_not_change_is_as_it_was(tmp_path: Path) -> None:
    file = tmp_path / queues.file_name("worker-01")
    later = CLASS._replace(bytes=9)
    file.write_text(queues.line(0.5, [LEAF, CLASS]) + queues.line(0.6, [later]) + queues.line(0.7, []))
    assert [reading.at_s for reading in queues.read(file)] == [0.5, 0.6, 0.7]
    assert [list(reading.queues.values()) for reading in queues.read(file)] == [
        [LEAF, CLASS],
        [LEAF, later],
        [LEAF, later],
    ]
    assert queues.place_of(file) == "worker-01"
    assert file.match(queues.PATTERN)


@pytest.mark.parametrize("text", ["[0.1,[1,2]]\n", "no JSON\n", "3\n", '["soon"]\n'])
def test_what_is_no_reading_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "queues-n.jsonl"
    file.write_text(text)
    with pytest.raises(StoredError, match=r"queues-n\.jsonl.*not readings of queues"):
        list(queues.read(file))


def test_moments_are_counted_from_the_beginning_of_the_traffic() -> None:
    said = '[99.5,["eth0","htb","1:10","1:1",5,1,2,3,4]]\n[100.25]\n'
    assert on_clock(said, zero=100.0, now=101.0) == queues.line(-0.5, [CLASS]) + queues.line(0.25, [])


def test_a_line_that_was_cut_off_is_left_out() -> None:
    assert on_clock('[100.25]\n[100.35,["et', zero=100.0, now=101.0) == queues.line(0.25, [])


@pytest.mark.parametrize("at", [5.0, 4000.0])
def test_another_machines_clock_tells_nothing_here(at: float) -> None:
    assert on_clock(f"[{at}]\n", zero=100.0, now=101.0) == ""


def test_what_is_recorded_can_be_read_back() -> None:
    asked = ["flows[0].duration=7200", "measurement.interval=1"]
    load(CONTMEC, [*asked, "measurement.queues=0.1"])
    with pytest.raises(ScenarioError, match=r"measurement\.queues: the readings of one node may have"):
        load(CONTMEC, [*asked, "measurement.queues=0.01"])


def test_readings_of_nothing_are_another_rules() -> None:
    with pytest.raises(ScenarioError, match="flows"):
        load(CONTMEC, ["flows=[]", "measurement.queues=0.1"])


@pytest.mark.long(one_in=0)
def test_real_readings_are_within_what_they_were_taken_to_be_at_most(tmp_path: Path) -> None:
    found = archive.packed_recordings(ROOT / "reports" / "promise" / "node-cni")
    (files,) = (files for name, files in found.items() if name.endswith("full-10-node"))
    (tmp_path / "scenario.yaml").write_bytes(files["scenario.yaml"])
    scenario = load(tmp_path / "scenario.yaml")
    sizes = [len(content) for path, content in files.items() if "/queues-" in path]
    assert scenario.measurement.queues
    assert queues.most_bytes(scenario) / 20 < max(sizes) < queues.most_bytes(scenario)
