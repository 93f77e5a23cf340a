"""How every study is run, with runs that are made up in no time: no privileges, no traffic."""

from __future__ import annotations

import fcntl
import io
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from bench import pipeline
from bench.analysis import summary
from bench.analysis.summary import SecondsSummary, Summary
from bench.console.progress import Display
from bench.measurement import experiment
from bench.presentation.wording import estimate
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import Beginning, Finished, Repetition, Request, RunRecord, Seconds, StudyRequest
from bench.studies import loop
from bench.studies.known import STUDIES, find, named, register
from bench.studies.matrix.index import Matrix
from bench.studies.matrix.study import MatrixStudy
from bench.studies.places.study import PlacesStudy
from bench.studies.study import Study, left_s, traffic_s
from testbed import assembly
from testbed.scenario import Scenario, load, render_yaml
from tests.paths import CONTMEC_SUMMARY, ROOT

MATRIX = MatrixStudy()
RUN = RunRecord(
    run_id="20260101T000000Z-contmec",
    started_at="2026-01-01T00:00:00Z",
    provider="netns",
    orchestrator="cni",
    seconds=Seconds(up=20, calibration=10, traffic=10, down=20),
    calibration=None,
    repetitions=[],
    faults=[],
)
REFERENCE = summary.read(CONTMEC_SUMMARY)


class World:
    """What runs do here instead of measuring: each takes a minute beyond its traffic, so it says."""

    def __init__(self, reports: Path) -> None:
        self.asked = StudyRequest(
            study="matrix",
            choices={"scenario": ("contmec",), "enforcement": ("none", "node", "pod", "bandwidth")},
            reports=str(reports),
        )
        self.console = io.StringIO()
        self.displays = partial(Display, Console(file=self.console, width=200))
        self.begun: list[str] = []  # what was run, by its last override
        self.resumed: list[str] = []
        self.visited: list[str] = []  # enforcements, of visits that make some of the repetitions
        self.before: Callable[[Recording], None] = lambda _recording: None

    @property
    def said(self) -> list[str]:
        return self.console.getvalue().splitlines()

    def run(
        self, request: Request, scenario: Scenario, _display: Display, study: Path, until: int | None
    ) -> Recording:
        self.begun.append(", ".join(request.overrides))
        recording = Recording.begin(study, scenario)
        recording.raw_directory.mkdir()
        recording.scenario_file.write_text(render_yaml(scenario))
        atomic.write_model(recording.request_file, request)
        beginning = Beginning(started_at="2026-01-01T00:00:00Z", provider="netns", orchestrator="cni")
        atomic.write_model(recording.beginning_file, beginning)
        return self.measure(recording, until)

    def resume(self, recording: Recording, _display: Display, advice: bool, until: int | None) -> Recording:
        assert not advice
        self.resumed.append(recording.run_id)
        return self.measure(recording, until)

    def measure(self, recording: Recording, until: int | None) -> Recording:
        self.before(recording)
        if until is not None:
            scenario = recording.asked_scenario()
            self.visited.append(scenario.kept_by)
            for number in range(len(recording.finished()), until):
                repetition = Repetition(transfers={}, cpu=[])
                made = Finished(repetition=repetition, seconds=10, calibration=None, notes=[])
                atomic.write_model(recording.finished_file(number), made)
            if until < scenario.measurement.repetitions:
                return recording
        atomic.write_model(recording.run_file, RUN)
        return recording

    def analyse(self, recording: Recording) -> Summary:
        seconds = SecondsSummary(up=20, calibration=10, traffic=10, down=20, analysis=10)
        result = REFERENCE.model_copy(update={"run_id": recording.run_id, "seconds": seconds})
        recording.summary_file.write_text(summary.render(result))
        return result


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    monkeypatch.setattr(experiment, "run", made.run)
    monkeypatch.setattr(experiment, "resume", made.resume)
    monkeypatch.setattr(pipeline, "analyse", made.analyse)
    monkeypatch.setattr(MatrixStudy, "figures", lambda *_: {})
    monkeypatch.setattr(MatrixStudy, "outputs", lambda *_: {"made.txt": b"of it"})
    return made


def recordings(study: Study, directory: Path) -> list[str | None]:
    return [row.recording for row in study.rows(directory)]


def only(reports: Path) -> Path:
    (directory,) = reports.iterdir()
    return directory


def stop_at(number: int, error: BaseException, world: World) -> None:
    """Let the run of this number fail."""

    def before(_recording: Recording) -> None:
        if len(world.begun) == number:
            raise error

    world.before = before


def test_the_index_is_there_first_and_after_each_case(world: World, tmp_path: Path) -> None:
    seen = []
    world.before = lambda recording: seen.append(recordings(MATRIX, recording.directory.parent))
    directory = loop.run(MATRIX, world.asked, world.displays)
    none, node, pod, bandwidth = recordings(MATRIX, directory)
    assert node is None
    assert seen == [[None] * 4, [none, None, None, None], [none, None, pod, None]]
    assert {none, pod, bandwidth} == {entry.name for entry in directory.iterdir() if entry.is_dir()}
    assert directory == only(tmp_path)
    assert directory.name.endswith("-matrix")
    assert (directory / "made.txt").read_bytes() == b"of it"
    assert find(directory.name, tmp_path) == (STUDIES["matrix"], directory)


def test_it_says_where_it_is_and_how_long_the_rest_takes(world: World) -> None:
    loop.run(MATRIX, world.asked, world.displays)
    # contmec's traffic takes 10 s; all of it took 70 s, once that is known. What does not apply is no case.
    assert world.said == [
        "contmec, none: case 1 of 3, about 30 s left",
        "contmec, pod: case 2 of 3, about 2 min left",
        "contmec, bandwidth: case 3 of 3, about 1 min left",
    ]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("no bridge"), LookupError("no plugin")])
def test_what_ends_early_says_how_to_go_on_and_does(
    error: BaseException, world: World, tmp_path: Path
) -> None:
    stop_at(2, error, world)
    with pytest.raises(type(error)):
        loop.run(MATRIX, world.asked, world.displays)
    directory = only(tmp_path)
    assert directory.name.endswith("-matrix.unfinished")
    assert world.said[-1] == (
        f"matrix: 1 of 3 cases are done; to go on: ./invokew matrix --resume {directory}"
    )
    first, _, _, _ = recordings(MATRIX, directory)
    kept = (directory / str(first) / "summary.json").stat().st_mtime_ns

    stop_at(0, error, world)
    (left,) = directory.glob("*.unfinished")
    finished = loop.resume(MATRIX, directory.name.removesuffix(".unfinished"), tmp_path, world.displays)
    assert world.begun == ["enforcement=none", "enforcement=pod", "enforcement=bandwidth"]
    assert world.resumed == [left.name.removesuffix(".unfinished")]
    assert recordings(MATRIX, finished)[0] == first
    assert recordings(MATRIX, finished)[2] == world.resumed[0]
    assert (finished / str(first) / "summary.json").stat().st_mtime_ns == kept
    assert finished == only(tmp_path)
    assert not list(finished.glob("*.unfinished"))
    # The rest of it is estimated by what was there before.
    assert "contmec, pod: case 2 of 3, about 2 min left" in world.said[-2]


def test_what_a_case_left_is_made_again_if_it_cannot_be_gone_on_with(world: World, tmp_path: Path) -> None:
    stop_at(2, KeyboardInterrupt(), world)
    with pytest.raises(KeyboardInterrupt):
        loop.run(MATRIX, world.asked, world.displays)
    stop_at(0, KeyboardInterrupt(), world)
    (left,) = only(tmp_path).glob("*.unfinished")
    Recording(left).beginning_file.write_text("{")
    loop.resume(MATRIX, str(only(tmp_path)), tmp_path, world.displays)
    assert world.resumed == []
    assert world.begun[1:] == ["enforcement=pod", "enforcement=pod", "enforcement=bandwidth"]


def test_a_recording_that_was_complete_but_for_its_place_in_the_index_is_kept(
    world: World, tmp_path: Path
) -> None:
    stop_at(2, KeyboardInterrupt(), world)
    with pytest.raises(KeyboardInterrupt):
        loop.run(MATRIX, world.asked, world.displays)
    stop_at(0, KeyboardInterrupt(), world)
    directory = only(tmp_path)
    (left,) = directory.glob("*.unfinished")
    complete = Recording(left).finish()
    atomic.write_model(complete.run_file, RUN)
    finished = loop.resume(MATRIX, str(directory), tmp_path, world.displays)
    assert recordings(MATRIX, finished)[2] == complete.run_id
    assert world.begun == ["enforcement=none", "enforcement=pod", "enforcement=bandwidth"]
    assert world.resumed == []


def test_a_study_may_keep_what_could_not_be_brought_up(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlacesStudy, "figures", lambda *_: {})
    monkeypatch.setattr(PlacesStudy, "outputs", lambda *_: {})
    places = PlacesStudy()
    asked = StudyRequest(study="places", choices={"place": ("bridge",)}, reports=str(tmp_path))
    stop_at(1, RuntimeError("tc: no such class"), world)
    directory = loop.run(places, asked, world.displays)
    assert [(row.place, row.reason) for row in places.rows(directory)] == [
        ("unshaped", "tc: no such class"),
        ("bridge", None),
    ]
    assert places.notes(directory) == ["not run: unshaped, none: tc: no such class"]
    assert not places.valid(directory)


def blocked(world: World, **choices: str) -> StudyRequest:
    """A matrix of three cells that apply, three times."""
    chosen = {name: (value,) for name, value in {"repetitions": "3", "seed": "7", **choices}.items()}
    return world.asked.model_copy(update={"choices": {**world.asked.choices, **chosen}})


def test_repetitions_are_made_in_blocks_of_every_cell(world: World) -> None:
    asked = blocked(world)
    directory = loop.run(MATRIX, asked, world.displays)
    made = atomic.read(directory / "matrix.json", Matrix)
    assert (made.repetitions, made.seed) == (3, 7)
    assert [sorted(block) for block in made.order] == [
        [("contmec", "bandwidth"), ("contmec", "none"), ("contmec", "pod")]
    ] * 3
    assert len({tuple(block) for block in made.order}) > 1
    assert world.visited == [enforcement for block in made.order for _, enforcement in block]
    # Each cell is one recording that grows; what does not apply has none.
    assert (len(world.begun), len(world.resumed)) == (3, 6)
    assert [len(Recording(directory / str(name)).finished()) if name else None
            for name in recordings(MATRIX, directory)] == [3, None, 3, 3]  # fmt: skip
    assert not list(directory.glob("*.unfinished"))
    assert world.said[0].endswith(": visit 1 of 9, about 2 min left")


def test_the_order_is_its_seeds(world: World) -> None:
    cases = MATRIX.cases(blocked(world))
    visits = MATRIX.visits(blocked(world), cases)
    assert [visit.until for visit in visits] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert visits == MATRIX.visits(blocked(world), cases)
    assert visits != MATRIX.visits(blocked(world, seed="8"), cases)


@pytest.mark.parametrize("stopped", range(1, 9))
@pytest.mark.long(one_in=4)
def test_interrupted_blocks_go_on_where_they_were(stopped: int, world: World, tmp_path: Path) -> None:
    visits = 0

    def interrupt(_recording: Recording) -> None:
        nonlocal visits
        visits += 1
        if visits == stopped:
            raise KeyboardInterrupt

    world.before = interrupt
    with pytest.raises(KeyboardInterrupt):
        loop.run(MATRIX, blocked(world), world.displays)
    planned = atomic.read(only(tmp_path) / "matrix.json", Matrix)
    finished = loop.resume(MATRIX, str(only(tmp_path)), tmp_path, world.displays)
    made = atomic.read(finished / "matrix.json", Matrix)
    assert world.visited == [enforcement for block in made.order for _, enforcement in block]
    assert made.order == planned.order
    assert not list(finished.glob("*.unfinished"))


def test_blocks_that_ended_before_the_last_analysis_are_completed(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_recording: Recording) -> Summary:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "analyse", fail)
    with pytest.raises(KeyboardInterrupt):
        loop.run(MATRIX, blocked(world), world.displays)
    monkeypatch.setattr(pipeline, "analyse", world.analyse)
    directory = loop.resume(MATRIX, str(only(tmp_path)), tmp_path, world.displays)
    assert len(world.visited) == 9
    assert [bool(name) for name in recordings(MATRIX, directory)] == [True, False, True, True]
    assert not list(directory.glob("*.unfinished"))


def test_clusters_of_real_kubernetes_make_all_their_repetitions_at_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "demand", lambda _provider, _orchestrator: assembly.OWN)
    asked = blocked(world).model_copy(update={"orchestrator": "kubernetes"})
    cases = MATRIX.cases(asked)
    visits = MATRIX.visits(asked, cases)
    assert sorted(visit.case for visit in visits) == [0, 2, 3]
    assert {visit.until for visit in visits} == {None}
    (block,) = MATRIX.whole_index(asked, cases, [case.row for case in cases]).order
    assert [enforcement for _, enforcement in block] == [
        cases[visit.case].row.enforcement for visit in visits
    ]


def test_once_is_as_it_was(world: World) -> None:
    asked = blocked(world, repetitions="1")
    assert next(case.request.overrides for case in MATRIX.cases(asked)) == ("enforcement=none",)
    directory = loop.run(MATRIX, asked, world.displays)
    made = atomic.read(directory / "matrix.json", Matrix)
    assert (made.repetitions, made.seed, made.order, world.visited) == (1, None, [], [])


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"repetitions": "0"}, "--repetitions: must be an integer from 1 to 1000, not '0'"),
        ({"seed": "-1"}, "--seed: must be an integer from 0 to 4294967295, not '-1'"),
    ],
)
def test_repetitions_and_seeds_are_numbers(
    choices: dict[str, str], words: str, world: World, tmp_path: Path
) -> None:
    with pytest.raises(LookupError, match=words):
        loop.run(MATRIX, blocked(world, **choices), world.displays)
    assert list(tmp_path.iterdir()) == []


def test_what_is_asked_for_wrongly_begins_nothing(world: World, tmp_path: Path) -> None:
    asked = world.asked.model_copy(update={"provider": "cloud"})
    with pytest.raises(LookupError, match="no provider 'cloud'"):
        loop.run(MATRIX, asked, world.displays)
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_gone_on_with_is_refused(world: World, tmp_path: Path) -> None:
    def resume(study: Study, name: str) -> None:
        loop.resume(study, name, tmp_path, world.displays)

    with pytest.raises(LookupError, match=r"--resume: no study 'nowhere' \(unfinished: none\)"):
        resume(MATRIX, "nowhere")
    stop_at(1, KeyboardInterrupt(), world)
    with pytest.raises(KeyboardInterrupt):
        loop.run(MATRIX, world.asked, world.displays)
    directory = only(tmp_path)
    with pytest.raises(LookupError, match=f"no study 'nowhere' .unfinished: {directory.name}."):
        resume(MATRIX, "nowhere")
    with pytest.raises(LookupError, match="is a study 'matrix', and not 'places'"):
        resume(PlacesStudy(), directory.name)
    with (directory / "request.json").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LookupError, match="is being worked on"):
            resume(MATRIX, directory.name)
    stop_at(0, KeyboardInterrupt(), world)
    finished = loop.resume(MATRIX, directory.name, tmp_path, world.displays)
    with pytest.raises(LookupError, match="is complete"):
        resume(MATRIX, finished.name)
    (finished / "request.json").unlink()
    with pytest.raises(LookupError, match="was begun by a version that cannot resume it"):
        resume(MATRIX, finished.name)


def test_studies_are_known_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert named("places").command == "places"
    with pytest.raises(LookupError, match=r"no study 'moon' \(studies: matrix, places, backends, "):
        named("moon")
    with pytest.raises(ValueError, match="there is a study 'matrix' already"):
        register(MatrixStudy())


def test_what_is_left_is_traffic_and_what_was_needed_beside_it() -> None:
    scenario = load(ROOT / "scenarios" / "contmec.yaml", ["measurement.repetitions=3"])
    assert traffic_s(scenario) == 30
    assert left_s([30, 30, 10], [None, None, None], 0) == 70
    assert left_s([30, 30, 10], [40, None, None], 1) == 20 + 30 + 10 + 0
    assert left_s([30, 30, 10, 10], [40, None, 16, None], 1) == 38 + 18


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "about 5 s"),
        (42, "about 40 s"),
        (59, "about 60 s"),
        (80, "about 1 min"),
        (240, "about 4 min"),
        (3600, "about 1 h"),
        (7900, "about 2 h 10 min"),
    ],
)
def test_times_are_said_as_people_estimate_them(seconds: float, words: str) -> None:
    assert estimate(seconds) == words
