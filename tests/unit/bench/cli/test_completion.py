from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from bench.cli import completion
from bench.console import values
from bench.recording import requests
from bench.studies.known import STUDIES
from testbed.assembly import EXISTING, PROVIDERS
from testbed.providers.netns import processes
from testbed.scenario.networks import KINDS
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("typed", "become"),
    [
        (["benc"], ["bench"]),
        (["--dr"], ["--dry"]),
        (["bench", "--scen"], ["--scenario"]),
        (["bench", "parti"], ["partial-overlap"]),
        (["bench", "--json", "parti"], ["partial-overlap"]),
        (["bench", "--enforcement", "ptp-b"], ["ptp-bandwidth"]),
        (["bench", "-e", "ptp-b"], ["ptp-bandwidth"]),
        (["bench", "--enforcement=ptp-b"], ["--enforcement=ptp-bandwidth"]),
        (["bench", "--enforcement", "=", "ptp-b"], ["ptp-bandwidth"]),  # bash's way with "="
        (["bench", "--orchestrator", "k"], ["kubernetes"]),
        (["promise", "--profile", "l"], ["latency"]),
        (["places", "ph"], ["physical"]),
        (["backends", "ip"], ["ipip"]),
        (["study", "mat"], ["matrix"]),
        (["study", "matrix", "mat"], []),
        (["completion", "z"], ["zsh"]),
        (["new", "--from", "lat"], ["latency"]),
        (["new", "lat"], []),
        (["bench", "--set", "x"], []),
        (["figures", "reports/reference/cont"], ["reports/reference/contmec"]),
    ],
)
def test_a_line_may_become(typed: list[str], become: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert completion.completions(typed) == become


def test_shipped_parts_are_those_of_the_registries() -> None:
    assert values.studies() == sorted(STUDIES)
    assert values.backends() == list(KINDS)
    assert values.providers() == [name for name in PROVIDERS if name != EXISTING]
    known = (orchestrator for kind in PROVIDERS.values() for orchestrator in kind.orchestrators)
    assert values.orchestrators() == list(dict.fromkeys(known))


@pytest.mark.parametrize(
    ("typed", "become"),
    [
        (["bench", "--provider", "p"], ["pinned"]),
        (["bench", "--enforcement", "tok"], ["token-bucket"]),
        (["promise", "tok"], ["token-bucket"]),
        (["study", "l"], ["length"]),
        (["bench", "--set", "settings.provider"], ["settings.provider.pinned.processors"]),
        (["bench", "--set", "settings.s"], ["settings.study.length.mtus"]),
    ],
)
@pytest.mark.long(one_in=3)
def test_parts_from_outside_are_completed_with_their_settings(
    typed: list[str], become: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("pinned_provider", "token_bucket_enforcement", "length_study")
    files = [str(ROOT / "docs" / "examples" / f"{name}.py") for name in names]
    monkeypatch.setenv("CONCORDE_EXTENSIONS", ":".join(files))
    assert completion.completions(typed) == become


def test_a_file_that_cannot_be_imported_brings_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCORDE_EXTENSIONS", "/no/such.py")
    assert completion.completions(["study", "pl"]) == ["places"]


def test_every_scenario_that_it_names_is_found() -> None:
    assert {"contmec", "partial-overlap"} <= set(values.scenarios())
    for name in values.scenarios():
        assert requests.scenario_file(name)


def test_runs_are_the_last_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "20260101T000000Z-a-pod",
        "20260102T000000Z-b-pod",
        "other",
        "20260103T000000Z-c.unfinished",
    ):
        (tmp_path / "reports" / name).mkdir(parents=True)
    assert completion.completions(["figures", "2026"])[:2] == [
        "20260102T000000Z-b-pod",
        "20260101T000000Z-a-pod",
    ]
    assert completion.completions(["bench", "--resume", ""]) == ["20260103T000000Z-c.unfinished"]


def test_a_testbed_s_places_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    state = {"places": {"A-1": {"kind": "pod"}, "worker-01": {"kind": "node"}}, "clusters": {"a": {}}}
    monkeypatch.setattr(values, "testbeds", lambda: {"mine": json.loads(json.dumps(state))})
    assert completion.completions(["exec", ""]) == ["A-1", "worker-01"]
    assert completion.completions(["ssh", ""]) == ["worker-01"]
    assert completion.completions(["iperf", ""]) == completion.completions(["iperf", "A-1", ""]) == ["A-1"]
    assert completion.completions(["kubeconfig", ""]) == ["a"]
    assert completion.completions(["down", "--name", "m"]) == ["mine"]


def test_testbeds_are_found_where_they_are_kept() -> None:
    assert str(processes.INIT).endswith(values.FIRST_PROCESS)
    assert processes.STATE == values.STATE


def test_a_whole_line_is_taken_apart(capsys: pytest.CaptureFixture[str]) -> None:
    completion.main(["--complete", "--", "invoke bench --scen"])
    assert capsys.readouterr().out == "--scenario\n"
    completion.main(["--complete", "--", "invoke bench 'unfinished"])
    assert capsys.readouterr().out == "\n"


def test_it_imports_nothing_that_takes_long() -> None:
    """Isolated and without packages, as ./invokew starts it."""
    script = str(Path(completion.__file__))
    lines = f"import runpy, sys; runpy.run_path({script!r}, run_name='__main__'); print(*sys.modules)"
    asked = [sys.executable, "-I", "-S", "-c", lines, "--complete", "--", "invokew", "bench", "--sca"]
    done = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("--scale\n")
    assert not {"ast", "dataclasses", "inspect", "pathlib", "invoke"} & set(done.stdout.split())
