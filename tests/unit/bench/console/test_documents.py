"""What programs are told with ``--json``: one document on standard output, and nothing else there."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.cli.verbs import experiments, machines, testbeds
from bench.console import documents
from bench.console.messages import say
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording
from testbed import doctor, lasting
from testbed.access.place import Route
from testbed.doctor import Finding
from testbed.providers.persistence import Location, State

Recorded = Callable[[str], Recording]
Capture = pytest.CaptureFixture[str]


def document(capsys: Capture) -> tuple[dict[str, Any], str]:
    """Return the document that was written, and what people were told."""
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["schema"] == 1
    return told, said.err


def test_what_people_are_told_goes_to_standard_error(capsys: Capture) -> None:
    with documents.document(True) as told:
        say("how far it is")
        sys.stdout.write("whoever says it\n")
        told["name"] = "\x9b31m é"
    said = capsys.readouterr()
    assert said.err == "how far it is\nwhoever says it\n"
    assert said.out.isascii()
    assert json.loads(said.out) == {"schema": 1, "name": "\x9b31m é"}


def test_there_is_none_if_nobody_wants_it(capsys: Capture) -> None:
    with documents.document(False):
        say("words")
    assert capsys.readouterr() == ("words\n", "")


def test_there_is_none_after_an_error(capsys: Capture) -> None:
    def fail() -> None:
        with documents.document(True):
            say("words")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert capsys.readouterr() == ("", "words\n")


def test_where_standard_output_is_closed_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with documents.document(True):
        pass


@pytest.mark.parametrize(("name", "status"), [("held", 0), ("violated", 1)])
@pytest.mark.long(one_in=2)
def test_figures_tell_the_summary_and_where_files_are(
    recorded: Recorded, name: str, status: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    recording = recorded(name)
    monkeypatch.chdir(recording.directory.parent)  # so that a relative path is given
    with documents.document(True) as filled:
        assert experiments.draw_figures(name, Path("reports"), filled) == status
    told, words = document(capsys)
    (run,) = told["runs"]
    assert run["summary"] == json.loads(recording.summary_file.read_text())
    assert run["summary"]["verdict"] == name
    assert run["paths"]["recording"] == str(recording.directory)
    assert all(Path(path).exists() for path in run["paths"].values())
    assert f"{name}:" in words


def test_figures_of_half_a_record_tell_nothing(recorded: Recorded, capsys: Capture) -> None:
    recording = recorded("held")
    recording.run_file.write_text("{")
    with pytest.raises(StoredError), documents.document(True) as filled:
        experiments.draw_figures(str(recording.directory), Path("reports"), filled)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("needed", "status"), [(True, 4), (False, 0)])
def test_a_doctor_tells_its_findings(
    needed: bool, status: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Finding("HTB", True), Finding("iperf3", False, "apt-get install iperf3", needed)]
    monkeypatch.setattr(doctor, "examine", lambda _: iter(found))
    with documents.document(True) as filled:
        assert machines.examine(filled) == status
    told, words = document(capsys)
    assert told["findings"] == [
        {"subject": "HTB", "fine": True, "remedy": "", "needed": True},
        {"subject": "iperf3", "fine": False, "remedy": "apt-get install iperf3", "needed": needed},
    ]
    assert "apt-get install iperf3" in words


class Persisted:
    """A testbed that is up, or one that cannot be asked."""

    def __init__(self, name: str, held: State | None) -> None:
        self.name, self._held = name, held

    def state(self) -> State:
        if self._held is None:
            raise RuntimeError(f"{self.name} does not answer")
        return self._held


def test_a_status_tells_every_testbed(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    route = Route(node="worker-01")
    pod = Location(
        kind="pod", node="worker-01", address="172.16.1.3", entry=route, network=route, guarantee_bps=10**9
    )
    held = State(scenario="contmec", enforcement="pod", places={"A-1": pod}, notes=["it is slow"])
    there = [Persisted("testbed", held), Persisted("gone", None)]
    monkeypatch.setattr(lasting, "testbeds", lambda: there)
    with documents.document(True) as filled:
        assert testbeds.show_status(None, filled) == 0
    told, words = document(capsys)
    whole, gone = told["testbeds"]
    place = {"kind": "pod", "node": "worker-01", "address": "172.16.1.3", "guarantee_bps": 10**9}
    assert whole == {
        "name": "testbed", "error": None, "scenario": "contmec", "enforcement": "pod",
        "places": {"A-1": place}, "clusters": {}, "notes": ["it is slow"],
    }  # fmt: skip
    assert gone == {"name": "gone", "error": "gone does not answer"}
    assert "gone does not answer" in words
    monkeypatch.setattr(lasting, "testbeds", list)
    with documents.document(True) as filled:
        assert testbeds.show_status(None, filled) == 0
    assert document(capsys) == ({"schema": 1, "testbeds": []}, "no testbed is up\n")
