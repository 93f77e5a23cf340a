import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from bench import pipeline
from bench.cli.verbs import experiments
from bench.console import asked
from bench.recording import archive, atomic, directory
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording, digests, faults, find, is_recording
from bench.recording.records import Beginning, Finished, slugs
from bench.recording.requests import scenario_file
from testbed.scenario import ScenarioError, load, render_yaml
from testbed.scenario.addressing import Found
from tests import cases, verbs
from tests.paths import ROOT
from tests.unit.bench.builders import DATA

SCENARIO = load(ROOT / "scenarios" / "contmec.yaml")
NOW = datetime(2022, 3, 10, 12, 0, 0, tzinfo=UTC)


def test_an_unfinished_recording_is_known_by_its_name(tmp_path: Path) -> None:
    recording = Recording.begin(tmp_path, SCENARIO, NOW)
    assert recording.directory.name == "20220310T120000Z-contmec-pod.unfinished"
    assert recording.run_id == "20220310T120000Z-contmec-pod"
    final = recording.finish()
    assert final.directory.name == recording.run_id
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [recording.run_id, "latest"]


def test_two_recordings_of_one_second_have_two_names(tmp_path: Path) -> None:
    first = Recording.begin(tmp_path, SCENARIO, NOW)
    second = Recording.begin(tmp_path, SCENARIO, NOW)
    third = (first.finish(), Recording.begin(tmp_path, SCENARIO, NOW))[1]
    assert len({first.run_id, second.run_id, third.run_id}) == 3


def test_a_scenario_is_read_back_with_what_its_nodes_turned_out_to_have(tmp_path: Path) -> None:
    recording = Recording.begin(tmp_path, SCENARIO, NOW)
    recording.raw_directory.mkdir()
    atomic.write(recording.scenario_file, render_yaml(SCENARIO).encode())
    assert recording.scenario() == SCENARIO  # the testbed has made them
    found = Found(uplinks={"worker-01": "ens5"}, names={"worker-01": "ip-7"}, mtu=9000)
    atomic.write_model(recording.found_file, found)
    assert recording.scenario() == found.applied(SCENARIO)
    assert recording.scenario().underlay.mtu == 9000
    assert recording.asked_scenario() == SCENARIO


@pytest.mark.parametrize("text", ["", "{", '{"mtu": "large"}', '{"routes": {}}'])
def test_what_was_found_is_read_as_it_was_written_or_not_at_all(text: str, tmp_path: Path) -> None:
    recording = Recording.begin(tmp_path, SCENARIO, NOW)
    recording.raw_directory.mkdir()
    atomic.write(recording.scenario_file, render_yaml(SCENARIO).encode())
    recording.found_file.write_text(text)
    with pytest.raises(atomic.StoredError, match=f"^{recording.found_file}: "):
        recording.scenario()


def test_slugs_are_file_names_and_differ() -> None:
    labels = {
        "(1) A-1 -> A-4": "1-a-1-a-4",
        "[1] A-1 => A-4": "1-a-1-a-4-2",
        "../../x": "x",
        "…": "transfer",
    }
    assert slugs(labels) == labels


def test_a_recording_is_found_by_path_or_run_id(tmp_path: Path) -> None:
    recording = Recording.begin(tmp_path, SCENARIO, NOW)
    recording.scenario_file.write_text("name: x\n")
    final = recording.finish()
    assert find(final.run_id, tmp_path).directory == final.directory
    assert find(str(final.directory), Path("elsewhere")).directory == final.directory
    with pytest.raises(LookupError, match=f"no recording 'other' .recordings: {final.run_id}"):
        find("other", tmp_path)
    with pytest.raises(LookupError, match="none yet"):
        find("other", tmp_path / "absent")


@pytest.mark.parametrize("kept", ["a-matrix/{run}", "reference/matrix/{run}", "kept", "reference/kept"])
def test_a_run_id_finds_its_recording_wherever_it_is_kept(kept: str, tmp_path: Path) -> None:
    run = Recording.begin(tmp_path, SCENARIO, NOW).finish().run_id
    (tmp_path / run).rmdir()
    other, directory = tmp_path / "other", tmp_path / kept.format(run=run)
    for each, name in ((other, "another-run"), (directory, run)):
        (each / "raw").mkdir(parents=True)
        (each / "summary.json").write_text(json.dumps({"run_id": name}))
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "summary.json").write_text("[")
    assert find(run, tmp_path).directory == directory
    assert scenario_file(run, tmp_path) == directory / "scenario.yaml"


@pytest.mark.parametrize("name", ["..", "*", "", "x" * 5000, "a/b/c", "\x1b[31m", "."])
def test_what_is_no_name_of_a_recording_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # what lies beside this project is nobody's business
    for search in (lambda: find(name, tmp_path), lambda: experiments.draw_figures(name, tmp_path, {})):
        with pytest.raises(LookupError, match="no recording"):
            search()
    with pytest.raises(LookupError, match="no scenario"):
        scenario_file(name)


HELD = DATA / "held"
FILES = sorted(str(file.relative_to(HELD)) for file in HELD.rglob("*") if file.is_file())
OTHER_JSON = ("[]", "{}", "null", "1", '"x"', '{"x": 1}', "[" * 100_000)
MOST_SECONDS = 20
CUTS = cases.count("CONCORDE_CUTS", 12, 100)


def sealed(directory: Path) -> Recording:
    """Give a recording what a run leaves today: how it was begun, and the digests of its files."""
    recording = Recording(directory)
    record = recording.run_record()
    beginning = Beginning(started_at=record.started_at, provider="netns", orchestrator="cni")
    atomic.write_model(recording.beginning_file, beginning)
    record.files = digests(recording)
    atomic.write_model(recording.run_file, record)
    return recording


def random_bytes(length: int) -> bytes:
    return bytes(number * number * 7919 % 251 for number in range(1, length))


def replace(file: Path, content: bytes) -> None:
    file.unlink()
    file.write_bytes(content)


def made_into(text: str) -> Callable[[Path], None]:
    return lambda file: replace(file, text.encode())


def make_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def make_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def make_link(target: str) -> Callable[[Path], None]:
    def link(file: Path) -> None:
        file.unlink()
        file.symlink_to(target)

    return link


def cut(share: float) -> Callable[[Path], None]:
    def shorten(file: Path) -> None:
        content = file.read_bytes()
        # White space at its end says nothing.
        replace(file, content[: int(len(content.rstrip()[:-1]) * share)])

    return shorten


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    **{f"cut at {share}": cut(share) for share in (0, 0.001, 0.3, 0.5, 0.9, 1)},
    "a directory": make_directory,
    "a FIFO": make_fifo,
    "a link to nothing": make_link("nothing"),
    "a link without end": make_link("/dev/zero"),
    **{f"other JSON: {text[:8]}": made_into(text) for text in OTHER_JSON},
    "random": lambda file: replace(file, random_bytes(file.stat().st_size)),
    "zeros": lambda file: replace(file, bytes(file.stat().st_size)),
    "another encoding": lambda file: replace(file, file.read_text(encoding="utf-8").encode("utf-16")),
}  # fmt: skip


@pytest.fixture
def quick(undrawn: None) -> Iterator[None]:
    """Wait for nothing for ever."""

    def late(*_: object) -> None:
        pytest.fail(f"it took more than {MOST_SECONDS} s")

    former = signal.signal(signal.SIGALRM, late)
    signal.alarm(MOST_SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, former)


def refused_or_invalid(recording: Recording, path: str) -> bool:
    """Tell whether ``figures`` refuses it or calls it invalid, and names the file."""
    try:
        status = experiments.draw_figures(str(recording.directory), Path("reports"), {})
    except (ScenarioError, StoredError) as error:
        return str(error).startswith(f"{recording.directory / path}: ")
    summary = atomic.read_json(recording.summary_file)
    # An old scenario that was cut may differ from what was done in what it says only.
    name = path if recording.run_record().files else Path(path).name
    return status == 3 and any(name in reason for reason in summary["reasons"])


@pytest.mark.usefixtures("quick")
@pytest.mark.long(one_in=60)
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("path", FILES)
@pytest.mark.parametrize("of", ["now", "before"])
def test_a_file_that_is_damaged_is_named(of: str, path: str, damage: str, tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    recording = sealed(directory) if of == "now" else Recording(directory)
    DAMAGES[damage](directory / path)
    assert refused_or_invalid(recording, path)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "damage", ["missing", "cut at 0.5", "a directory", "other JSON: []", "other JSON: {}"]
)
def test_what_was_found_of_machines_is_missed_too(damage: str, tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    recording = Recording(directory)
    atomic.write_model(recording.found_file, Found(uplinks={"worker-01": "ens5"}))
    sealed(directory)
    assert faults(recording, recording.run_record()) == []
    DAMAGES[damage](recording.found_file)
    assert refused_or_invalid(recording, "raw/found.json")


@pytest.mark.usefixtures("quick")
@pytest.mark.long
@pytest.mark.parametrize("of", ["now", "before"])
def test_a_scenario_is_never_taken_for_another(of: str, tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    recording = sealed(directory) if of == "now" else Recording(directory)
    content = recording.scenario_file.read_bytes()
    ends = {at for at, byte in enumerate(content) if byte == ord("\n")} | set(
        range(len(content) - 30, len(content))
    )
    for end in Random(cases.seed()).sample(sorted(ends), min(CUTS, len(ends))):
        recording.scenario_file.write_bytes(content[:end])
        assert refused_or_invalid(recording, "scenario.yaml"), content[:end][-40:]


@pytest.mark.usefixtures("quick")
def test_files_that_nothing_is_made_of_are_missed_too(tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    recording = sealed(directory)
    assert faults(recording, recording.run_record()) == []
    recording.beginning_file.unlink()
    assert refused_or_invalid(recording, "raw/beginning.json")


@pytest.mark.usefixtures("quick")
@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("path", FILES)
def test_a_file_that_may_not_be_read_is_named(path: str, tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    (directory / path).chmod(0)
    assert refused_or_invalid(Recording(directory), path)


@pytest.mark.parametrize("path", ["scenario.yaml", "raw/beginning.json", "raw/repetition-0/finished.json"])
@pytest.mark.parametrize("damage", ["cut at 0.5", "a directory", "a FIFO", "other JSON: []"])
def test_nothing_is_started_to_go_on_with_what_is_damaged(path: str, damage: str, tmp_path: Path) -> None:
    directory = tmp_path / "held.unfinished"
    shutil.copytree(HELD, directory)
    recording = sealed(directory)
    record = recording.run_record()
    done = Finished(repetition=record.repetitions[0], seconds=1, calibration=None, faults=[], notes=[])
    atomic.write_model(recording.finished_file(0), done)
    DAMAGES[damage](directory / path)
    with pytest.raises((ScenarioError, StoredError), match=f"^{directory / path}: "):
        experiments.resume_bench(str(directory), Path("reports"))


def figures_of(recording: Path, *arguments: str) -> tuple[int, str]:
    done = verbs.run(*(arguments or ("figures", str(recording))))
    assert "Traceback" not in done.stdout + done.stderr
    return done.returncode, done.stdout + done.stderr


def test_half_a_record_is_bad_input(tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    cut(0.5)(directory / "raw" / "run.json")
    status, words = figures_of(directory)
    assert status == 2
    assert f"{directory}/raw/run.json: Invalid JSON" in words


def test_half_a_beginning_is_bad_input(tmp_path: Path) -> None:
    directory = tmp_path / "held.unfinished"
    shutil.copytree(HELD, directory)
    recording = sealed(directory)
    cut(0.5)(recording.beginning_file)
    status, words = figures_of(directory, "bench", "--resume", str(directory))
    assert status == 2
    assert f"{directory}/raw/beginning.json: Invalid JSON" in words


def test_without_its_environment_a_run_is_invalid(tmp_path: Path) -> None:
    directory = tmp_path / "held"
    shutil.copytree(HELD, directory)
    (directory / "environment.json").unlink()
    status, words = figures_of(directory)
    assert status == 3
    assert "environment.json: No such file or directory" in words


def test_what_found_no_room_after_its_traffic_is_analysed_when_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "20260101T000000Z-held-pod.unfinished"
    shutil.copytree(HELD, directory)
    sealed(directory)
    analyse = pipeline.analyse

    def full(_recording: Recording) -> None:
        raise OSError(28, "No space left on device", str(directory / "samples.parquet"))

    monkeypatch.setattr(pipeline, "analyse", full)
    with pytest.raises(OSError, match="No space left on device"):
        experiments.resume_bench(str(directory), tmp_path)
    assert f"./invokew bench --resume {directory}\n" in capsys.readouterr().out
    monkeypatch.setattr(pipeline, "analyse", analyse)
    judged = experiments.resume_bench(str(directory), tmp_path)
    assert judged.summary.verdict == "held"
    assert judged.recording.directory == directory.with_name("20260101T000000Z-held-pod")


RUN = "20220310T120000Z-contmec-pod"


def finished(reports: Path, hour: int = 12) -> Recording:
    recording = Recording.begin(reports, SCENARIO, datetime(2022, 3, 10, hour, tzinfo=UTC))
    shutil.copytree(DATA / "held", recording.directory, dirs_exist_ok=True)
    return recording.finish()


def test_it_is_a_relative_link_to_what_was_completed_last(tmp_path: Path) -> None:
    late = Recording.begin(tmp_path, SCENARIO, datetime(2022, 3, 10, 11, tzinfo=UTC))
    assert not os.path.lexists(tmp_path / "latest")
    finished(tmp_path)
    assert str((tmp_path / "latest").readlink()) == RUN
    late.finish()
    assert str((tmp_path / "latest").readlink()) == late.run_id


def test_it_is_found_by_its_name_under_its_own(tmp_path: Path) -> None:
    recording = finished(tmp_path)
    assert find("latest", tmp_path).directory == recording.directory
    assert find(str(tmp_path / "latest"), Path("elsewhere")).directory == recording.directory
    options = asked.Options(set_=[], scale=1.0, provider="netns", orchestrator="cni", reports=str(tmp_path))
    assert asked.request("latest", (), **options).scenario == RUN
    shutil.rmtree(recording.directory)
    with pytest.raises(LookupError, match=r"no recording 'latest' \(recordings: none yet\)"):
        find("latest", tmp_path)


def test_it_is_counted_by_nobody(tmp_path: Path) -> None:
    recording = finished(tmp_path)
    (tmp_path / ".latest.0123456789abcdef").symlink_to(RUN)  # of a run that was killed just then
    assert [each.directory for each in archive.recordings(tmp_path)] == [recording.directory]
    with pytest.raises(LookupError, match=rf"no recording 'other' \(recordings: {RUN}\)"):
        find("other", tmp_path)


def make_link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


@pytest.mark.parametrize(
    "make",
    [Path.mkdir, Path.touch, make_link_to("/dev/null"), make_link_to("mine"), make_link_to(f"../old/{RUN}")],
)
def test_what_somebody_else_made_stays(make: Callable[[Path], None], tmp_path: Path) -> None:
    link = tmp_path / "latest"
    make(link)
    before = link.lstat()
    recording = finished(tmp_path)
    after = link.lstat()
    for field in ("st_ino", "st_mode", "st_mtime_ns", "st_ctime_ns"):  # when somebody looked at it may differ
        assert getattr(after, field) == getattr(before, field)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [RUN, "latest"]
    assert is_recording(recording.directory)


def test_many_at_once_leave_one_whole_link(tmp_path: Path) -> None:
    runs = [tmp_path / f"20220310T1200{number:02}Z-contmec-pod" for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(directory.point_latest_to, runs))
    assert [entry.name for entry in tmp_path.iterdir()] == ["latest"]
    assert tmp_path / (tmp_path / "latest").readlink() in runs


def test_where_no_link_can_be_made_the_recording_is_complete_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "symlink_to", fail)
    assert finished(tmp_path).run_id == RUN
