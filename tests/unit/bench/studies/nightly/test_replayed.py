"""Nights replayed one after another, with a fall from one of them on: red, acknowledged, and back."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from junitparser import Failure, JUnitXml, Skipped

from bench import pipeline
from bench.analysis.summary import Summary
from bench.console.statuses import CHANGED, HELD
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.studies.nightly import nightly
from bench.studies.nightly import verb as verb
from bench.studies.nightly.night import Night
from bench.studies.nightly.nightly import History
from tests.unit.bench.builders import DATA

FIRST = datetime(2026, 11, 1, 2, 17, tzinfo=UTC)
FALLEN = 0.95


class Nights:
    """A recording that is replayed as one night after another; what its first flow got is multiplied."""

    def __init__(
        self, recording: Recording, summary: Summary, places: nightly.Places, patch: pytest.MonkeyPatch
    ) -> None:
        self.recording, self.places = recording, places
        self._summary, self._patch = summary, patch
        self.number = 0

    def replay(self, factor: float) -> int:
        """Replay the next night and return the exit status."""
        began = FIRST + timedelta(days=self.number)
        name = {"run_id": f"{began:%Y%m%dT%H%M%SZ}-held-pod", "started_at": began.isoformat()}
        atomic.write_model(self.recording.run_file, self.recording.run_record().model_copy(update=name))
        self._patch.setattr(pipeline, "analyse", lambda _: self._times(factor))
        self.number += 1
        return verb.again([str(self.recording.directory)], 5, self.places, Path("reports"))

    def pass_by(self, nights: int, factor: float) -> None:
        """Let nights pass that are as the last one in the history, but for the flow."""
        (file,) = self.places.history.glob("*.jsonl")
        history = History(self.places.history, file.stem)
        with history.locked() as kept:
            (real,) = [night for night in kept.nights if night.run_id.startswith("20261101")]
            for _ in range(nights):
                kept.append(self._like(real, factor))
                self.number += 1

    def _like(self, real: Night, factor: float) -> Night:
        began = FIRST + timedelta(days=self.number)
        ((name, one),) = real.scenarios.items()
        flow, *_ = one.flows
        phases = {
            phase: seen.model_copy(update={"mean_bps": seen.mean_bps * factor})
            for phase, seen in one.flows[flow].phases.items()
        }
        flows = {**one.flows, flow: one.flows[flow].model_copy(update={"phases": phases})}
        return real.model_copy(
            update={
                "run_id": f"{began:%Y%m%dT%H%M%SZ}-held-pod",
                "started_at": began.isoformat(),
                "scenarios": {name: one.model_copy(update={"flows": flows})},
            }
        )

    def _times(self, factor: float) -> Summary:
        flow, *others = self._summary.flows
        phases = {
            name: phase.model_copy(update={"mean_bps": phase.mean_bps * factor})
            for name, phase in flow.phases.items()
        }
        return self._summary.model_copy(
            update={"flows": [flow.model_copy(update={"phases": phases}), *others]}
        )

    def exported(self, name: str) -> str:
        return (self.places.exports / name).read_text(encoding="utf-8")

    def result(self) -> list[type]:
        """Return what JUnit says of the nights before."""
        (suite,) = JUnitXml.fromstring(self.exported("junit.xml").encode())
        *_, case = suite
        return [type(one) for one in case.result]

    def headline(self) -> str:
        """Return the outcome that the trend page begins with."""
        found = re.search(r'<h1><span class="outcome \w+">(.*?)</span>', self.exported("trend.html"))
        assert found is not None
        return found[1]

    def bullets(self) -> list[str]:
        return [line for line in self.exported("nightly.md").splitlines() if line.startswith("* ")]


@pytest.fixture(scope="module")
def summary(tmp_path_factory: pytest.TempPathFactory) -> Summary:
    return pipeline.analyse(Recording(shutil.copytree(DATA / "held", tmp_path_factory.mktemp("of") / "held")))


@pytest.fixture
def nights(
    recorded: Callable[[str], Recording], summary: Summary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Nights:
    places = nightly.Places(tmp_path / "history", tmp_path / "exports", tmp_path / "nightly.yaml")
    return Nights(recorded("held"), summary, places, monkeypatch)


def test_a_night_stays_red_until_somebody_says_so_or_it_is_as_before(nights: Nights) -> None:
    assert nights.replay(1.0) == HELD
    nights.pass_by(28, 1.0)
    nights.pass_by(4, FALLEN)
    for age in ("5 nights, 4 days", "6 nights, 5 days", "7 nights, 6 days"):
        assert nights.replay(FALLEN) == CHANGED
        assert nights.exported("nightly.md").startswith("# ✗ Something is worse than it was; ")
        (line,) = nights.bullets()
        assert re.fullmatch(rf"\* worse by 5\.0 % since 2026-11-30 \({age}\): .*/mean \(2 series\)", line)
        assert len(line) <= 120
        assert nights.result() == [Failure]
        assert nights.headline() == "✗ worse"

    # What the summary says is written down for all series at once.
    stanza = nights.exported("nightly.md").partition("```yaml\n")[2].partition("```")[0]
    assert stanza.count("- machine:") == 1
    filled = stanza.replace("reason: ", "reason: right").replace("who: ", "who: me")
    nights.places.acknowledgements.write_text(filled.replace("until: ", "until: 2030-01-01"))
    assert nights.replay(FALLEN) == HELD
    assert nights.exported("nightly.md").startswith("# ! What is worse than it was is acknowledged; ")
    assert nights.bullets()[0].startswith("* acknowledged: worse by 5.0 %")
    assert nights.result() == [Skipped]
    assert nights.headline() == "! acknowledged"

    nights.pass_by(4, 1.0)
    assert nights.replay(1.0) == HELD
    assert nights.exported("nightly.md").startswith("# ✓ Every guarantee held\n")
    assert nights.bullets()[0].startswith("* back to the level before since 2026-12-08")
    assert nights.result() == []
    assert nights.headline() == "✓ held"


def test_a_night_that_is_gone_through_again_comes_to_the_same(nights: Nights) -> None:
    nights.replay(1.0)
    nights.pass_by(19, 1.0)
    nights.pass_by(5, FALLEN)
    assert nights.replay(FALLEN) == CHANGED
    exports = {file.name: file.read_bytes() for file in nights.places.exports.iterdir()}
    nights.pass_by(10, 1.0)
    nights.number = 25
    assert nights.replay(FALLEN) == CHANGED  # as it was that night, and not as it is now
    assert {file.name: file.read_bytes() for file in nights.places.exports.iterdir()} == exports


def test_the_run_that_says_most_is_next(nights: Nights, capsys: pytest.CaptureFixture[str]) -> None:
    nights.replay(1.0)
    last = capsys.readouterr().out.splitlines()[-1]
    assert shlex.split(last) == ["next:", "./invokew", "figures", str(nights.recording.directory)]
