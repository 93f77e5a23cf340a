"""The guard and what is behind it, with a client that leads nowhere but to another shell of this machine."""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from testbed.access.local import Local
from testbed.access.place import CommandError, Result, held_back
from testbed.access.remote import GUARD, Remote
from tests.waiting import PATIENCE, until

SHELLS = [["dash"], ["busybox", "sh"], ["bash", "--posix"]]


class Files:
    def __init__(self, directory: Path) -> None:
        self.out, self.err = directory / "out", directory / "err"

    def said(self) -> str:
        return self.out.read_text() + self.err.read_text()


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


@pytest.fixture(params=SHELLS, ids=lambda shell: shell[0])
def far(request: pytest.FixtureRequest, tmp_path: Path) -> Remote:
    """A place whose ``sh`` is one of the shells a container or a machine may have."""
    shell: list[str] = request.param
    program = shutil.which(shell[0])
    if program is None:
        pytest.skip(f"no {shell[0]} here")
    (tmp_path / "bin").mkdir()
    stand_in = tmp_path / "bin" / "sh"
    stand_in.write_text(f'#!/bin/sh\nexec {program} {" ".join(shell[1:])} "$@"\n')
    stand_in.chmod(0o755)
    return Remote("far", Local(), ["env", f"PATH={stand_in.parent}:{os.environ['PATH']}"])


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ends(pid: int) -> bool:
    """Wait until a process has ended."""
    try:
        watch = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watch], [], [], PATIENCE)[0])
    finally:
        os.close(watch)


def test_the_commands_output_and_exit_status_come_through(far: Remote, files: Files) -> None:
    command = ["sh", "-c", 'echo "$@"; cat; echo oops >&2; exit 7', "sh", "two words", "$HOME"]
    assert far.start(command, stdout=files.out, stderr=files.err).wait(PATIENCE) == 7
    assert files.out.read_text() == "two words $HOME\n"
    assert files.err.read_text() == "oops\n"


def test_a_held_command_begins_when_released(far: Remote, files: Files) -> None:
    held = far.start(
        held_back(["sh", "-c", "echo begun; cat; exit 3"]), held=True, stdout=files.out, stderr=files.err
    )
    assert held.wait(0.2) is None
    assert files.out.read_text() == ""
    assert files.err.read_text() == "\n"  # it is in its place
    held.release()
    assert held.wait(PATIENCE) == 3
    assert files.out.read_text() == "begun\n"
    assert files.err.read_text().strip() == ""


def test_a_held_command_that_is_killed_never_begins(far: Remote, files: Files) -> None:
    never = far.start(held_back(["echo", "begun"]), held=True, stdout=files.out, stderr=files.err)
    never.kill()
    assert files.said().strip() == ""


def test_kill_ends_the_command_itself(far: Remote, files: Files) -> None:
    going = far.start(["sh", "-c", "echo $$; exec sleep 1000"], stdout=files.out, stderr=files.err)
    pid = _told_pid(files)
    assert alive(pid)
    going.kill()
    assert not alive(pid)
    going.kill()  # again is fine


def test_the_command_ends_when_its_client_is_killed(far: Remote, files: Files) -> None:
    """The client is this side's process; what it leaves open over there, the guard must notice."""
    out, err = os.pipe(), files.err
    with files.out.open("wb") as stdout, err.open("wb") as stderr:
        pipe_end = out[1]
        client = subprocess.Popen(
            [*far.client, "sh", "-c", GUARD, "sh", "now", "sh", "-c", "echo $$; exec sleep 1000"],
            stdin=out[0], stdout=stdout, stderr=stderr,
        )  # fmt: skip
        os.close(out[0])
    pid = _told_pid(files)
    os.close(pipe_end)  # as the kernel does for who is killed
    assert ends(pid)
    assert client.wait(PATIENCE) == 128 + signal.SIGKILL


def test_nothing_of_the_guard_stays_behind(far: Remote, files: Files) -> None:
    """Its watch must not keep the output open: the client would wait for the end of that."""
    reader, writer = os.pipe()
    with files.err.open("wb") as err:
        client = subprocess.Popen(
            [*far.client, "sh", "-c", GUARD, "sh", "now", "echo", "done"],
            stdin=subprocess.PIPE, stdout=writer, stderr=err,
        )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader) as stream:
        assert stream.read() == "done\n"  # to its end
    assert client.wait(PATIENCE) == 0
    assert client.stdin is not None
    client.stdin.close()


def _told_pid(files: Files) -> int:
    until(lambda: files.out.read_text().endswith("\n"), files.said)
    return int(files.out.read_text())


def test_run_passes_input_and_settings_and_says_where_it_failed(far: Remote) -> None:
    assert far.run(["sh", "-c", 'cat; echo "$A"'], stdin="in ", env={"A": "b c"}).stdout == "in b c\n"
    with pytest.raises(CommandError, match=r"far: sh -c echo no >&2; exit 9 ended with 9: no"):
        far.run(["sh", "-c", "echo no >&2; exit 9"])
    assert far.run(["false"], check=False).status == 1


class Losing(Local):
    """An origin whose client ends well and loses all that was said, some times."""

    def __init__(self, times: int) -> None:
        self.times = times

    def run(self, argv: Sequence[str], **more: Any) -> Result:
        done = super().run(argv, **more)
        self.times -= 1
        return Result(done.status, "", done.stderr) if self.times >= 0 else done


def test_what_a_client_has_lost_is_asked_for_again() -> None:
    far = Remote("far", Losing(2), ["env"])
    assert far.run(["cat"], stdin="said").stdout == "said"
    assert far.run(["true"]).stdout == ""


def test_what_is_always_lost_is_an_error_and_not_nothing() -> None:
    with pytest.raises(CommandError, match="far: true ended with 0: its output was lost on the way 3 times"):
        Remote("far", Losing(3), ["env"]).run(["true"])


def test_a_client_that_fails_is_not_asked_again() -> None:
    origin = Losing(1)
    assert Remote("far", origin, ["env"]).run(["sh", "-c", "exit 9"], check=False).status == 9
    assert origin.times == 0
