"""The committed reference recordings: what anyone can make again from their raw files."""

import shutil
from pathlib import Path

import pytest

from bench.pipeline import analyse
from bench.recording.directory import Recording
from bench.studies.matrix import index, study
from tests.paths import ROOT

REFERENCE = ROOT / "reports" / "reference"


@pytest.mark.parametrize("scenario", ["contmec", "kubernetes"])
@pytest.mark.parametrize("where", ["", "cgroup2-", "machines-", "vagrant-"])
def test_a_reference_recording_gives_the_same_again(where: str, scenario: str, tmp_path: Path) -> None:
    name = where + scenario
    copy = tmp_path / name
    shutil.copytree(REFERENCE / name, copy)
    for made in ("samples.parquet", "report.html", "figures/throughput.svg"):
        (copy / made).unlink()
    assert analyse(Recording(copy)).verdict == "held"
    for text in ("summary.json", "figures/throughput.svg", "report.html"):
        assert (copy / text).read_bytes() == (REFERENCE / name / text).read_bytes(), text


def test_the_reference_matrix_gives_the_same_again(tmp_path: Path) -> None:
    copy = tmp_path / "matrix"
    shutil.copytree(REFERENCE / "matrix", copy)
    made = ("figures/matrix.svg", "matrix.html")
    for text in made:
        (copy / text).unlink()
    study.analyse(copy)
    for text in made:
        assert (copy / text).read_bytes() == (REFERENCE / "matrix" / text).read_bytes(), text
    _, summaries = index.read(copy)
    full_link = {name: summaries["congested", name].verdict for name in index.ENFORCEMENTS}
    assert full_link == {"none": "violated", "bandwidth": "violated", "pod": "violated", "node": "held"}
