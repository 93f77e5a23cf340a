"""The committed reference recordings: what anyone can make again from their raw files."""

import shutil
from pathlib import Path

import pytest

from bench import matrix
from bench.analysis import analyse
from bench.recording import Recording

REFERENCE = Path(__file__).parents[3] / "reports" / "reference"


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
    matrix.analyse(copy)
    for text in made:
        assert (copy / text).read_bytes() == (REFERENCE / "matrix" / text).read_bytes(), text
    _, summaries = matrix.read(copy)
    full_link = {name: summaries["congested", name].verdict for name in matrix.ENFORCEMENTS}
    assert full_link == {"none": "violated", "bandwidth": "violated", "pod": "violated", "node": "held"}
