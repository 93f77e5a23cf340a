"""Files from outside that add parts: they are imported by the command line, and the parts then count."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import pipeline
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies import known as studies
from bench.studies.study import Study
from testbed import registry
from testbed.scenario import load, render_yaml
from tests import verbs
from tests.paths import ROOT

EXAMPLES = ROOT / "docs" / "examples"
Extend = Callable[..., None]


@pytest.fixture
def extend(own_parts: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Extend]:
    """Return what imports files as the command line does; what they add is gone after the test."""
    modules = set(sys.modules)

    def extend(*files: Path) -> None:
        monkeypatch.setenv(registry.VARIABLE, ":".join(map(str, files)))
        registry.load()

    yield extend
    for name in set(sys.modules) - modules:
        if name.startswith("concorde_extension:"):
            del sys.modules[name]


def test_a_figure_from_outside_is_drawn_as_the_scenario_sets_it_and_shown(
    recorded: Callable[[str], Recording], extend: Extend
) -> None:
    extend(EXAMPLES / "share_figure.py")
    recording = recorded("held")
    scenario = load(recording.scenario_file, ["settings.figure.share.height=4"])
    recording.scenario_file.write_text(render_yaml(scenario))
    pipeline.analyse(recording)
    assert b' height="288pt" ' in (recording.figures_directory / "share.svg").read_bytes()
    starts = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}
    for name in ("throughput", "share"):
        for kind, start in starts.items():
            assert (recording.figures_directory / f"{name}.{kind}").read_bytes().startswith(start)
    page = recording.report_file.read_text(encoding="utf-8")
    assert page.count('src="data:image/png;base64,') == page.count("<figcaption>") == 2
    assert "Empirical distribution of every sample" in page


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("rate", [12.5, 812.0])
def test_an_observation_from_outside_is_told_shown_and_judged(
    recorded: Callable[[str], Recording], extend: Extend, rate: float
) -> None:
    recording = recorded("held")
    without = pipeline.summarise(recording)
    extend(EXAMPLES / "forks_observation.py")
    assert pipeline.summarise(recording) == without
    record = recording.run_record()
    found = {"forks": {"forks": 100, "per_second": rate}}
    record.repetitions[0].observed.update(found)
    atomic.write_model(recording.run_file, record)
    summary = pipeline.analyse(recording)
    assert summary.machine[0].observed == found
    assert json.loads(recording.summary_file.read_text())["machine"][0]["observed"] == found
    page = recording.report_file.read_text(encoding="utf-8")
    assert "programs that began on this machine, a second; TCP segments sent again" in page
    assert page.count("<th>forks/s</th>") == 1
    assert f"<td>{rate:g}</td>" in page
    words = "repetition-0: 812 programs a second began here (at most 500)"
    (verdict, reasons) = (without.verdict, without.reasons) if rate < 500 else ("invalid", [words])
    assert (summary.verdict, summary.reasons) == (verdict, reasons)
    assert (words in page) == (rate > 500)
    scenario = load(recording.scenario_file, ["settings.observation.forks.most=5"])
    recording.scenario_file.write_text(render_yaml(scenario))
    assert pipeline.summarise(recording).reasons == [
        f"repetition-0: {rate:g} programs a second began here (at most 5)"
    ]


def test_a_study_from_outside_is_known_by_its_name(extend: Extend) -> None:
    with pytest.raises(LookupError, match="no study 'length'"):
        studies.named("length")
    extend(EXAMPLES / "length_study.py")
    study = studies.named("length")
    assert study.command == "study length"
    assert _mtus(study, StudyRequest(study="length", scale=0.1)) == [1500, 9000]
    typed = ("settings.study.length.mtus=[1500, 4000]",)
    assert _mtus(study, StudyRequest(study="length", overrides=typed)) == [1500, 4000]


def test_a_scenario_sets_a_study_from_outside(extend: Extend, tmp_path: Path) -> None:
    extend(EXAMPLES / "length_study.py")
    study, file = studies.named("length"), tmp_path / "mine.yaml"
    shipped = (ROOT / "scenarios" / "kubernetes.yaml").read_text()
    file.write_text(f"{shipped}settings: {{study: {{length: {{mtus: [2000]}}}}}}\n")
    asked = StudyRequest(study="length", choices={"scenario": (str(file),)})
    assert _mtus(study, asked) == [2000]
    (case,) = study.cases(asked)
    assert case.scenario
    assert "    length:\n      mtus:\n      - 2000\n" in render_yaml(case.scenario)


def _mtus(study: Study, asked: StudyRequest) -> list[int]:
    return [case.scenario.underlay.mtu for case in study.cases(asked) if case.scenario]


@pytest.mark.parametrize(
    ("example", "path"),
    [
        ("pinned_provider", "provider.pinned.processors=1"),
        ("token_bucket_enforcement", "enforcement.token-bucket.burst=131072"),
        ("routed_network", "backend.routed.metric=0"),
        ("exchange_generator", "generator.exchange.pause=0.002"),
        ("share_figure", "figure.share.height=2.8"),
        ("length_study", "study.length.mtus=[1500, 9000]"),
        ("forks_observation", "observation.forks.most=500.0"),
    ],
)
def test_help_completion_and_scenarios_know_what_each_example_sets(example: str, path: str) -> None:
    env = {"CONCORDE_EXTENSIONS": str(EXAMPLES / f"{example}.py")}
    name, _, default = f"settings.{path}".partition("=")
    page = verbs.run("bench", "--help", env=env).stdout
    assert f"\n  {name} " in page
    assert f"(default: {default})" in " ".join(page.split())
    wrong = verbs.run("bench", "contmec", "--dry", "--set", f"{name}s=1", env=env)
    field = name.rpartition(".")[2]
    words = f"scenarios/contmec.yaml: {name}s: no such field (did you mean {field!r}?)\n"
    assert (wrong.returncode, wrong.stderr) == (2, words)
    assert verbs.run("bench", "contmec", "--dry", "--set", f"{name}={default}", env=env).returncode == 0


def test_help_says_which_file_cannot_be_imported() -> None:
    done = verbs.run("bench", "--help", env={"CONCORDE_EXTENSIONS": "/no/such.py"})
    assert done.returncode == 2
    assert done.stderr.startswith("CONCORDE_EXTENSIONS: /no/such.py: FileNotFoundError")


def test_a_file_is_imported_once(extend: Extend, tmp_path: Path) -> None:
    file = tmp_path / "one.py"
    file.write_text("with open(__file__ + '.log', 'a') as log:\n    log.write('.')\n")
    extend(file, file)
    extend(file)
    assert (tmp_path / "one.py.log").read_text() == "."


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "No such file or directory"),
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
        ("def", "SyntaxError: invalid syntax"),
        ("from bench.studies.known import register, named; register(named('matrix'))", "a study 'matrix'"),
    ],
)
def test_what_cannot_be_imported_is_bad_input(
    content: str | None, words: str, extend: Extend, tmp_path: Path
) -> None:
    file = tmp_path / "part.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(LookupError) as caught:
        extend(file)
    assert str(caught.value).startswith(f"CONCORDE_EXTENSIONS: {file}: ")
    assert words in str(caught.value)


def test_what_is_no_module_of_python_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    done = verbs.run("status", env={"CONCORDE_EXTENSIONS": str(tmp_path / "notes.txt")})
    assert done.returncode == 2
    assert done.stderr == f"CONCORDE_EXTENSIONS: {tmp_path}/notes.txt: not a file of Python\n"
