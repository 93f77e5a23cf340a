"""Comparing enforcements, from the committed recordings: no privileges, no traffic."""

import io
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from bench.cli.verbs import experiments
from bench.pipeline import analyse
from bench.recording import archive, atomic
from bench.recording.atomic import StoredError
from bench.recording.directory import Recording
from bench.studies.matrix import index, study, table
from bench.studies.matrix.index import Cell, Matrix
from bench.studies.matrix.study import Plan
from testbed.scenario import ScenarioError
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"


@pytest.fixture(scope="module")
def analysed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The paper's two experiments, unpacked and analysed."""
    made = tmp_path_factory.mktemp("analysed")
    for name in ("contmec", "kubernetes"):
        unpacked = archive.unpack(ROOT / "reports" / "reference" / name, made)
        analyse(Recording(unpacked.rename(made / name)))
    return made


@pytest.fixture
def directory(analysed: Path, tmp_path: Path) -> Path:
    """A matrix of two recordings and a cell that does not apply."""
    shutil.copytree(analysed, tmp_path, dirs_exist_ok=True)
    cells = [
        Cell(scenario="contmec", enforcement="pod", recording="contmec"),
        Cell(scenario="contmec", enforcement="node", recording=None, reason="underlay.rate <is> missing"),
        Cell(scenario="kubernetes", enforcement="pod", recording="kubernetes"),
        Cell(scenario="kubernetes", enforcement="node", recording=None, reason="likewise"),
    ]
    (tmp_path / index.INDEX).write_text(Matrix(cells=cells).model_dump_json())
    return tmp_path


def test_a_plan_keeps_what_does_not_apply_and_why() -> None:
    plan = Plan([SCENARIOS / "contmec.yaml"], ["pod", "node"], [], 0.1)
    (pod, scenario), (node, nothing) = plan.cells
    assert (pod.enforcement, pod.reason) == ("pod", None)
    assert scenario is not None
    assert scenario.pods["A-1"].guarantee == 10**8
    assert nothing is None
    assert node.reason is not None
    assert "underlay.rate: enforcement node shares out" in node.reason


def test_a_plan_with_a_fault_of_its_own_is_refused() -> None:
    with pytest.raises(ScenarioError, match="no pod 'A-9'"):
        Plan([SCENARIOS / "contmec.yaml"], ["pod"], ["flows[0].to=A-9"], 1.0)
    with pytest.raises(LookupError, match="enforcement: input should be"):
        Plan([SCENARIOS / "contmec.yaml"], ["hope"], [], 1.0)


def test_figure_and_page_are_functions_of_the_recordings(directory: Path) -> None:
    made = ["figures/matrix.svg", "figures/matrix.pdf", "figures/matrix.png", "matrix.html"]
    study.analyse(directory)
    first = {name: (directory / name).read_bytes() for name in made}
    study.analyse(directory)
    assert {name: (directory / name).read_bytes() for name in made} == first


def test_the_page_compares_and_links(directory: Path) -> None:
    study.analyse(directory)
    page = (directory / "matrix.html").read_text()
    assert 'href="contmec/report.html"' in page
    assert "(3) B-1 -&gt; B-2" in page
    assert "underlay.rate &lt;is&gt; missing" in page
    assert "<is>" not in page
    assert "http" not in page.replace("http://www.w3.org/", "")


def test_the_table_has_a_column_for_each_enforcement(directory: Path) -> None:
    matrix, summaries = index.read(directory)
    console = Console(file=io.StringIO(), width=80)
    console.print(table.compare(matrix, summaries, "contmec"))
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert any(line.split() == ["flow", "pod", "node"] for line in lines)
    assert any("(3) B-1 -> B-2" in line and "100 / 100" in line for line in lines)
    assert any(line.split()[:2] == ["verdict", "held"] and "does not apply" in line for line in lines)


@pytest.mark.parametrize(
    ("path", "content", "words"),
    [
        ("matrix.json", b'{"cells": [', "Invalid JSON"),
        ("matrix.json", b'{"cells": [{}]}', r"cells\[0\].scenario: this field is required"),
        ("contmec/summary.json", b"", "Invalid JSON"),
        ("contmec/samples.parquet", b"PAR1", "these are no samples"),
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
        experiments.draw_figures(str(directory), Path("reports"))


def test_a_matrix_without_some_of_its_cells_is_refused(directory: Path) -> None:
    matrix = atomic.read_json(directory / index.INDEX)
    atomic.write_json(directory / index.INDEX, {**matrix, "cells": matrix["cells"][:3]})
    with pytest.raises(StoredError, match="there is no cell for some scenario"):
        study.analyse(directory)
