import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bench.cli.verbs import experiments
from bench.recording import atomic
from bench.recording.directory import Recording, find
from bench.recording.records import slug
from bench.recording.requests import scenario_file
from testbed.scenario import load, render_yaml
from testbed.scenario.found import Found
from tests.paths import ROOT

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
    taken: set[str] = set()
    assert slug("(1) A-1 -> A-4", taken) == "1-a-1-a-4"
    assert slug("[1] A-1 => A-4", taken) == "1-a-1-a-4-2"
    assert slug("../../x", taken) == "x"
    assert slug("…", taken) == "transfer"


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
