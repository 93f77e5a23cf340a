"""Comparing enforcements, from the committed recordings: no privileges, no traffic."""

import io
import json
import shutil
from pathlib import Path

import pytest
from matplotlib.lines import Line2D
from rich.console import Console

from bench.analysis.summary import Summary
from bench.cli.verbs import experiments
from bench.console import documents
from bench.console.asked import Options
from bench.console.documents import Document
from bench.pipeline import analyse
from bench.presentation.figures.labels import shortened
from bench.presentation.figures.sheet import PRESETS, Sheet
from bench.presentation.figures.style import looks
from bench.recording import archive, atomic
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording
from bench.recording.records import StudyRequest
from bench.studies import loop, verb
from bench.studies.matrix import figure, index, page
from bench.studies.matrix.index import Matrix, MatrixCase
from bench.studies.matrix.study import MatrixStudy
from bench.studies.study import REQUEST
from testbed.scenario import ScenarioError, load
from testbed.scenario.enforcements import shall_hold
from tests.paths import ROOT
from tests.unit.bench.presentation.figures import looked_at
from tests.unit.bench.presentation.figures.looked_at import drawn

STUDY = MatrixStudy()


def asked(*enforcements: str, overrides: tuple[str, ...] = (), scale: float = 1.0) -> StudyRequest:
    """What is asked for of a matrix of one scenario."""
    choices = {"scenario": ("contmec",), "enforcement": enforcements}
    return StudyRequest(study="matrix", choices=choices, overrides=overrides, scale=scale)


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's two experiments, of one repetition, unpacked and analysed."""
    made = tmp_path_factory.mktemp("analysed")
    for name in ("contmec", "kubernetes"):
        unpacked = archive.unpack(ROOT / "reports" / "reference" / f"machines-{name}", made)
        analyse(Recording(unpacked.rename(made / name)))
    return made


@pytest.fixture
def directory(analysed: Path, tmp_path: Path) -> Path:
    """A matrix of two recordings and a cell that does not apply."""
    shutil.copytree(analysed, tmp_path, dirs_exist_ok=True)
    cells = [
        MatrixCase(scenario="contmec", enforcement="pod", recording="contmec"),
        MatrixCase(
            scenario="contmec", enforcement="node", recording=None, reason="underlay.rate <is> missing"
        ),
        MatrixCase(scenario="kubernetes", enforcement="pod", recording="kubernetes"),
        MatrixCase(scenario="kubernetes", enforcement="node", recording=None, reason="likewise"),
    ]
    (tmp_path / index.INDEX).write_text(Matrix(rows=cells).model_dump_json())
    return tmp_path


def test_a_plan_keeps_what_does_not_apply_and_why() -> None:
    pod, node = STUDY.cases(asked("pod", "node", scale=0.1))
    assert (pod.row.enforcement, pod.row.reason) == ("pod", None)
    assert pod.scenario is not None
    assert pod.scenario.pods["A-1"].guarantee == 10**8
    assert pod.request.overrides == ("enforcement=pod",)
    assert node.scenario is None
    assert node.row.reason is not None
    assert "underlay.rate: enforcement node shares out" in node.row.reason


def test_a_plan_with_a_fault_of_its_own_is_refused() -> None:
    with pytest.raises(ScenarioError, match="no pod 'A-9'"):
        STUDY.cases(asked("pod", overrides=("flows[0].to=A-9",)))
    with pytest.raises(LookupError, match="enforcement: input should be"):
        STUDY.cases(asked("hope"))


@pytest.mark.long(one_in=0)
def test_figure_and_page_are_functions_of_the_recordings(directory: Path) -> None:
    made = ["figures/matrix.svg", "figures/matrix.pdf", "figures/matrix.png", "matrix.html"]
    STUDY.analyse(directory)
    first = {name: (directory / name).read_bytes() for name in made}
    STUDY.analyse(directory)
    assert {name: (directory / name).read_bytes() for name in made} == first


@pytest.mark.parametrize("sheet", [PRESETS["page"], PRESETS["column"]], ids=["page", "column"])
@pytest.mark.long(one_in=2)
def test_lines_have_the_colours_of_their_key_and_nothing_is_cut_off(directory: Path, sheet: Sheet) -> None:
    matrix, summaries = index.read(directory)
    runs = figure.read(directory, matrix, summaries)
    with drawn(lambda: figure.draw(matrix, runs, sheet), sheet) as made:
        pairs = [
            (text.get_text().split(":")[0], handle)
            for key in made.legends
            for text, handle in zip(key.get_texts(), key.legend_handles, strict=True)
        ]
        named = {name: handle.get_color() for name, handle in pairs if isinstance(handle, Line2D)}
        for run in runs.values():
            looked = looks(run.scenario)
            for flow in run.guaranteed:
                assert named[shortened(flow.name)] == looked[flow.name].colour
        assert {name for name, _ in runs} <= looked_at.texts(made).keys()
        assert looked_at.small(made, sheet) == []
        assert looked_at.outside(made) == []
        assert looked_at.beyond_axes(made) == []
        assert looked_at.covered(made) == []


def test_the_page_compares_and_links(directory: Path) -> None:
    STUDY.analyse(directory)
    page = (directory / "matrix.html").read_text()
    assert 'href="contmec/report.html"' in page
    assert "(3) B-1 -&gt; B-2" in page
    assert "underlay.rate &lt;is&gt; missing" in page
    assert "<is>" not in page
    assert "://" not in page


def test_the_page_shows_a_miss_by_the_repetition_that_missed(directory: Path) -> None:
    matrix, summaries = index.read(directory)
    flow, *others = summaries["contmec", "pod"].flows
    quiet, disturbed = flow.phases.values()
    (one,) = disturbed.repetitions
    missed = one.model_copy(update={"repetition": 2, "met": False, "mean_bps": one.mean_bps * 0.9})
    worse = disturbed.model_copy(update={"met": False, "repetitions": [one, missed]})
    flows = [flow.model_copy(update={"phases": {"quiet": quiet, "disturbed": worse}}), *others]
    summaries["contmec", "pod"] = summaries["contmec", "pod"].model_copy(update={"flows": flows})
    shown = (ROOT / "reports" / "reference" / "contmec" / "throughput.png").read_bytes()
    made = page.render(directory, matrix, summaries, shown)
    assert '<span class="missed">90\xa0% in rep. 2 ✗</span>' in made
    assert made.count(" in rep. ") == 1


def printed(matrix: Matrix, summaries: dict[tuple[str, str], Summary]) -> str:
    """Return the table of contmec as a terminal of 80 columns shows it."""
    file = io.StringIO()
    Console(file=file, width=80).print(page.rates(matrix, summaries, "contmec"))
    return file.getvalue()


def test_the_table_has_a_column_for_each_enforcement(directory: Path) -> None:
    matrix, summaries = index.read(directory)
    lines = printed(matrix, summaries).splitlines()
    assert any(line.split() == ["flow", "pod", "node"] for line in lines)
    assert any("(3) B-1 -> B-2" in line and "100 / 100" in line for line in lines)
    assert any(line.split()[:2] == ["verdict", "held"] and "does not apply" in line for line in lines)


def test_of_several_sets_of_disturbances_the_table_shows_the_one_that_took_most(directory: Path) -> None:
    matrix, summaries = index.read(directory)
    flow, *others = summaries["contmec", "pod"].flows
    quiet, disturbed = flow.phases.values()
    worse = disturbed.model_copy(update={"mean_bps": quiet.mean_bps / 2})
    phases = {"quiet": quiet, "disturbed by a": worse, "disturbed by a and b": disturbed}
    flows = [flow.model_copy(update={"phases": phases}), *others]
    changed = {("contmec", "pod"): summaries["contmec", "pod"].model_copy(update={"flows": flows})}
    assert "100 / 50 " in printed(matrix, changed)


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("matrix.json", b'{"cells": [', "Invalid JSON"),
        ("matrix.json", b'{"cells": [{}]}', r"cells\[0\].scenario: this field is required"),
        ("contmec/summary.json", b"", "Invalid JSON"),
        ("contmec/samples.parquet", b"PAR1", "not a table of samples"),
        ("contmec/samples.parquet", None, "No such file"),
        ("contmec/scenario.yaml", None, "No such file"),
    ],
)
def test_a_file_that_is_damaged_is_named(
    directory: Path, path: str, content: bytes | None, words: str
) -> None:
    if content is None:
        (directory / path).unlink()
    else:
        (directory / path).write_bytes(content)
    with pytest.raises((StoredError, ScenarioError), match=f"^{directory / path}: {words}"):
        experiments.draw_figures(str(directory), Path("reports"), {})


def test_a_matrix_without_some_of_its_cells_is_refused(directory: Path) -> None:
    matrix = atomic.read_json(directory / index.INDEX)
    atomic.write_json(directory / index.INDEX, {**matrix, "cells": matrix["cells"][:3]})
    with pytest.raises(StoredError, match="there is no cell for some scenario"):
        STUDY.analyse(directory)


@pytest.fixture(scope="module")
def repeated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A matrix of a cell with three repetitions, each the recorded one, and a cell that does not apply."""
    made = tmp_path_factory.mktemp("repeated")
    recording = Recording(archive.unpack(ROOT / "reports" / "reference" / "machines-contmec", made))
    scenario = recording.scenario_file
    scenario.write_text(scenario.read_text().replace("repetitions: 1", "repetitions: 3"))
    run = atomic.read_json(recording.run_file)
    atomic.write_json(recording.run_file, {**run, "repetitions": run["repetitions"] * 3})
    for number in (1, 2):
        shutil.copytree(recording.repetition_directory(0), recording.repetition_directory(number))
    analyse(recording)
    cells = [
        MatrixCase(scenario="contmec", enforcement="pod", recording=recording.directory.name),
        MatrixCase(scenario="contmec", enforcement="node", recording=None, reason="no rate"),
    ]
    order = [[("contmec", "pod")]] * 3
    matrix = Matrix(rows=cells, repetitions=3, seed=7, order=order)
    (made / index.INDEX).write_text(matrix.model_dump_json())
    return made


def test_of_several_repetitions_the_table_has_intervals(repeated: Path) -> None:
    matrix, summaries = index.read(repeated)
    text = printed(matrix, summaries)
    lines = text.splitlines()
    words = " ".join(text.split())
    assert "in % of the expected goodput, ± 95 % within this run" in words
    assert "(3) B-1 -> B-2 quiet 100.0 ± 0.0 - disturbed 100.0 ± 0.0 -" in words
    assert all(len(line) <= 80 for line in lines)


@pytest.mark.long(one_in=0)
def test_of_several_repetitions_figure_and_page_have_intervals_and_the_order(repeated: Path) -> None:
    STUDY.analyse(repeated)
    page = (repeated / "matrix.html").read_text()
    assert "286.475 ± 0." in page
    assert "run 3 times, in 3 blocks, every cell once a block, in a random order of seed 7" in page
    assert page.count("<li>contmec pod</li>") == 3
    assert "mean, 95 %" in (repeated / "figures" / "matrix.svg").read_text()
    # Phases that nothing disturbs have theirs, too.
    (summary,) = index.read(repeated)[1].values()
    lone = load(ROOT / "scenarios" / "contmec.yaml", ["disturbances=[]"])
    whole = Recording(repeated / str(index.read(repeated)[0].rows[0].recording)).scenario()
    assert figure.stretch(whole, "quiet") == (0.5, 2.5)
    assert figure.stretch(whole, "disturbed") == (2.5, 7.5)
    assert figure.stretch(lone, "quiet") == (0.5, 10.0)
    begun = load(ROOT / "scenarios" / "contmec.yaml", ["disturbances[0].start=0"])
    assert figure.stretch(begun, "quiet") == (5.0, 10.0)
    assert summary.flows[0].phases["quiet"].intervals is not None


@pytest.mark.parametrize(
    ("scenario", "promising"), [("contmec", {"pod"}), ("kubernetes", {"pod"}), ("congested", {"node"})]
)
def test_an_enforcement_promises_what_it_can_keep(scenario: str, promising: set[str]) -> None:
    found = set()
    for enforcement in index.ENFORCEMENTS:
        cases = STUDY.cases(
            StudyRequest(
                study="matrix", choices={"scenario": (scenario,), "enforcement": ("pod", enforcement)}
            )
        )
        found |= {enforcement} if cases[1].promised else set()
    assert found == promising


def test_what_pods_receive_is_promised_where_it_can_be() -> None:
    overrides = ("enforcement=fabric", "pods.A-4.ingress=1G")
    choices = {"scenario": ("congested",), "enforcement": ("node", "fabric")}
    cases = STUDY.cases(StudyRequest(study="matrix", choices=choices, overrides=overrides))
    assert [case.scenario and case.scenario.pods["A-4"].ingress for case in cases] == [None, 10**9]
    assert [case.scenario and case.scenario.kept_by for case in cases] == ["node", "fabric"]


def test_on_links_with_a_rate_only_who_shares_them_promises() -> None:
    def promised(enforcement: str) -> bool:
        overrides = ["underlay.rate=9G", f"enforcement={enforcement}"]
        return shall_hold(load(ROOT / "scenarios" / "contmec.yaml", overrides))

    assert [name for name in index.ENFORCEMENTS if promised(name)] == ["node"]


OPTIONS: Options = {
    "set_": [],
    "scale": 1.0,
    "provider": "netns",
    "orchestrator": "cni",
    "reports": "reports",
}


def with_verdict(recording: Path, verdict: str) -> None:
    """Let a recording's summary say another verdict."""
    file = recording / "summary.json"
    atomic.write_json(file, {**atomic.read_json(file), "verdict": verdict})


@pytest.mark.parametrize(
    ("contmec", "kubernetes", "as_ever", "gated"),
    [
        ("held", "held", 0, 0),
        ("violated", "held", 0, 1),
        ("held", "invalid", 3, 3),
        ("invalid", "violated", 3, 1),
    ],
)
def test_a_gate_is_about_the_cases_that_shall_hold(
    contmec: str,
    kubernetes: str,
    as_ever: int,
    gated: int,
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with_verdict(directory / "contmec", contmec)
    with_verdict(directory / "kubernetes", kubernetes)
    monkeypatch.setattr(loop, "run", lambda *_: directory)
    assert verb.run("matrix", {}, "", document={}, **OPTIONS) == as_ever
    assert "gate:" not in capsys.readouterr().out
    assert verb.run("matrix", {}, "", gate=True, document={}, **OPTIONS) == gated
    assert f"gate: contmec, pod shall hold: {contmec}" in capsys.readouterr().out


def test_a_gate_is_not_about_cases_that_promise_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = directory / "contmec" / "scenario.yaml"
    file.write_text(file.read_text().replace("enforcement: pod", "enforcement: none"))
    with_verdict(directory / "contmec", "violated")
    monkeypatch.setattr(loop, "run", lambda *_: directory)
    told: Document = {}
    assert verb.run("matrix", {}, "", gate=True, document=told, **OPTIONS) == 0
    assert told["promised"] == [{"case": "kubernetes, pod", "recording": "kubernetes", "verdict": "held"}]


def test_a_network_given_by_its_path_is_called_by_its_name() -> None:
    mine = str(ROOT / "docs" / "examples" / "network" / "mine.yaml")
    cases = STUDY.cases(asked("none", mine))
    assert {case.row.enforcement for case in cases} == {"none", "mine"}
    assert not any(case.promised for case in cases)


def test_a_gate_without_a_case_that_shall_hold_is_refused() -> None:
    with pytest.raises(LookupError, match="--gate: none of these cases shall hold"):
        verb.run("matrix", {"enforcement": ["none", "bandwidth"]}, "", gate=True, document={}, **OPTIONS)


def test_programs_are_told_the_index_and_every_run(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    atomic.write_model(directory / REQUEST, asked("pod", "node"))
    with documents.document(True) as filled:
        assert experiments.draw_figures(str(directory), directory, filled) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert told["next"]["command"] == f"./invokew places --reports {directory}"
    assert said.err.endswith(f"next: {told['next']['command']}\n")
    assert (told["schema"], told["study"]) == (1, "matrix")
    assert told["index"] == atomic.read_json(directory / index.INDEX)
    assert told["paths"]["pages"] == [str(directory / "matrix.html")]
    for run, name in zip(told["runs"], ("contmec", "kubernetes"), strict=True):
        assert run["summary"] == atomic.read_json(directory / name / "summary.json")
        assert run["paths"]["recording"] == str(directory / name)
