"""The study of a network's promises: its runs, what is made of them, and how it ends."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import cast

import pytest
from ruamel.yaml import YAML

from bench import pipeline
from bench.measurement.display import Displays
from bench.recording import archive, atomic
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies.promise import PROFILES, index, report
from bench.studies.promise.check import Check, State
from bench.studies.promise.index import INDEX, Promise, Result, Row, read
from bench.studies.promise.records import Rounds
from bench.studies.promise.study import PromiseStudy
from bench.studies.reproduction import regeneration
from testbed.scenario import ScenarioError
from tests.paths import ROOT
from tests.unit.bench.builders import DATA

RUN_ID = "20260101T000001Z-held-pod"

STUDY = PromiseStudy()


def asked(**choices: str) -> StudyRequest:
    return StudyRequest(study="promise", choices={name: (word,) for name, word in choices.items()})


def result(name: str, state: State) -> Result:
    return Result(
        name=name,
        profile="ceiling",
        asks="Is it?",
        measured="so",
        claim="ceiling",
        threads=[],
        state=state,
        words="100 Mbit/s",
    )


@pytest.mark.parametrize("network", ["node", "pod", "bandwidth", "none", "ptp-bandwidth", "ptp-concorde"])
def test_every_run_of_a_network_is_a_scenario_that_can_be_run_and_is_made_once(network: str) -> None:
    cases = STUDY.cases(asked(network=network))
    runs = [(case.request.scenario, case.row.settings) for case in cases]
    assert len(runs) == len({(scenario, *settings) for scenario, settings in runs})
    for case in cases:
        assert case.scenario is not None, case.row.reason
        assert case.scenario.kept_by == network
        assert case.request.overrides[-1] == f"enforcement={network}"


def test_a_link_is_that_of_every_run() -> None:
    for case in STUDY.cases(asked(link="2G")):
        assert case.scenario is not None
        assert case.scenario.underlay.rate == 2 * 10**9


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"profile": "moon"}, "no profile 'moon'"),
        ({"check": "moon"}, "no check 'moon'"),
        ({"link": "10M"}, "--link: 10M is less than 1G"),
        ({"link": "fast"}, "--link: "),
        ({"network": "macvlna"}, r"\A--network: no network 'macvlna' \(networks: .*did you mean 'macvlan'"),
        ({"network": "mine.yaml"}, r"\A--network: mine.yaml: there is no such file\Z"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(choices: dict[str, str], words: str) -> None:
    with pytest.raises(LookupError, match=words):
        STUDY.cases(asked(**choices))


@pytest.mark.parametrize(
    ("choices", "names"),
    [
        ({"profile": "robust"}, ["some-attacks", "without-gso", "churn"]),
        ({"check": "attacks"}, ["attacks"]),
        ({"profile": "robust", "check": "attacks"}, ["attacks"]),
    ],
)
def test_all_attacks_are_tried_where_they_are_named_and_else_some(
    choices: dict[str, str], names: list[str]
) -> None:
    assert list(STUDY.probes(asked(**choices))) == names
    assert STUDY.whole_index(asked(**choices), [], []).checks == names


def test_whether_a_promise_survives_is_known_in_two_minutes() -> None:
    assert sum(STUDY.probes(asked(profile="robust")).values()) <= 120
    assert all(seconds > 0 for seconds in STUDY.probes(asked()).values())


def test_what_is_no_recording_is_made_once_and_says_before_how_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, str]] = []

    class Display:
        def __init__(self, name: str) -> None:
            self.name = name

        def stage(self, text: str) -> None:
            told.append((self.name, text))

    def measure(self: Check, *_: object) -> Rounds:
        if self.name == "churn":
            raise RuntimeError("it did not come up")
        return Rounds(rounds=[])

    monkeypatch.setattr(Check, "measure", measure)
    for _ in range(2):
        STUDY.measure(asked(profile="robust"), tmp_path, cast("Displays", Display))
    assert [name for name, _ in told] == ["some-attacks", "without-gso", "churn"]
    assert told[0][1] == "check 1 of 3, about 1 min left"
    kept = {file.name for file in (tmp_path / "measured").iterdir()}
    assert kept == {"some-attacks.json", "without-gso.json", "churn-failed.json"}


def test_links_of_clusters_that_exist_have_to_be_said() -> None:
    there = asked(network="bandwidth").model_copy(update={"kubeconfigs": ("admin.conf",)})
    with pytest.raises(LookupError, match="--link: say what the nodes' links have there"):
        STUDY.cases(there)
    cases = STUDY.cases(there.model_copy(update={"choices": {"network": ("bandwidth",), "link": ("10G",)}}))
    assert {case.request.kubeconfigs for case in cases} == {("admin.conf",)}


def test_a_network_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("claims: [moon]")
    with pytest.raises(ScenarioError, match=r"mine\.yaml: claims"):
        STUDY.cases(asked(network=str(tmp_path / "mine.yaml")))


@pytest.mark.parametrize(
    ("states", "outcome", "profile"),
    [
        (["held", "not claimed"], "held", "success"),
        (["not claimed"], "held", "notClaimed"),
        (["held", "invalid"], "invalid", "partial"),
        (["held", "invalid", "violated"], "violated", "failure"),
    ],
)
def test_the_worst_of_what_is_claimed_decides(
    states: list[State], outcome: str, profile: str, tmp_path: Path
) -> None:
    found = Promise(rows=[], results=[result(f"check-{n}", state) for n, state in enumerate(states)])
    atomic.write_model(tmp_path / INDEX, found)
    assert STUDY.outcome(tmp_path) == outcome
    assert report.outcome(states) == profile


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of another scenario, with what an analysis makes of it."""
    directory = tmp_path_factory.mktemp("recorded") / "held"
    shutil.copytree(DATA / "held", directory)
    pipeline.analyse(Recording(directory))
    return directory


@pytest.fixture
def study(tmp_path: Path, analysed: Path) -> Path:
    """A study whose only recording is another scenario's, so that nothing that is asked was measured."""
    directory = tmp_path / "reports" / "20260101T000000Z-promise"
    shutil.copytree(analysed, directory / RUN_ID)
    checks = ["rate-100m", "ingress", "limited-pod", "room"]
    index = Promise(
        network="node",
        claims=["ceiling", "floor"],
        directions=["egress"],
        link_bps=4 * 10**9,
        checks=checks,
        rows=[
            Row(scenario="promise/rates", recording=RUN_ID),
            Row(scenario="promise/latency", reason="worker-01 did not come up"),
        ],
    )
    atomic.write_model(directory / INDEX, index)
    atomic.write_model(directory / "request.json", asked(network="node"))
    return directory


def test_what_was_not_measured_is_invalid_and_says_why(study: Path) -> None:
    STUDY.analyse(study)
    found = {one.name: one for one in read(study).results}
    assert found["rate-100m"].state == "invalid"
    assert found["rate-100m"].recordings == [RUN_ID]
    assert (found["ingress"].state, found["ingress"].words) == (
        "not claimed",
        "it says nothing of what a pod receives",
    )
    # Nobody claims how long a message waits, so that it was not measured is no verdict either.
    assert found["limited-pod"].state == "not claimed"
    assert "worker-01 did not come up" in found["limited-pod"].words
    assert found["room"].state == "invalid"
    assert STUDY.outcome(study) == "invalid"


def test_the_report_says_what_where_and_how_to_do_it_again(study: Path) -> None:
    STUDY.analyse(study)
    told = YAML(typ="safe").load((study / "report.yaml").read_text())
    assert told["apiVersion"] == "promise.concorde.contmec.dev/v1alpha1"
    assert told["kind"] == "PromiseReport"
    assert told["implementation"]["network"] == "node"
    assert told["where"]["orchestrator"] == "cni"
    assert told["reproduce"] == ["./invokew promise --network node"]
    profiles = {profile["name"]: profile for profile in told["profiles"]}
    assert profiles["ceiling"]["statistics"] == {"Held": 0, "Violated": 0, "Invalid": 1, "NotClaimed": 1}
    assert profiles["ceiling"]["result"] == "partial"
    page = (study / "promise.html").read_text()
    assert "rate-100m" in page
    assert "A ceiling says that a pod never gets more" in page


@pytest.mark.long(one_in=0)
def test_a_packed_study_gives_the_same_report(study: Path, tmp_path: Path) -> None:
    STUDY.analyse(study)
    packed = tmp_path / "kept" / "node"
    archive.pack(study, packed)
    (tmp_path / "scratch").mkdir()
    kept = regeneration.make(packed, tmp_path / "scratch")
    assert kept.files[INDEX] == (study / INDEX).read_bytes()
    assert not index.read(packed).results  # which follow from the recordings
    assert kept.files["report.yaml"] == (study / "report.yaml").read_bytes()
    assert not kept.differing


def test_the_docs_have_a_table_of_the_reports_that_are_kept(study: Path, tmp_path: Path) -> None:
    STUDY.analyse(study)
    reports = tmp_path / "all"
    assert "No report is kept yet" in report.published(reports, {})
    page = report.published(reports, {"node-cni": index.read(study)})
    assert (
        "| [node-cni](../../all/promise/node-cni) | node | ceiling, floor | 1 invalid, 1 not claimed |"
        in page
    )
    assert "| rate-100m: Does a pod with 100 Mbit/s get that, in the long run? | ? |" in page


def test_the_study_alone_knows_the_checks_of_every_profile() -> None:
    """In a process of its own, where no other test has imported them."""
    text = "import bench.studies.promise.study as s; print(*{c.profile for c in s.all_checks()})"
    done = subprocess.run([sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == set(PROFILES)
