"""What ``bench`` says to run next is run as it stands, and tells something that was not known before."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.paths import ROOT
from tests.system.bench.promise import test_planted_faults as planted

SHORT = ["--duration", "6"]  # of fewer samples one alone that is low makes a phase violated
NOBODY = ["--set", "pods.A-1.guarantee=null", "--set", "pods.A-2.guarantee=null"]

pytestmark = pytest.mark.alone


class Told:
    """What a command left: its last line, and what came out."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.line = shlex.join(["./invokew", *argv])
        done = subprocess.run(
            [sys.executable, "tasks.py", *argv], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
        self.status = done.returncode
        self.output = done.stdout
        last = done.stdout.rstrip("\n").splitlines()[-1]
        self.next = last.removeprefix("next: ") if last.startswith("next: ") else None

    def follow(self) -> Told:
        assert self.next is not None, self.output
        program, *argv = shlex.split(self.next)
        assert program == "./invokew"
        return Told(argv)


def bench(reports: Path, *options: str) -> Told:
    return Told(["bench", "--scenario", "kubernetes", "--reports", str(reports), *SHORT, *options])


def statement(reports: Path) -> tuple[str, str, object]:
    """What the latest run says: its verdict, of which enforcement, on which links.

    The test is skipped where the machine was the limit: what follows then is another test's.
    """
    summary = json.loads((reports / "latest" / "summary.json").read_text())
    if {cause["kind"] for cause in summary["causes"]} == {"machine"}:
        pytest.skip(f"the machine was the limit: {summary['reasons']}")
    scenario = (reports / "latest" / "scenario.yaml").read_text()
    rate = next((line for line in scenario.splitlines() if line.startswith("  rate:")), "")
    return summary["verdict"], summary["enforcement"], rate


@pytest.mark.long(one_in=0)
def test_held_leads_to_full_links_and_on_to_who_holds_there(tmp_path: Path) -> None:
    """From a link with room to a full one, from a limit that breaks there to what reserves."""
    told = bench(tmp_path, "--scale", "0.02")
    said: list[tuple[str, str, object]] = []
    lines = [told.line]
    said.append(statement(tmp_path))
    while told.next is not None and " bench " in told.next:
        assert told.next not in lines
        told = told.follow()
        lines.append(told.line)
        said.append(statement(tmp_path))
    assert told.next is not None
    assert " promise --network node" in told.next
    assert len(set(said)) == len(said) >= 3
    assert said[0][:2] == ("held", "pod")
    assert said[-1][:2] == ("held", "node")


@pytest.mark.long(one_in=0)
def test_what_nobody_promised_is_promised_next(tmp_path: Path) -> None:
    told = bench(tmp_path, "--scale", "0.02", *NOBODY)
    assert told.status == 3
    assert "so there is nothing to hold" in told.output
    told.follow()
    assert statement(tmp_path)[0] != "invalid"


@pytest.mark.long(one_in=0)
def test_more_than_a_machine_carries_is_asked_for_at_a_part_of_it(tmp_path: Path) -> None:
    """Hundreds of gigabits are more than any does by itself."""
    told = bench(tmp_path, "--scale", "100", "--retry", "0")
    assert told.status == 3
    assert told.next is not None
    assert "--scale" in told.next
    while told.status == 3 and "--scale" in (told.next or ""):
        told = told.follow()
    if "--scale" not in (told.next or "") and told.status == 3:
        pytest.skip("this machine cannot tell at any scale")
    assert statement(tmp_path)[0] in ("held", "violated")


@pytest.mark.long(one_in=0)
@planted.pytestmark[0]
@pytest.mark.parametrize("fault", ["wrong-side", "burst"])
def test_a_ceiling_that_is_exceeded_is_violated_and_the_kit_is_next(fault: str, tmp_path: Path) -> None:
    """A limiter of the wrong side, and one that lets through at once what an idle link takes in a second."""
    network = planted.NETWORKS / f"{fault}.yaml"
    told = bench(tmp_path, "--scale", "0.1", "--enforcement", str(network))
    assert told.status == 1, told.output
    assert re.search(r"that the ceiling of A-[12], [13]00 Mbit/s, leaves \(at most 105 %\)", told.output)
    assert "OVER" in told.output
    assert told.next is not None
    assert shlex.split(told.next)[1:4] == ["promise", "--network", str(network)]


@pytest.mark.long(one_in=0)
@planted.pytestmark[0]
def test_a_ceiling_that_is_kept_is_not_exceeded(tmp_path: Path) -> None:
    told = bench(tmp_path, "--scale", "0.1", "--enforcement", str(planted.NETWORKS / "sound.yaml"))
    assert "that the ceiling of" not in told.output
