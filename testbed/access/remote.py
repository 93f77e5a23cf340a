"""Places at the far end of a client program: ``kubectl exec``, ``ctr task exec``, ``ssh``.

Such a client's end is not the end of what it started: the command over there goes on, unseen. So what is
started goes through a guard, a few lines of shell at the far end, which ends the command when its standard
input ends. The caller holds the other end of that: when it closes it, or dies however, the command dies too.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.access.place import CommandError, Place, Process, Result, Route, Runs

# For any POSIX shell; tested with dash, busybox and bash. Its first argument is ``now`` or ``held``, the rest
# is the command. A held command begins with the first line, for which the guard says that it waits, and gets
# that line: it may be waiting for one itself (place.held_back, which says so alike). The command has none
# of the guard's own descriptors, and the guard's exit status is the command's.
GUARD = """
exec 3<&0
begin=$1
shift
if [ "$begin" = held ]; then
    echo >&2
    read -r line <&3 || exit 137
    "$@" 3<&- <<END &
$line
END
else
    "$@" 3<&- </dev/null &
fi
command=$!
{ while read -r line <&3; do :; done; kill -KILL "$command"; } </dev/null >/dev/null 2>&1 &
watch=$!
wait "$command"
status=$?
kill -KILL "$watch" 2>/dev/null
exit "$status"
"""

# What is run says a mark at last: a client may end well and yet have lost what the command said, and lost
# counters must not be taken for an interface that is not there.
MARKED = """
mark=$1
shift
"$@"
status=$?
printf '%s' "$mark"
exit "$status"
"""
ATTEMPTS = 3

# How long a far end may take to notice that its input has ended, and to say that the command has ended too.
END_SECONDS = 5.0


@dataclass(frozen=True)
class Remote(Runs):
    """A place that a client program leads to; satisfies testbed.access.place.Place."""

    name: str
    origin: Place  # where the client runs
    client: Sequence[str]  # its command line, up to the command over there

    @property
    def route(self) -> Route:
        """How commands get there: by where the client runs."""
        return self.origin.route.then(*self.client)

    def _run(self, argv: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float) -> Result:
        """Run a command over there.

        Its standard input is not the guard's to watch: one that takes longer than ``timeout`` is left behind.
        If what it said is lost it is run again, so it must be one that may be.
        """
        settings = ["env", *(f"{name}={value}" for name, value in env.items())] if env else []
        for _ in range(ATTEMPTS):
            mark = secrets.token_hex(8)
            marked = [*self.client, "sh", "-c", MARKED, "sh", mark, *settings, *argv]
            done = self.origin.run(marked, stdin=stdin, check=False, timeout=timeout)
            if done.stdout.endswith(mark) or done.status != 0:  # without a mark it is the client that failed
                break
        else:
            raise CommandError(self.name, argv, 0, f"its output was lost on the way {ATTEMPTS} times")
        return Result(done.status, done.stdout.removesuffix(mark), done.stderr)

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command over there; see Place. With ``held`` it begins when released."""
        guarded = ["sh", "-c", GUARD, "sh", "held" if held else "now", *argv]
        return RemoteProcess(self.attach(guarded, stdout=stdout, stderr=stderr))

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Start a client over there, behind ours; see Place."""
        return self.origin.attach([*self.client, *argv], stdout=stdout, stderr=stderr)


@dataclass(frozen=True)
class RemotePod(Remote):
    """A pod or container that a client program leads to; satisfies testbed.access.place.PodPlace."""

    address: str
    host_interface: str
    published: str = ""
    interface: str = "eth0"


class RemoteProcess:
    """A command behind a client and a guard: a Process (testbed.access.place), whose end alone is its own."""

    def __init__(self, client: Process) -> None:
        self._client = client
        self.release, self.end_input, self.wait = client.release, client.end_input, client.wait

    def kill(self) -> None:
        """End the command over there, then its client."""
        self.end_input()
        self.wait(END_SECONDS)
        self._client.kill()
