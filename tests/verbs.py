"""Verbs as a user runs them, each in a process of its own: forked from one that has all imports already.

To start Python and import what a verb needs takes longer than most verbs do, and where hundreds are run it is
what a test run waits for. The process differs from ``tasks.py`` in how it began and is given up, and in
nothing else: it has its own command line, environment, directory and standard streams, and ends with a status
or by a signal. What
a test is about that an interpreter does before the first import - its options, its environment - is not shown
this way, and neither is what a verb imports.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import IO, Any, Literal

from tests.paths import ROOT

LONGEST = 2**17  # bytes of a question; an environment is a few thousand


def run(
    *arguments: str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    stdout: IO[str] | int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a verb to its end; what it says is kept, but for what goes to a ``stdout`` of the caller's."""
    return start(*arguments, cwd=cwd, env=env, stdout=stdout).communicate()


def start(
    *arguments: str,
    cwd: Path = ROOT,
    env: Mapping[str, str] | None = None,
    stdout: IO[str] | int | None = None,
) -> Started:
    """Start a verb; see ``run``."""
    out, err = os.memfd_create("out"), os.memfd_create("err")
    asked = {
        "argv": ["tasks.py", *arguments],
        "cwd": str(cwd),
        "env": dict(os.environ if env is None else env),
    }
    theirs = out if stdout is None else stdout if isinstance(stdout, int) else stdout.fileno()
    with Path(os.devnull).open() as nothing:
        answer = _server().ask(asked, [nothing.fileno(), theirs, err])
    return Started(list(arguments), answer, out, err)


class Started:
    """A verb that has been started."""

    def __init__(self, arguments: list[str], pid: int, out: int, err: int) -> None:
        self.pid = pid
        self._arguments = arguments
        self._streams = out, err

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal; it may have ended, for it is not forgotten before ``communicate``."""
        os.kill(self.pid, number)

    def communicate(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end; return its status, negative for a signal, and what it said."""
        status = _server().ask({"wait": self.pid})
        said = []
        for descriptor in self._streams:
            with os.fdopen(descriptor) as stream:
                stream.seek(0)
                said.append(stream.read())
        return subprocess.CompletedProcess(self._arguments, status, *said)


class _Server:
    """The process that has all imports."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.verbs", str(theirs.fileno())],
                cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip

        atexit.register(self.end)

    def end(self) -> None:
        """Let it go: nobody asks any more."""
        self._socket.close()
        self._process.wait()

    def ask(self, question: Mapping[str, Any], descriptors: list[int] | None = None) -> int:
        socket.send_fds(self._socket, [json.dumps(question).encode()], descriptors or [])
        answer = self._socket.recv(LONGEST)
        assert answer, "the process that has all imports is gone"
        return int(answer)


@cache
def _server() -> _Server:
    return _Server()


def _serve(descriptor: int) -> Literal["end"] | dict[str, Any]:
    """Fork for each question; return in a new process what it shall do, or here when nobody asks any more."""
    with socket.socket(fileno=descriptor) as asking:
        while True:
            content, descriptors, _, _ = socket.recv_fds(asking, LONGEST, 3)
            if not content:
                return "end"
            question: dict[str, Any] = json.loads(content)
            if "wait" in question:
                _, status = os.waitpid(question["wait"], 0)
                asking.send(str(os.waitstatus_to_exitcode(status)).encode())
            elif child := os.fork():
                asking.send(str(child).encode())
                for one in descriptors:
                    os.close(one)
            else:
                for stream, one in enumerate(descriptors):
                    os.dup2(one, stream)
                    os.close(one)
                return question


def _become(question: dict[str, Any]) -> None:
    """Be the process that was asked for. Does not return."""
    os.chdir(question["cwd"])
    os.environ.clear()
    os.environ.update(question["env"])
    time.tzset()
    sys.argv[:] = question["argv"]
    tempfile.tempdir = None
    import tasks

    try:
        tasks.main()
    except SystemExit as end:
        # To take Python apart would touch, and so copy, what all these processes have in common: that takes
        # longer than most verbs.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))


def _import_all() -> None:
    import importlib

    from bench import pipeline
    from bench.cli import program, table

    pipeline.prepare()
    for verb in table.VERBS.values():
        importlib.import_module(f"bench.{verb.function.partition(':')[0]}")
    assert program.collected(table.VERBS.values())
    gc.freeze()


if __name__ == "__main__":
    _import_all()
    asked_for = _serve(int(sys.argv[1]))
    if asked_for != "end":
        _become(asked_for)
