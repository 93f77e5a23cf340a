"""A night from recordings: what it leaves, how it ends, and what it refuses before it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from bench.console.asked import Options
from bench.console.statuses import CHANGED, FAILED, HELD, INVALID, VIOLATED
from bench.measurement import environment, experiment
from bench.measurement.rates import OnRates
from bench.recording import atomic, requests
from bench.recording.directory import Recording
from bench.recording.records import Request
from bench.studies.nightly import findings, nightly, trend, verb
from bench.studies.nightly.findings import Acknowledgements
from bench.studies.nightly.night import identity
from bench.studies.nightly.nightly import History
from testbed.scenario import Scenario
from tests.unit.bench.studies.nightly.builders import MACHINE, night, scenario

# Of a night nothing is drawn but its trend.
pytestmark = pytest.mark.usefixtures("undrawn")

Recorded = Callable[[str], Recording]
OPTIONS: Options = {
    "set_": [],
    "scale": 0.1,
    "provider": "netns",
    "orchestrator": "cni",
    "reports": "reports",
}
EXPORTS = {"nightly.md", "junit.xml", "bigger.json", "smaller.json", "trend.html"}


@pytest.fixture
def places(tmp_path: Path) -> nightly.Places:
    return nightly.Places(tmp_path / "history", tmp_path / "exports", tmp_path / "nightly.yaml")


def only_night(places: nightly.Places) -> Any:
    (file,) = places.history.glob("*.jsonl")
    (line,) = file.read_text().splitlines()
    return json.loads(line)


def results(places: nightly.Places) -> dict[str, list[type]]:
    """Return what a reader of JUnit's XML makes of it, by the case's name."""
    return {
        case.name: [type(one) for one in case.result]
        for suite in JUnitXml.fromfile(str(places.exports / "junit.xml"))
        for case in suite
    }


@pytest.mark.parametrize(
    ("name", "status", "result"),
    [("held", HELD, []), ("violated", VIOLATED, [Failure])],
)
def test_a_recording_gives_a_line_and_exports(
    recorded: Recorded, places: nightly.Places, name: str, status: int, result: list[type]
) -> None:
    recording = recorded(name)
    assert verb.again([str(recording.directory)], 5, places, Path("reports")) == status
    line, record = only_night(places), recording.run_record()
    assert line["run_id"].startswith(record.run_id)
    assert line["schema_version"] == 1
    assert line["verdict"] == name
    assert line["machine"] == identity(atomic.read_json(recording.environment_file))
    ((of, kept),) = line["scenarios"].items()
    assert kept["recording"] == record.run_id
    assert kept["calibration_bps"] > 0
    flow = next(iter(kept["flows"].values()))
    assert set(flow["phases"]) == {"quiet", "disturbed"}
    assert flow["retransmissions"] >= 0
    assert {file.name for file in places.exports.iterdir()} == EXPORTS
    assert results(places) == {of: result, "as good as before": []}


def test_numbers_are_exported_by_what_is_better(recorded: Recorded, places: nightly.Places) -> None:
    recording = recorded("held")
    record = recording.run_record().model_copy(update={"add_s": {"A": 0.01, "B": 0.03, "C": 0.02}})
    atomic.write_model(recording.run_file, record)
    verb.again([str(recording.directory)], 5, places, Path("reports"))
    bigger, smaller = (
        {one["name"].rpartition("/")[2]: one for one in atomic.read_json(places.exports / file)}
        for file in ("bigger.json", "smaller.json")
    )
    assert set(bigger) == {"mean", "attainment", "calibration"}
    assert set(smaller) == {"retransmissions", "add", "up", "down"}
    assert smaller["add"]["value"] == 0.02
    assert smaller["add"]["unit"] == "s"
    for one in (*bigger.values(), *smaller.values()):
        assert set(one) == {"name", "unit", "value"}
        assert isinstance(one["value"], float)


def test_the_same_recordings_are_one_night(recorded: Recorded, places: nightly.Places) -> None:
    recording = str(recorded("held").directory)
    for _ in range(2):
        assert verb.again([recording], 5, places, Path("reports")) == HELD
    first = {file.name: file.read_bytes() for file in places.exports.iterdir()}
    assert only_night(places)
    for file in places.exports.iterdir():
        file.unlink()
    verb.again([recording], 5, places, Path("reports"))
    assert {file.name: file.read_bytes() for file in places.exports.iterdir()} == first


class Page(HTMLParser):
    """What a page loads, and the data in it."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.data = ""
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        self._in_data = ("id", "trend") in attrs

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data, self._in_data = data, False


def test_the_trend_has_every_number_and_loads_nothing() -> None:
    strange = scenario(2)
    strange = strange.model_copy(update={"flows": {"</script><b>": strange.flows["A -> C"]}})
    nights = [night(0), night(1), night(2, strange)]
    report = nightly.conclude(nights, {}, Acknowledgements(Path("nightly.yaml")))
    page = Page()
    page.feed(trend.render(report))
    data = json.loads(page.data)
    assert page.addresses == ["data:,"]  # of the icon, which a browser would ask for otherwise
    assert [one["run_id"] for one in data["nights"]] == [one.run_id for one in nights]
    metrics = {one["name"]: one for one in data["metrics"]}
    assert metrics["small/up"]["values"] == [one.scenarios["small"].up_s for one in nights]
    assert metrics["small/</script><b>/quiet/mean"]["values"][:2] == [None, None]


def test_what_is_told_is_a_line_each_with_what_to_do(tmp_path: Path) -> None:
    nights = [night(number, scenario(number, C=0.95) if number >= 20 else None) for number in range(25)]
    report = nightly.conclude(nights, {}, Acknowledgements(tmp_path / "nightly.yaml"))
    assert verb.STATUS_OF_GATE[report.judgement.gate] == CHANGED
    text = report.files()["nightly.md"].decode()
    lines = text.splitlines()
    assert lines[0] == "# ✗ Something is worse than it was; every guarantee held"
    assert lines[2].startswith("| flow | tonight | median of the last 20 | change | since when |")
    assert re.match(
        r"\| small: A -\\> C, quiet \| 90\.\d+ Mbit/s \| 95\.\d+ Mbit/s \| -[45]\.\d % \(.*\) "
        r"\| 2026-11-21 \(5 nights, 4 days\) \|",
        lines[4],
    )
    assert re.fullmatch(r"\| small: B -\\> D, quiet \|.*\| [-+]?0\.\d % \| – \|", lines[6])
    assert len([line for line in lines if line.startswith("* worse ")]) == 1
    # What to write, with the rest filled in, is what is read.
    block = text.partition("```yaml\n")[2].partition("```")[0]
    filled = block.replace("reason: ", "reason: right").replace("who: ", "who: me")
    (tmp_path / "nightly.yaml").write_text(filled.replace("until: ", "until: 2030-01-01"))
    known = findings.read_acknowledgements(tmp_path / "nightly.yaml", MACHINE)
    known.check(nights)
    assert [entry.metric for entry in known.entries] == ["small/A -> C/*/mean"]
    accepted = nightly.conclude(nights, {}, known)
    assert verb.STATUS_OF_GATE[accepted.judgement.gate] == HELD
    assert (
        accepted.files()["nightly.md"].decode().startswith("# ! What is worse than it was is acknowledged; ")
    )
    for each, result in ((report, Failure), (accepted, Skipped)):
        ((one,),) = [
            case.result for suite in JUnitXml.fromstring(each.files()["junit.xml"]) for case in suite
        ]
        assert type(one) is result
        assert len(one.message) <= 120
        assert one.text.splitlines()[0] == one.message
        assert len(one.text.splitlines()) > 3


class Silence:
    """Shows nothing."""

    def stage(self, text: str) -> None:
        """Tell nobody."""

    @contextmanager
    def traffic(self, scenario: Scenario, repetition: int) -> Iterator[OnRates]:
        yield lambda _seconds, _rates: None

    def measured(self) -> None:
        """Do nothing."""

    def settle(self) -> None:
        """Wait for nothing."""


def spoil(recorded: Recorded) -> Recorded:
    """Return recordings of which a file is missing, so that they say nothing."""

    def copy(name: str) -> Recording:
        recording = recorded(name.removeprefix("spoilt "))
        if name.startswith("spoilt "):
            next(recording.repetition_directory(0).glob("*.receiver.json")).unlink()
        return recording

    return copy


@pytest.mark.parametrize(
    ("ends", "status", "attempts", "verdict", "result"),
    [
        (["held"], HELD, 1, "held", []),
        (["violated"], VIOLATED, 1, "violated", [Failure]),
        (["spoilt held", "held"], HELD, 2, "held", []),
        (["spoilt held", "violated"], VIOLATED, 2, "violated", [Failure]),
        (["spoilt held", "spoilt held"], INVALID, 2, "invalid", [Skipped]),
        ([RuntimeError("no room for nodes")], FAILED, 1, "failed", [Error]),
        (["spoilt held", RuntimeError("no \0 room")], FAILED, 2, "failed", [Error]),
    ],
)
def test_what_says_nothing_is_run_once_more(
    monkeypatch: pytest.MonkeyPatch,
    recorded: Recorded,
    places: nightly.Places,
    ends: list[str | Exception],
    status: int,
    attempts: int,
    verdict: str,
    result: list[type],
) -> None:
    left = list(ends)
    made: list[Path] = []

    def run(request: Request, scenario: Scenario, display: object) -> Recording:
        end = left.pop(0)
        if isinstance(end, Exception):
            raise end
        recording = spoil(recorded)(end)
        made.append(Path(f"{recording.directory}-{len(made)}.unfinished"))
        return Recording(recording.directory.rename(made[-1]))

    monkeypatch.setattr(experiment, "run", run)
    request = Request(scenario="contmec", scale=0.1)
    asked = requests.read(request)
    report = nightly.run([(request, asked)], places, lambda _: Silence())
    assert left == []
    assert verb.STATUS_OF_GATE[report.judgement.gate] == status
    line = only_night(places)
    assert line["verdict"] == verdict
    assert line["scenarios"]["contmec"]["attempts"] == attempts
    assert results(places)["contmec"] == result


def bad(report: Callable[[], object], places: nightly.Places, words: str) -> None:
    """Check that something is refused in these words, and that nothing is written."""
    with pytest.raises(LookupError, match=words):
        report()
    assert not places.exports.exists()


def untouched(*_: object) -> Recording:
    raise AssertionError("something was started")


@pytest.fixture
def no_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "run", untouched)


@pytest.mark.usefixtures("no_runs")
@pytest.mark.parametrize("repetitions", [0, -1])
def test_no_repetition_is_bad_input(places: nightly.Places, repetitions: int) -> None:
    words = f"--repetitions: {repetitions} is too few"
    bad(lambda: verb.run([], repetitions, places, **OPTIONS), places, words)
    bad(lambda: verb.again(["x"], repetitions, places, Path("reports")), places, words)


@pytest.mark.usefixtures("no_runs")
def test_a_history_that_cannot_be_written_is_bad_input(places: nightly.Places, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    wrong = nightly.Places(tmp_path / "file" / "history", places.exports, places.acknowledgements)
    bad(lambda: verb.run([], 5, wrong, **OPTIONS), places, "--history: .* cannot be written: .*directory")


@pytest.mark.usefixtures("no_runs")
def test_a_history_or_acknowledgements_that_cannot_be_read_are_bad_input(places: nightly.Places) -> None:
    here = identity(environment.surroundings())
    file = History(places.history, here).file
    atomic.write(file, b"nothing\n")
    bad(lambda: verb.run([], 5, places, **OPTIONS), places, re.escape(f"{file}: line 1: Invalid JSON"))
    file.unlink()
    places.acknowledgements.write_text("acknowledgments: []\n")
    bad(lambda: verb.run([], 5, places, **OPTIONS), places, "acknowledgments: no such field")
    assert list(places.history.iterdir()) == []


@pytest.mark.usefixtures("no_runs")
def test_a_scenario_twice_is_bad_input(places: nightly.Places) -> None:
    bad(
        lambda: verb.run(["contmec", "contmec"], 5, places, **OPTIONS),
        places,
        "names must be unique in a night",
    )


def test_half_a_record_is_bad_input(recorded: Recorded, places: nightly.Places) -> None:
    recording = recorded("held")
    recording.run_file.write_bytes(recording.run_file.read_bytes()[:500])
    words = re.escape(f"{recording.run_file}: ")
    bad(lambda: verb.again([str(recording.directory)], 5, places, Path("reports")), places, words)
    assert not places.history.exists()


def test_recordings_of_two_machines_are_no_night(recorded: Recorded, places: nightly.Places) -> None:
    one, other = recorded("held"), recorded("violated")
    changed = atomic.read_json(other.environment_file)
    changed["host"]["memory_bytes"] = 2**40
    atomic.write_json(other.environment_file, changed)
    runs = [str(one.directory), str(other.directory)]
    bad(lambda: verb.again(runs, 5, places, Path("reports")), places, "recordings of several machines")
