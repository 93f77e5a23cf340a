"""Lines as people type them, from the checkout and from elsewhere, as root and as somebody else."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.paths import ROOT

NOBODY = 65534
# What would install packages, if it were asked to.
INSTALLERS = ("apt-get", "sudo")


class Said(NamedTuple):
    """How a line ended, and what it said."""

    status: int
    told: str
    complained: str


@dataclass(frozen=True)
class Typist:
    """Who types, and where; with programs before all others that write down that they were called."""

    home: Path
    stands: Path
    user: int

    def types(self, line: str, variables: Mapping[str, str] | None = None) -> Said:
        """Have bash read a line, in which ``invokew`` is how the checkout's is called from there."""
        invokew = "./invokew" if self.stands == ROOT else str(ROOT / "invokew")
        drop = [] if self.user == os.geteuid() else ["setpriv", f"--reuid={self.user}", "--clear-groups"]
        environment = {
            "PATH": f"{self.home}/bin:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "LC_ALL": "C.UTF-8",
            **(variables or {}),
        }
        done = subprocess.run(
            [*drop, "bash", "-c", re.sub(r"(?<![\w./])invokew\b", invokew, line)],
            cwd=self.stands, env=environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)

    @property
    def installed(self) -> bool:
        """Whether anything was to be installed."""
        return any((self.home / name).exists() for name in INSTALLERS)


def typing(place: str, who: str) -> Iterator[Typist]:
    """Let somebody type somewhere; an ordinary user is somebody else to root, and the only one to others."""
    if os.geteuid() != 0 and who == "root":
        pytest.skip("these tests run without root")
    user = NOBODY if os.geteuid() == 0 and who != "root" else os.geteuid()
    home = Path(tempfile.mkdtemp(prefix="typing-"))  # pytest's own directory is its user's alone
    home.chmod(0o777)
    (home / "bin").mkdir()
    for name in INSTALLERS:
        program = home / "bin" / name
        program.write_text(f"#!/bin/sh\n: >{home}/{name}\nexit 1\n", encoding="utf-8")
        program.chmod(0o755)
    yield Typist(home, ROOT if place == "checkout" else home, user)
    shutil.rmtree(home)


EVERYWHERE = [(place, who) for place in ("checkout", "elsewhere") for who in ("root", "somebody")]


@pytest.fixture(params=EVERYWHERE, ids=" as ".join)
def typist(request: pytest.FixtureRequest) -> Iterator[Typist]:
    yield from typing(*request.param)


@pytest.fixture(params=["root", "somebody"])
def elsewhere(request: pytest.FixtureRequest) -> Iterator[Typist]:
    yield from typing("elsewhere", request.param)


NOT_THERE = "-n not-there"  # a testbed that is not up, whoever has others up beside these tests
IS_NOT = r"no testbed 'not-there' is up \(testbeds: .*\)\n\Z"
CONTMEC = r"(\S*/)?scenarios/contmec\.yaml"

# A line, its exit status, and all that it says on standard output or, if it fails, on standard error.
LINES = [
    # Help is help, and nothing is installed for it, whatever the verb would need.
    ("invokew test --help", 0, r"Usage: invokew test\n"),
    ("invokew --help test.vm", 0, r"Usage: invokew test.vm\n"),
    ("invokew up --provider vagrant -h", 0, r"Usage: invokew up "),
    # Short options mean one thing; those of tcpdump are tcpdump's.
    ("invokew matrix -s latency -e node -d 5 --dry", 0, r"matrix would: .*\nlatency, node: 5 s of traffic\n"),
    ("invokew bench contmec -d 5 -r 2 --dry", 0, r"bench would: .*\ncontmec: .* in 5 s, 2 times; "),
    ("invokew bench contmec -c 3", 2, r"bench: no option -c\b"),
    ("invokew -r 5 bench", 2, r"no option -r before a verb"),
    (f"invokew capture {NOT_THERE} promised -c 3", 2, IS_NOT),
    # No word of Vagrant, of which nobody spoke.
    (f"invokew exec {NOT_THERE} A-1 -- ping -c 1 A-2", 2, IS_NOT),
    # A name that is not there is named, with those that are.
    ("invokew bench --set pods.nosuch.guarantee=1G", 2, r"--set: pods.nosuch: no pod 'nosuch' \(pods: A-1, "),
    ("invokew bench --set 'flows[2].to=A-9'", 2, CONTMEC + r": flows\[2\].to: no pod 'A-9' \(pods: A-1, "),
    ("LC_ALL=C invokew bench --set $'title=\\xff'", 2, r"--set: not UTF-8 text\n\Z"),
    ("LC_ALL=C invokew bench contmec --set $'title=\\xc3\\xa9' --dry", 0, r"bench would: "),
    # What is checked is checked before.
    (
        "invokew bench congested --set underlay.rate=200M --set pods.A-1.guarantee=300M --dry", 2,
        r"scenario congested: pods.A-1.guarantee: no room for 300M on worker-01",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("line", "status", "words"), LINES, ids=[line for line, _, _ in LINES])
@pytest.mark.long(one_in=16)
def test_a_line(typist: Typist, line: str, status: int, words: str) -> None:
    said = typist.types(line)
    assert said.status == status, said
    assert re.match(words, said.complained if status else said.told), said
    assert not (said.complained if status == 0 else ""), said
    assert not typist.installed


@pytest.mark.long(one_in=2)
def test_paths_are_the_typist_s(elsewhere: Typist) -> None:
    written = elsewhere.types("invokew new mine")
    assert (written.status, written.complained) == (0, "")
    assert (elsewhere.home / "mine.yaml").stat().st_uid == elsewhere.user
    assert written.told.startswith("wrote mine.yaml; now: ")
    _, _, command = written.told.partition("now: ")
    assert "\nmine: on " in elsewhere.types(f"{command.strip()} --dry").told
    (elsewhere.home / "broken.yaml").write_text("name: x\n", encoding="utf-8")
    assert elsewhere.types("invokew bench broken.yaml").complained.startswith("broken.yaml: nodes: ")


@pytest.mark.long(one_in=0)
def test_so_is_where_recordings_are(elsewhere: Typist) -> None:
    assert (
        elsewhere.types("invokew figures latest").complained
        == "no recording 'latest' (recordings: none yet)\n"
    )
    nothing = elsewhere.types("invokew figures --all --check --reports here")
    assert (nothing.status, nothing.complained[:32]) == (2, "here: no recordings or studies; ")
    (elsewhere.home / "reports" / "20260101T000000Z-mine-pod").mkdir(parents=True)
    assert elsewhere.types("invokew --complete -- invokew figures 2026").told == "20260101T000000Z-mine-pod\n"
