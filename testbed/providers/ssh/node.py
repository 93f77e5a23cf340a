"""A node that is a machine: commands through SSH, as root; see testbed.access.place.Node.

A command is a list of arguments everywhere but here: SSH itself knows only one string, which the login shell
takes apart again. ``command_line`` makes it, for a POSIX shell.
"""

from __future__ import annotations

import io
import shlex
import tarfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import paramiko

from testbed.access import local
from testbed.access.place import CommandError, Process, Result, Runs
from testbed.access.remote import END_SECONDS, GUARD
from testbed.providers.ssh.connection import ConnectError, Connection, lost

SUDO = ("sudo", "-n", "--")
ENVIRONMENT = {name: local.ENVIRONMENT[name] for name in ("PATH", "LC_ALL")}
# In the environment of every process that a run starts, so that those which outlive it are known for its own.
MARK = "CONCORDE_TESTBED"
LOST = 255  # the exit status of the ssh program, too, when there was none
KILLED = 137
BLOCK = 65_536


class SshNode(Runs):
    """One machine, entered as root; ``prepare`` comes first."""

    cgroup = ""  # see testbed.access.place.Node

    def __init__(self, connection: Connection, run: str) -> None:
        self.connection = connection
        self.name = connection.machine.name
        self._mark = mark(run, self.name)
        self.directory = ""  # the run's own, once there is one
        self._sudo: Sequence[str] = ()

    def prepare(self) -> None:
        """Log in, and find out how to be root. Raises ConnectError."""
        if self._plain(["id", "-u"]).stdout.strip() == "0":
            return
        asked = self._plain([*SUDO, "true"])
        if asked.status != 0:
            raise ConnectError(
                self.connection.machine,
                f"sudo does not make {self.connection.machine.user} root without a password "
                f"({asked.stderr.strip().partition(chr(10))[0]}): allow it in /etc/sudoers.d (NOPASSWD: ALL)",
            )
        self._sudo = SUDO

    def _run(self, argv: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float) -> Result:
        # The machine itself ends what takes too long: over here only the waiting would end.
        limited = ["timeout", "-s", "KILL", f"{timeout:g}", *argv]
        began = time.monotonic()
        done = self._attempt(argv, command_line(limited, self._environment(env), self._sudo), stdin, timeout)
        if done.status == KILLED and time.monotonic() - began >= timeout:
            raise CommandError(self.name, argv, "no end", f"still running after {timeout:g} s")
        return done

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command there; see Place. With ``held`` it begins when released."""
        guarded = ["sh", "-c", GUARD, "sh", "held" if held else "now", *argv]
        return SshProcess(self.name, self.channel(argv, guarded), stdout, stderr)

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Start a client there, which sees the end of the connection itself; see Place."""
        return SshProcess(self.name, self.channel(argv, argv), stdout, stderr)

    def channel(
        self, argv: Sequence[str], command: Sequence[str], env: Mapping[str, str] | None = None
    ) -> paramiko.Channel:
        """Start a command that is spoken to. Raises CommandError, which names it ``argv``."""
        channel = self._open(argv)
        try:
            channel.exec_command(command_line(command, self._environment(env), self._sudo))
        except (paramiko.SSHException, EOFError, OSError) as error:
            channel.close()
            raise _unanswered(self.name, argv, error) from None
        return channel

    def bring(self, directory: Path) -> str:
        """Copy a directory of this machine into the run's own there, and return its path; by SFTP."""
        here = io.BytesIO()
        with tarfile.open(fileobj=here, mode="w:gz", compresslevel=1) as archive:
            archive.add(directory, ".")
        here.seek(0)
        target, archived = f"{self.directory}/{directory.name}", f"{self.incoming}/{directory.name}.tar.gz"
        try:
            with self.connection.files() as files:
                files.putfo(here, archived)
        except (OSError, paramiko.SSHException, EOFError) as error:
            raise CommandError(self.name, ["sftp", archived], "an error", str(error)) from None
        self.run(["mkdir", "-p", target])
        unpack = ["tar", "--extract", "--gzip", "--no-same-owner", "--file", archived, "--directory", target]
        self.run(unpack)
        return target

    @property
    def incoming(self) -> str:
        """The directory in which the login user, who may not be root, puts files."""
        return f"{self.directory}/incoming"

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        scratch = {"TMPDIR": self.directory} if self.directory else {}
        return {**ENVIRONMENT, **scratch, MARK: self._mark, **(env or {})}

    def _plain(self, argv: Sequence[str]) -> Result:
        return self._attempt(argv, command_line(argv, ENVIRONMENT, ()), "", 20)

    def _open(self, argv: Sequence[str]) -> paramiko.Channel:
        try:
            return self.connection.open()
        except ConnectError as error:
            message = str(error).partition(": ")[2]
            raise CommandError(self.name, argv, "no connection", message) from error

    def _attempt(self, argv: Sequence[str], line: str, stdin: str, timeout: float) -> Result:
        channel = self._open(argv)
        out, err = io.BytesIO(), io.BytesIO()
        try:
            channel.exec_command(line)
            pumps = [_pump(channel.recv, out), _pump(channel.recv_stderr, err)]
            with suppress(OSError):  # it has ended without reading all, and its status says how
                channel.sendall(stdin.encode())
                channel.shutdown_write()
            ended = channel.status_event.wait(timeout + END_SECONDS)
            if ended:
                for pump in pumps:
                    pump.join(timeout)
        except (paramiko.SSHException, EOFError, OSError) as error:
            raise _unanswered(self.name, argv, error) from None
        finally:
            channel.close()
        if not ended:
            raise CommandError(self.name, argv, "no end", f"still running after {timeout:g} s")
        if channel.exit_status == -1 and lost(channel):
            raise CommandError(self.name, argv, "no answer", "the connection was lost while it ran")
        return Result(channel.exit_status, _text(out), _text(err))


class SshProcess:
    """A command behind a guard; see testbed.access.place.Process."""

    def __init__(self, name: str, channel: paramiko.Channel, stdout: Path, stderr: Path) -> None:
        self._name = name
        self._channel = channel
        self._began = time.monotonic()
        self._stderr = stderr
        # Unbuffered: what comes is there for whoever looks.
        self._files = [stdout.open("wb", buffering=0), stderr.open("wb", buffering=0)]
        self._pumps = [_pump(channel.recv, self._files[0]), _pump(channel.recv_stderr, self._files[1])]
        self._status: int | None = None

    def release(self) -> None:
        """Let a held command begin."""
        with suppress(OSError):  # it has ended already, and wait() says how
            self._channel.sendall(b"\n")

    def end_input(self) -> None:
        """Tell the guard to end the command."""
        with suppress(OSError, EOFError):
            self._channel.shutdown_write()

    def wait(self, timeout: float | None = None) -> int | None:
        """Return the exit status, or None if it has not ended after ``timeout`` seconds.

        A lost connection has the ssh program's status, and like there the words are among the errors.
        """
        if self._status is None and self._channel.status_event.wait(timeout):
            self._status = self._end()
        return self._status

    def kill(self) -> None:
        """End the command over there, and wait for its end."""
        if self._status is None:
            self.end_input()
            if self.wait(END_SECONDS) is None:
                self._channel.close()
                self._status = self._end()

    def _end(self) -> int:
        was_lost = self._channel.exit_status == -1 and lost(self._channel)
        for pump in self._pumps:
            pump.join(END_SECONDS)
        self._channel.close()
        for file in self._files:
            file.close()
        if not was_lost:
            return self._channel.exit_status
        with self._stderr.open("a", encoding="utf-8") as errors:
            seconds = time.monotonic() - self._began
            errors.write(f"{self._name}: the connection was lost after {seconds:.1f} s\n")
        return LOST


def mark(run: str, node: str) -> str:
    """Return what tells the processes of a run on a node from all others."""
    return f"{run}/{node}"


def command_line(argv: Sequence[str], env: Mapping[str, str], sudo: Sequence[str]) -> str:
    """Return the string for SSH that runs a command, as root, in this environment and nothing else."""
    settings = [f"{name}={value}" for name, value in env.items()]
    return shlex.join([*sudo, "env", "-i", *settings, *argv])


def _pump(read: Callable[[int], bytes], target: IO[bytes]) -> threading.Thread:
    """Copy what comes, until its end, in a thread."""

    def copy() -> None:
        with suppress(OSError, ValueError):  # ValueError: nobody waits for the rest any more
            while block := read(BLOCK):
                target.write(block)

    thread = threading.Thread(target=copy, daemon=True)
    thread.start()
    return thread


def _unanswered(name: str, argv: Sequence[str], error: Exception) -> CommandError:
    return CommandError(name, argv, "no answer", f"the connection was lost: {error or type(error).__name__}")


def _text(stream: io.BytesIO) -> str:
    return stream.getvalue().decode("utf-8", errors="replace")
