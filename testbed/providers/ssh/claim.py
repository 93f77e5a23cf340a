"""A process on a machine for as long as a run lasts: it claims the machine, and tells its time.

The claim is an abstract Unix socket, which one process can bind: it leaves no file, and ends with the
process, which ends with its connection.
"""

from __future__ import annotations

import time

import paramiko

from testbed.access.clocks import Clock, Reading, estimate
from testbed.access.place import CommandError
from testbed.providers.ssh.node import MARK, SshNode, mark

EXCHANGES = 10
SECONDS = 10.0
NAME = ["claim"]

PROGRAM = """
import socket, sys, time
claim = socket.socket(socket.AF_UNIX)
try:
    claim.bind("\\0concorde-testbed")
except OSError:
    sys.exit("taken")
print("claimed", flush=True)
while sys.stdin.readline():
    print(time.time_ns(), flush=True)
"""


class Claim:
    """A machine that is claimed."""

    def __init__(self, node: SshNode, channel: paramiko.Channel) -> None:
        self._node = node
        self._channel = channel
        self._lines = channel.makefile("r")

    @classmethod
    def start(cls, node: SshNode, run: str) -> Claim | None:
        """Claim a machine for a run; None if it is claimed already. Raises CommandError."""
        program = ["/usr/bin/python3", "-I", "-S", "-c", PROGRAM]
        channel = node.channel(NAME, program, {MARK: mark_of(run, node.name)})
        channel.settimeout(SECONDS)
        claim = cls(node, channel)
        if claim._line() == "claimed":
            return claim
        words = channel.recv_stderr(4096).decode(errors="replace").strip()
        channel.close()
        if words == "taken":
            return None
        raise CommandError(node.name, NAME, "no answer", words or "the connection was lost")

    @property
    def alive(self) -> bool:
        """Whether the claim is still ours."""
        return not self._channel.closed and not self._channel.exit_status_ready()

    def clock(self) -> Clock:
        """Compare the machine's clock with ours. Raises CommandError."""
        return estimate([self._exchange() for _ in range(EXCHANGES)])

    def stop(self) -> None:
        """Give the machine free."""
        self._channel.close()

    def _exchange(self) -> Reading:
        try:
            sent = time.time_ns()
            self._channel.sendall(b"\n")
            there = int(self._line())
            return Reading(sent / 1e9, there / 1e9, there / 1e9, time.time_ns() / 1e9)
        except (OSError, ValueError) as error:
            raise CommandError(self._node.name, NAME, "no answer", str(error)) from None

    def _line(self) -> str:
        try:
            line: str = self._lines.readline()
        except OSError:
            return ""
        return line.strip()


def mark_of(run: str, node: str) -> str:
    """Return what tells a run's claim from its other processes, which may have to end before it."""
    return mark(f"{run}/claim", node)
