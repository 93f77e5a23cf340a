"""A sandbox: one process that owns every namespace, link, mount and process of a testbed.

Nothing is made on the host itself, so nothing can be left behind or deleted by mistake: ``stop`` is the end
of that process, and so is a crash. As an ordinary user the sandbox lives in a user namespace, where that user
is root; as root it does not need one.
"""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testbed.access.local import ENVIRONMENT, LocalProcess, run_to_end, started
from testbed.access.place import Process, Result, Runs
from testbed.providers.netns.processes import INIT, first_processes

READY_SECONDS = 60.0

# Makes nodes; their names are its arguments. A process holds each node's namespaces, for the kernel does not
# always let a mount namespace be kept by a file (mnt_ns_loop in fs/namespace.c compares identifiers, which
# since Linux 6.18 are no longer given out in order). A link leads to that process: a relative one, which
# means the sandbox's /proc from wherever it is followed. The pipe ends when every holder is ready or failed.
# A node sends no redirects: who has been sent one is for a second not told that nobody is behind a service
# (net/ipv4/route.c and icmp.c share an address's rate_last).
ADD_NODES = """
cd /run/testbed/nodes || exit 1
for node in "$@"; do
    unshare --net --mount sh -ec '
        mount -t tmpfs -o nosuid,nodev,mode=755 tmpfs /run
        mkdir /run/netns
        for one in all default; do echo 0 >"/proc/sys/net/ipv4/conf/$one/send_redirects"; done
        ln -s "../../../proc/$$" "$1"
        echo ready
        exec sleep infinity >/dev/null 2>&1' sh "$node" </dev/null &
done | [ "$(grep -c ready)" -eq $# ]
"""


class SandboxError(RuntimeError):
    """The kernel or its settings do not allow a sandbox; ``doctor`` says what to do."""


class EnteredProcess(LocalProcess):
    """A process in a sandbox, for which nsenter waits outside."""

    def kill(self) -> None:
        """End it and wait for its end; see testbed.access.place.Process.

        If nsenter went first, whoever reaps orphans outside would have to reap it, and the sandbox's end
        waits for that (zap_pid_ns_processes in kernel/pid_namespace.c).
        """
        for child in _children(self.popen.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):
                self.popen.wait(READY_SECONDS)
        super().kill()


def _children(pid: int) -> list[int]:
    """Return the children of a process that has one thread (proc(5))."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@dataclass(frozen=True)
class Entrance(Runs):
    """How commands get to one place of a sandbox; satisfies the Node protocol."""

    name: str
    prefix: tuple[str, ...]
    cgroup: str = ""  # see testbed.access.place.Node

    def _run(self, argv: Sequence[str], stdin: str, env: Mapping[str, str], timeout: float) -> Result:
        return run_to_end(self.name, argv, [*self.prefix, *argv], {**ENVIRONMENT, **env}, stdin, timeout)

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Start a command there; see testbed.access.place.Place."""
        command = [*self.prefix, "setpriv", "--pdeathsig", "KILL", "--", *argv]
        return EnteredProcess(started(command, ENVIRONMENT, stdout, stderr, held))


class Sandbox:
    """A running sandbox, known by the process id of its first process."""

    def __init__(self, name: str, pid: int, starter: subprocess.Popen[str] | None = None) -> None:
        self.name = name
        self.pid = pid
        self.cgroup = name_of(pid)
        self._starter = starter

    @classmethod
    def start(cls, name: str) -> Sandbox:
        """Start a sandbox that ends with this process. Raises SandboxError if the system forbids it."""
        remove_dead()
        user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
        starter = subprocess.Popen(
            ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--kill-child",
             sys.executable, "-I", "-S", str(INIT), name],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            encoding="utf-8", env=ENVIRONMENT, start_new_session=True,
        )  # fmt: skip
        assert starter.stdout is not None
        line = _line_within(starter.stdout, READY_SECONDS)
        if not line.strip().isdigit():
            starter.kill()
            _, text = starter.communicate()
            why = text.strip() or "unshare did not answer"
            raise SandboxError(f"no sandbox on this machine: {why} (./invokew doctor says what to do)")
        return cls(name, int(line), starter)

    @classmethod
    def find(cls, name: str) -> Sandbox | None:
        """Return the lasting sandbox of this name that belongs to this user."""
        return next((box for box in cls.all() if box.name == name), None)

    @classmethod
    def all(cls) -> list[Sandbox]:
        """Return this user's sandboxes, by name; ephemeral ones included."""
        mine = [
            cls(first.name, first.pid)
            for first in first_processes()
            if first.init == str(INIT) and first.user == os.geteuid()
        ]
        return sorted(mine, key=lambda box: box.name)

    def keep(self) -> None:
        """Let the sandbox outlive this process, until somebody stops it."""
        assert self._starter is not None
        assert self._starter.stdin is not None
        self._starter.stdin.write("stay\n")
        self._starter.stdin.close()

    def stop(self) -> None:
        """End the sandbox and everything in it, and wait for that end."""
        with suppress(ProcessLookupError):  # it has ended, but its cgroups do not end with it
            self._kill()
        if self._starter is not None:
            self._starter.wait()
            for stream in (self._starter.stdin, self._starter.stdout, self._starter.stderr):
                if stream is not None:
                    stream.close()
        remove(self.cgroup)

    def _kill(self) -> None:
        watch = os.pidfd_open(self.pid)
        try:
            signal.pidfd_send_signal(watch, signal.SIGKILL)
            select.select([watch], [], [])
        finally:
            os.close(watch)

    @property
    def switch(self) -> Entrance:
        """The sandbox's own namespaces, where the underlay's switch is."""
        return Entrance("switch", self._prefix("net", "mount"))

    @property
    def outside(self) -> Entrance:
        """The host's network and files; processes there end with the sandbox all the same."""
        return Entrance("host", self._prefix())

    def network(self, name: str) -> str:
        """Return the path of a node's network namespace, on the host."""
        return f"/proc/{self.pid}/root{node_directory(name)}/ns/net"

    def node(self, name: str) -> Entrance:
        """The namespaces of a node that ``add_nodes`` made."""
        root = f"/proc/{self.pid}/root{node_directory(name)}"
        prefix = self._prefix(f"net={root}/ns/net", f"mount={root}/ns/mnt")
        return Entrance(name, prefix, f"{self.cgroup}/{name}")

    def _prefix(self, *namespaces: str) -> tuple[str, ...]:
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        entered = [f"--{namespace}" for namespace in namespaces]
        return ("nsenter", f"--target={self.pid}", *user, "--pid", *entered, "--")

    def add_nodes(self, names: Sequence[str]) -> None:
        """Make a node's network and mount namespace, with a /run of its own, for each name."""
        self.switch.run(["sh", "-c", ADD_NODES, "sh", *names])


class Claim:
    """Exclusive right to bring up a sandbox of one name; given back when this process ends or leaves it."""

    def __init__(self, name: str) -> None:
        # An abstract Unix socket: the kernel allows one binder, and leaves no file behind.
        self._socket = socket.socket(socket.AF_UNIX)
        try:
            self._socket.bind(f"\0concorde-testbed/{os.geteuid()}/{name}")
        except OSError:
            self._socket.close()
            raise SandboxError(f"another process is just bringing up testbed {name!r}") from None

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def node_directory(name: str) -> str:
    """Return what, within the sandbox, leads to the process that holds a node's namespaces."""
    return f"/run/testbed/nodes/{name}"


def _line_within(stream: IO[str], seconds: float) -> str:
    readable, _, _ = select.select([stream], [], [], seconds)
    return stream.readline() if readable else ""


# The sandbox's cgroups are all that it ever leaves for somebody to remove, for they do not end with a
# process. One that needs them has a directory in every hierarchy of the host, whose name tells to which
# process it belongs: its process id and, because those come back, its start time. So a dead sandbox's is
# known for one.
_NAME = re.compile(r"concorde-testbed-(?P<pid>\d+)-(?P<start>\d+)")


def name_of(pid: int) -> str:
    """Return the name of the cgroup of the sandbox with this first process, as the host sees it."""
    return f"concorde-testbed-{pid}-{_start_time(pid)}"


def remove(name: str) -> None:
    """Remove the cgroup of this name with all below it from every hierarchy. Its processes have ended."""
    for hierarchy in _hierarchies():
        for directory, _, _ in os.walk(hierarchy / name, topdown=False):
            with suppress(OSError):  # whoever comes next tries again
                Path(directory).rmdir()


def remove_dead() -> None:
    """Remove the cgroups of sandboxes that have ended without doing so."""
    for name in {
        entry.name for hierarchy in _hierarchies() for entry in hierarchy.glob("concorde-testbed-*")
    }:
        match = _NAME.fullmatch(name)
        if match and str(_start_time(int(match["pid"]))) != match["start"]:
            remove(name)


def mount_points(mounts: str) -> list[str]:
    """Return where cgroup hierarchies of either version are mounted, from the text of ``/proc/mounts``."""
    fields = (line.split() for line in mounts.splitlines())
    return [field[1] for field in fields if field[2] in ("cgroup", "cgroup2")]


def _hierarchies() -> list[Path]:
    return [Path(point) for point in mount_points(Path("/proc/self/mounts").read_text(encoding="utf-8"))]


def _start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot (proc(5)); None if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])
