from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from invoke.exceptions import Exit

from bench.cli.exits import end_with_status
from bench.cli.program import collected
from bench.console.verb import Verb
from tests import verbs
from tests.paths import ROOT


def test_a_dot_in_a_verb_s_name_makes_a_part_of_the_command_line() -> None:
    named = ["down", "kubernetes.forget", "kubernetes.get"]
    assert sorted(collected(Verb(name, "", "") for name in named).task_names) == named


def test_a_verb_may_have_the_name_of_a_part() -> None:
    made = collected([Verb("test", "", ""), Verb("test.e2e", "", "")])
    assert [made[name].name for name in ("test", "test.e2e")] == ["test", "test.e2e"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_to_end_does_not_cut_the_way_down_short(number: signal.Signals) -> None:
    steps = []

    def command() -> int:
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
            steps.append("taken down")
        return 0

    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        with pytest.raises(Exit) as caught:
            end_with_status(command)
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
    assert caught.value.code == 128 + number
    assert steps == ["taken down"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--help", "nonsense"],
        ["--list=nonsense"],
        ["--list", "--list-format=json", "--list-depth=2"],
        ["bench", "--scale", "many"],
        ["bench", "--nonsense"],
        ["--config", "one.toml", "status"],
    ],
    ids=" ".join,
)
def test_a_command_line_that_cannot_be_understood_is_bad_input(arguments: list[str]) -> None:
    done = verbs.run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize("arguments", [["status"], ["--version"], ["--list"]], ids=" ".join)
def test_who_stops_reading_gets_no_verdict(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = verbs.run(*arguments, stdout=writer)
    finally:
        os.close(writer)
    assert done.returncode == 128 + signal.SIGPIPE, done.stderr


@pytest.mark.parametrize("arguments", [["status"], ["--version"], ["--list"]], ids=" ".join)
def test_a_full_disk_is_no_verdict(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = verbs.run(*arguments, stdout=full.fileno())
    assert done.returncode == 4
    assert done.stderr == "[Errno 28] No space left on device\n"


@pytest.mark.parametrize("line", ["--list", "bench --colour", "bench --help"])
def test_a_list_or_a_mistake_costs_no_import_of_what_does_the_work(line: str) -> None:
    program = (
        "import atexit, sys, tasks\n"
        f"sys.argv[1:] = {line.split()}\n"
        "heavy = {'pydantic', 'rich', 'testbed.scenario'}\n"
        "atexit.register(lambda: print(sorted(heavy & set(sys.modules)), file=sys.stderr))\n"
        "tasks.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "[]", done.stderr
