"""This machine as a place, with the environment of whoever called: kubeconfigs lead to credential helpers."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from os import environ
from pathlib import Path

from testbed.access.place import RUN_SECONDS, CommandError, Process, Result, Runs

# What Go's client says (net/http, transport.go) of a server that takes connections and after ten seconds has
# not had the time to shake hands: an API on a slow machine, for as long as nodes or pods come up.
TOO_BUSY = "net/http: TLS handshake timeout"
ATTEMPTS = 12
# Who has heard nothing from an API for 30 s asks for a sign of life, and breaks off after these seconds, by
# itself 15 (#95981; apimachinery, util/net/http.go): too few for an API on a slow machine.
SIGN_OF_LIFE = "HTTP2_PING_TIMEOUT_SECONDS"
SETTINGS = {SIGN_OF_LIFE: f"{RUN_SECONDS:g}"}


class Local(Runs):
    """Where kubectl runs; satisfies testbed.access.place.Place."""

    name = "this machine"

    def _run(self, argv: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float) -> Result:
        """Run a command, and again if the server it asks was too busy to hear what it wants.

        Nothing has happened then.
        """
        for _ in range(ATTEMPTS):
            done = run_to_end(self.name, argv, argv, {**surroundings(), **env}, stdin, timeout)
            if done.status == 0 or TOO_BUSY not in done.stderr:
                break
        return done

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command that ends with its standard input, as kubectl exec does; see Place.

        The kernel could see to that (``setpriv --pdeathsig``), but at the end of the thread that started it.
        """
        return LocalProcess(started(argv, surroundings(), stdout, stderr, held))


def surroundings() -> dict[str, str]:
    """Return the environment of whoever called, who may have settings of their own."""
    return {**SETTINGS, **environ}


# What commands in a sandbox see of the environment. Debian keeps ip, tc and nft where an ordinary user's PATH
# does not look; temporary files go where they vanish with the sandbox.
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "TMPDIR": "/run",
}


def started(
    argv: Sequence[str], env: Mapping[str, str], stdout: Path, stderr: Path, held: bool
) -> subprocess.Popen[bytes]:
    """Start a command in a session of its own, whose output goes to files; ``held`` leaves its input open."""
    with stdout.open("wb") as out, stderr.open("wb") as err:
        return subprocess.Popen(
            argv,
            stdin=subprocess.PIPE if held else subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=env,
            start_new_session=True,
        )


class LocalProcess:
    """A process started through ``nsenter``; it dies with it (``setpriv --pdeathsig``)."""

    def __init__(self, popen: subprocess.Popen[bytes]) -> None:
        self.popen = popen

    def release(self) -> None:
        """Let a held command begin; see testbed.access.place.Process."""
        assert self.popen.stdin is not None, "it was not started held"
        with suppress(BrokenPipeError):  # it has ended already, and wait() says how
            self.popen.stdin.write(b"\n")
            self.popen.stdin.flush()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status, or None if it has not ended after ``timeout`` seconds."""
        try:
            status = self.popen.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self.end_input()
        return status

    def kill(self) -> None:
        """End it and wait for its end."""
        self.popen.kill()
        self.popen.wait()
        self.end_input()

    def end_input(self) -> None:
        """End its standard input, if that is held open."""
        if self.popen.stdin is not None:
            with suppress(BrokenPipeError):
                self.popen.stdin.close()


def run_to_end(
    where: str, argv: Sequence[str], way: Sequence[str], env: Mapping[str, str], stdin: str, timeout: float
) -> Result:
    """Run ``way``, the command line by which this machine gets to the command ``argv``, to its end.

    Raises CommandError, with the name of the place, when that takes longer than ``timeout`` seconds.
    """
    try:
        done = subprocess.run(
            way,
            input=stdin,
            env=env,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
            # A Ctrl-C at the terminal is for the harness, which knows what to do about it.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        raise CommandError(where, argv, "no end", f"still running after {timeout:g} s") from None
    return Result(done.returncode, done.stdout, done.stderr)
