from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from bench import pipeline
from bench.analysis import summary
from bench.cli.verbs import experiments
from bench.console.statuses import HELD, VIOLATED
from bench.recording import archive
from bench.recording.directory import Recording
from bench.studies.reproduction import regeneration
from testbed import registry
from tests.paths import CONTMEC_SUMMARY, ROOT

REFERENCE = ROOT / "reports" / "reference"


def files_of(directory: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()
    }


def copied(name: str, reports: Path) -> Path:
    return Path(shutil.copytree(REFERENCE / name, reports / "reference" / name))


def test_what_is_kept_beside_a_packed_recording_follows_from_it(tmp_path: Path) -> None:
    directory = copied("contmec", tmp_path)
    table, before = directory / archive.TABLE, files_of(directory)
    kept = regeneration.make(directory, tmp_path)
    assert kept.differing == {}
    assert files_of(directory) == before
    # By deleting, changing and adding what is kept one finds out that it is compared.
    table.unlink()
    (directory / "throughput.png").write_bytes(b"another picture")
    (directory / "other.png").write_bytes(b"a picture of nothing")
    assert kept.differing == {
        directory / "other.png": None,
        directory / "throughput.png": before["throughput.png"],
        table: before[archive.TABLE],
    }
    assert regeneration.write(kept) == [directory / "throughput.png", table]
    (directory / "other.png").unlink()
    assert files_of(directory) == before


@pytest.mark.long(one_in=0)
def test_what_an_analysis_made_follows_from_what_was_recorded_alone(
    recorded: Callable[[str], Recording], tmp_path: Path
) -> None:
    recording = recorded("held")
    pipeline.analyse(recording)
    kept = regeneration.make(recording.directory, tmp_path)
    assert kept.differing == {}
    assert {"summary.json", "report.html", "figures/throughput.pdf", "raw/analysis.json"} < set(kept.files)
    recording.summary_file.unlink()
    recording.report_file.write_text("changed")
    assert list(regeneration.make(recording.directory, tmp_path).differing) == [
        recording.report_file,
        recording.summary_file,
    ]


@pytest.mark.usefixtures("undrawn")
def test_a_recording_from_before_keeps_the_seconds_of_its_summary(
    recorded: Callable[[str], Recording], tmp_path: Path
) -> None:
    recording = recorded("held")
    took = pipeline.analyse(recording).seconds.analysis
    recording.analysis_file.unlink()
    kept = regeneration.make(recording.directory, tmp_path)
    assert list(kept.differing) == [recording.analysis_file]
    regeneration.write(kept)
    recording.summary_file.unlink()
    assert pipeline.analyse(recording).seconds.analysis == took


def test_everything_is_found_where_it_is_kept(recorded: Callable[[str], Recording], tmp_path: Path) -> None:
    contmec, matrix = copied("contmec", tmp_path), copied("matrix", tmp_path)
    held = recorded("held").directory
    (tmp_path / "20260101T000000Z-x.unfinished" / "raw").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "latest").symlink_to(held.name)
    with pytest.raises(LookupError, match="empty: no recordings or studies"):
        regeneration.everything(tmp_path / "empty")
    assert regeneration.everything(tmp_path) == [matrix, held, contmec]


def test_what_cannot_be_read_is_named_where_it_is(
    recorded: Callable[[str], Recording], tmp_path: Path
) -> None:
    recording = recorded("held")
    recording.run_file.write_text('{"run_id": ')
    with pytest.raises(LookupError) as caught:
        regeneration.make(recording.directory, tmp_path)
    assert str(caught.value).startswith(f"{recording.run_file}: ")


@pytest.mark.long(one_in=0)
def test_a_check_names_each_file_that_differs_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = copied("contmec", tmp_path)
    table = directory / archive.TABLE
    table.write_text(table.read_text(encoding="utf-8").replace('"held"', '"violated"'), encoding="utf-8")
    before = files_of(tmp_path)
    assert experiments.figures("", True, True, tmp_path, {}) == VIOLATED
    assert files_of(tmp_path) == before
    assert capsys.readouterr().out.splitlines() == [
        f"differs: {table}",
        f"1 recordings and studies below {tmp_path}; files that differ: 1",
    ]


@pytest.mark.parametrize(
    ("run", "everything", "check"), [("", False, False), ("x", True, False), ("x", False, True)]
)
def test_figures_are_of_one_recording_or_of_all(
    run: str, everything: bool, check: bool, tmp_path: Path
) -> None:
    with pytest.raises(LookupError, match="give either a recording"):
        experiments.figures(run, everything, check, tmp_path, {})


# What bytes must not depend on, and how a process is told of it.
CHOICES = (
    {"TZ": ("UTC", "Asia/Tokyo")},
    {"LC_ALL": ("C.UTF-8", "C")},
    {"PYTHONHASHSEED": ("0", "1")},
    {"NPY_DISABLE_CPU_FEATURES": ("", "X86_V3 X86_V4")},
    {"MATPLOTLIBRC": ("", "mine")},
)
VARIABLES = [
    dict(zip((name for choice in CHOICES for name in choice), values, strict=True))
    for values in itertools.product(*(one for choice in CHOICES for one in choice.values()))
]
ANALYSE = """
import hashlib, sys
from pathlib import Path
from bench.studies.reproduction import regeneration
made = regeneration.make(Path(sys.argv[1]), Path(sys.argv[2]))
for path, content in made.files.items():
    print(hashlib.sha256(content).hexdigest(), path)
"""


def digests(python: str, run: Path, scratch: Path, variables: dict[str, str]) -> list[str]:
    """Return the digests of all that another process makes of a recording."""
    (scratch / "mine").write_text(regeneration.MATPLOTLIBRC)
    told = {name: value for name, value in variables.items() if value}
    if "MATPLOTLIBRC" in told:
        told["MATPLOTLIBRC"] = str(scratch / told["MATPLOTLIBRC"])
    if told.get("LC_ALL") == "C":
        told |= {"PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    inherited = {name: value for name, value in os.environ.items() if name not in variables}
    done = subprocess.run(
        [python, "-c", ANALYSE, run, scratch], cwd=ROOT, env={**inherited, **told}, text=True, check=True,
        stdout=subprocess.PIPE,
    )  # fmt: skip
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the digests of all that is made of a recording where nothing is set up in another way."""
    return digests(sys.executable, REFERENCE / "contmec", tmp_path_factory.mktemp("plain"), VARIABLES[0])


@pytest.mark.parametrize(
    "variables", VARIABLES[1:], ids=lambda variables: "-".join(filter(None, variables.values()))
)
@pytest.mark.long(one_in=0)
def test_bytes_depend_on_no_environment(variables: dict[str, str], plain: list[str], tmp_path: Path) -> None:
    assert len(plain) > 5
    assert digests(sys.executable, REFERENCE / "contmec", tmp_path, variables) == plain


@pytest.mark.parametrize(
    "directory", regeneration.everything(ROOT / "reports"), ids=lambda directory: directory.name
)
@pytest.mark.long(one_in=0)
def test_bytes_of_what_is_kept_depend_on_no_environment(directory: Path) -> None:
    """Of all that is made, also of what is not kept beside its recording."""
    usual, unusual = (
        regeneration.again([directory], environment, registry.load)[0].files
        for environment in ({"TZ": "UTC", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0"}, regeneration.UNUSUAL)
    )
    assert usual.keys() == unusual.keys()
    assert [path for path in usual if usual[path] != unusual[path]] == []


def other_pythons() -> list[str]:
    """Return Pythons of other versions that the project runs with."""
    found = [shutil.which("python3.11"), shutil.which("python3.12")]
    found += [str(path) for path in sorted(Path.home().glob(".pyenv/versions/3.12*/bin/python"))]
    this = f"{sys.version_info.major}.{sys.version_info.minor}"
    versions = {}
    for python in filter(None, found):
        shown = subprocess.run([python, "-V"], capture_output=True, text=True, check=False)
        version = ".".join(shown.stdout.removeprefix("Python ").split(".")[:2])
        if shown.returncode == 0 and version != this:
            versions[version] = python
    return list(versions.values())


@pytest.mark.long(one_in=0)
def test_bytes_do_not_depend_on_the_version_of_python(tmp_path: Path) -> None:
    others = other_pythons()
    if not others:
        pytest.skip("there is no other Python of 3.11 and 3.12 here")
    environment = tmp_path / "python"
    subprocess.run([others[0], "-m", "venv", environment], check=True)
    install = ["-m", "pip", "install", "-q", "--require-hashes", "-r", str(ROOT / "requirements" / "run.txt")]
    done = subprocess.run(
        [environment / "bin" / "python", *install], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"its packages cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    for name in ("contmec", "matrix"):
        made = digests(str(environment / "bin" / "python"), REFERENCE / name, tmp_path, {})
        assert made == digests(sys.executable, REFERENCE / name, tmp_path, {})


@pytest.mark.long(one_in=0)
def test_one_that_cannot_be_read_ends_all_of_it(recorded: Callable[[str], Recording], tmp_path: Path) -> None:
    recording = recorded("held")
    recording.run_file.write_text("{")
    with pytest.raises(LookupError, match=rf"^{recording.run_file}: "):
        regeneration.again([recording.directory], {}, registry.load)


def test_summaries_are_those_of_a_whole_analysis(tmp_path: Path) -> None:
    directory, told = copied("contmec", tmp_path), []
    (again,) = regeneration.summaries([directory], registry.load, lambda *one: told.append(one))[directory]
    kept = summary.read(CONTMEC_SUMMARY)
    assert summary.render(again.analysed(kept.seconds.analysis)) == summary.render(kept)
    assert told[-1] == (1, 1)


@pytest.mark.long(one_in=0)
def test_figures_of_other_sizes_are_beside_those_that_are_always_there(
    recorded: Callable[[str], Recording], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = recorded("held")
    run = str(recording.directory)
    size = {"preset": "column", "format": "pdf"}
    assert experiments.figures(run, False, False, tmp_path, {}, size) == HELD
    drawn = recording.figures_directory / "throughput-column.pdf"
    assert drawn.read_bytes().startswith(b"%PDF")
    assert f"drawn: {drawn}" in capsys.readouterr().out
    names = {file.name for file in recording.figures_directory.iterdir()}
    assert names == {"throughput.svg", "throughput.pdf", "throughput.png", "throughput-column.pdf"}
    with pytest.raises(LookupError, match=r"--width: must be a number with its unit"):
        experiments.figures(run, False, False, tmp_path, {}, size={"width": "3.5"})
    with pytest.raises(LookupError, match="for the figures of one recording or study"):
        experiments.figures("", True, False, tmp_path, {}, size={"preset": "slide"})
