from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed.providers import persistence


def run(directory: Path) -> subprocess.CompletedProcess[str]:
    command = persistence.tcpdump_on("worker-01", "eth1", ["tcp port 5201"])
    return subprocess.run(
        ["/bin/sh", *command[1:]], env={"PATH": str(directory)}, capture_output=True, text=True, check=False
    )


def test_a_tcpdump_that_is_missing_is_said_with_the_machine(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert done.returncode == 2
    assert done.stderr == "tcpdump is not installed on worker-01: apt-get install tcpdump\n"


def test_a_tcpdump_gets_the_expression_as_it_is(tmp_path: Path) -> None:
    program = tmp_path / "tcpdump"
    program.write_text('#!/bin/sh\nprintf "%s|" "$@"\n')
    program.chmod(0o755)
    assert run(tmp_path).stdout == "-n|-l|-i|eth1|tcp port 5201|"


@pytest.mark.parametrize("name", ["a", "testbed", "paper-vms", "2"])
def test_a_name_has_letters_digits_and_dashes(name: str) -> None:
    assert persistence.valid_name(name)


@pytest.mark.parametrize("name", ["", "a.run", "-a", "a/b", "x" * 40])
def test_what_is_no_name(name: str) -> None:
    assert not persistence.valid_name(name)
