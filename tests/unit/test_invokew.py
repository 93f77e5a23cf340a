"""``invokew`` has the names of packages again that the testbed looks for, since it comes before Python."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.kubernetes import requirements
from testbed.supplies import images, programs, runner
from testbed.supplies.box import building
from tests.paths import ROOT

SCRIPT = ROOT.joinpath("invokew").read_text(encoding="utf-8")
# Essential in Debian, or what python3-venv brings.
EVERYWHERE = {"coreutils", "dash", "grep", "python3", "sed"}


def listed(start: str, end: str) -> set[tuple[str, str]]:
    """Return the pairs of program and package between two texts of the script."""
    return set(re.findall(r"([\w.-]+):([\w.-]+)", SCRIPT.partition(start)[2].partition(end)[0]))


BASE = listed("for pair in ", "${more:-}")
KUBERNETES = listed("more='dpkg-source", "'")
BOX = listed("box='", "'")
IMAGE = listed("image='", "'")


@pytest.mark.parametrize(
    ("installed", "needed"),
    [
        (BASE, programs.SANDBOX),
        (BASE | KUBERNETES, {**requirements.PROGRAMS, **images.TOOLS}),
        (BOX, building.TOOLS),
        (BASE | IMAGE, {**runner.TOOLS, **{package: package for package in runner.WHOLE}}),
    ],
    ids=["a node", "Kubernetes", "the box", "the image"],
)
def test_it_installs_all_packages_that_are_looked_for(
    installed: set[tuple[str, str]], needed: Mapping[str, str]
) -> None:
    assert set(needed.values()) - EVERYWHERE <= {package for _, package in installed}


def test_it_and_the_testbed_agree_on_the_package_of_a_program() -> None:
    known = {**requirements.PROGRAMS, **images.TOOLS, **building.TOOLS, **programs.SANDBOX}
    differing = {pair for pair in BASE | KUBERNETES | BOX if known.get(pair[0], pair[1]) != pair[1]}
    assert differing == {("syslinux", "syslinux-common")}  # which has no program


def test_what_suffices_for_tests_suffices_for_a_run() -> None:
    """With the former in its environment it does not look for the latter."""

    def pinned(name: str) -> set[str]:
        text = ROOT.joinpath("requirements", f"{name}.txt").read_text(encoding="utf-8")
        return set(re.findall(r"^[\w.-]+==\S+", text, re.MULTILINE))

    assert pinned("run")
    assert pinned("run") <= pinned("test")


@pytest.mark.parametrize(
    ("line", "verb"),
    [
        ("bench --scenario test", "bench"),
        ("-c tasks test.long", "test.long"),
        ("--list-depth 1 --echo -r . lint", "lint"),
        ("--help test", ""),
        ("--list-depth=1 -l", ""),
        ("exec A-1 -- test -f x", "exec"),
        ("", ""),
    ],
)
def test_it_knows_the_verb_from_invoke_s_own_options(line: str, verb: str) -> None:
    part = "verb=\n" + SCRIPT.partition("\nverb=\n")[2].partition("\ndone\n")[0] + "\ndone\necho $verb"
    told = subprocess.run(["sh", "-c", part, "sh", *line.split()], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == verb


def test_a_bug_of_its_own_has_a_status_of_its_own(tmp_path: Path) -> None:
    """It takes what cannot be started for a Python."""
    shutil.copy(ROOT / "invokew", tmp_path)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/nonexistent\n")
    python.chmod(0o755)
    done = subprocess.run(
        ["./invokew", "--complete"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 70
    assert done.stderr.endswith("invokew: this is a bug in the testbed: what failed is above\n")


def test_with_dry_nothing_is_set_up(tmp_path: Path) -> None:
    shutil.copy(ROOT / "invokew", tmp_path)
    for line in (["bench", "--dry"], ["--dry", "test"]):
        done = subprocess.run(["./invokew", *line], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "would install" in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["invokew"]
