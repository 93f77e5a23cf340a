"""``invokew`` has the names of packages again that the testbed looks for, since it comes before Python."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed import programs
from testbed.box import building
from testbed.kubernetes import images, requirements

SCRIPT = Path(__file__).resolve().parents[2].joinpath("invokew").read_text(encoding="utf-8")
EVERYWHERE = {"coreutils", "dash", "grep"}  # Essential in Debian


def listed(start: str, end: str) -> set[tuple[str, str]]:
    """Return the pairs of program and package between two texts of the script."""
    return set(re.findall(r"([\w.-]+):([\w.-]+)", SCRIPT.partition(start)[2].partition(end)[0]))


BASE = listed("for pair in ", "${more:-}")
KUBERNETES = listed("more='dpkg-source", "'")
BOX = listed("box='", "'")


@pytest.mark.parametrize(
    ("installed", "needed"),
    [
        (BASE, programs.SANDBOX),
        (BASE | KUBERNETES, {**requirements.PROGRAMS, **images.TOOLS}),
        (BOX, building.TOOLS),
    ],
    ids=["a node", "Kubernetes", "the box"],
)
def test_it_installs_all_packages_that_are_looked_for(
    installed: set[tuple[str, str]], needed: Mapping[str, str]
) -> None:
    assert set(needed.values()) - EVERYWHERE <= {package for _, package in installed}


def test_it_and_the_testbed_agree_on_the_package_of_a_program() -> None:
    known = {**requirements.PROGRAMS, **images.TOOLS, **building.TOOLS, **programs.SANDBOX}
    differing = {pair for pair in BASE | KUBERNETES | BOX if known.get(pair[0], pair[1]) != pair[1]}
    assert differing == {("syslinux", "syslinux-common")}  # which has no program
