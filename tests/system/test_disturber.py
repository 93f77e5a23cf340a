"""Somebody else on the machine, whom tests have to bear: what that one makes goes, however it ends.

In a sandbox, where it is root and makes nothing on the host.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.providers.netns.sandbox import Entrance, Sandbox
from tests import mounts
from tests.paths import ROOT

DISTURBER = [sys.executable, str(ROOT / "benchmarks" / "disturber.py")]


@pytest.fixture
def host() -> Iterator[Entrance]:
    box = Sandbox.start("tests.disturber")
    try:
        box.switch.run(["sh", "-c", "mount -t tmpfs tmpfs /run && ip link set lo up"])
        yield box.switch
    finally:
        box.stop()


def left(host: Entrance) -> tuple[list[tuple[str, str]], str]:
    namespaces = host.run(["sh", "-c", "ls /run/netns 2>&1 || true"]).stdout
    return mounts.reachable(host.run(["cat", "/proc/self/mountinfo"]).stdout), namespaces


@pytest.mark.parametrize("used", [False, True])
@pytest.mark.long(one_in=2)
def test_it_ends_with_its_command_and_says_what_it_did(host: Entrance, used: bool) -> None:
    if used:
        host.run(["ip", "netns", "add", "somebody"])
    before = left(host)
    seen = ["sh", "-c", "until ls /run/netns/disturber-*-0a; do :; done; exit 7"]
    done = host.run([*DISTURBER, "--namespaces", "--", *seen], check=False)
    assert done.status == 7, done.stderr
    assert "meanwhile: transfers 1, " in done.stderr
    assert left(host) == before


def test_killed_it_leaves_nothing(host: Entrance, tmp_path: Path) -> None:
    before = left(host)
    process = host.start(
        [*DISTURBER, "--namespaces", "--", "cat"], stdout=tmp_path / "out", stderr=tmp_path / "err", held=True
    )
    while "disturber-" not in left(host)[1]:
        pass
    process.kill()
    while host.run(["pgrep", "--full", "disturber(\\.py|-)"], check=False).status == 0:
        pass  # who removes is at work, or waits for a command that outlives who ran it
    assert left(host) == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [([], "COMMAND"), (["true"], "one of --pauses and --namespaces is needed"), (["--pauses"], "COMMAND")],
)
def test_bad_input_starts_nothing(arguments: list[str], words: str) -> None:
    done = subprocess.run([*DISTURBER, *arguments], capture_output=True, text=True, check=False)
    assert (done.returncode, words in done.stderr) == (2, True)
