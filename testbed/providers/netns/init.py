"""The first process of a sandbox: when it ends, the kernel removes everything the sandbox ever held.

It runs inside new net, mount and pid namespaces (``unshare``), gives them a /proc and a /run of their own,
tells its process id as the host sees it, and waits. An ephemeral sandbox ends with its standard input, that
is with the process that started it, however that one dies. The word ``stay`` makes the sandbox a lasting one.

Run as a program with the sandbox's name as its only argument, which lets others find it by that name.
"""

from __future__ import annotations

import os
import signal
import sys


def _reap(_signal: int, _frame: object) -> None:
    """Collect orphans, which the kernel hands to the first process of a pid namespace."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def main() -> None:
    """Prepare the sandbox and live as long as it shall."""
    # Still the host's /proc, so this link tells our process id there and not the 1 that we are in here.
    outer_pid = os.readlink("/proc/self")
    for kind, place in (("proc", "/proc"), ("tmpfs", "/run")):
        status = os.spawnlp(os.P_WAIT, "mount", "mount", "-t", kind, "-o", "nosuid,nodev", kind, place)
        if status != 0:
            sys.exit(f"mount {place} ended with {status}")
    os.makedirs("/run/testbed/nodes")
    signal.signal(signal.SIGCHLD, _reap)
    sys.stdout.write(f"{outer_pid}\n")
    sys.stdout.flush()
    if sys.stdin.readline() == "stay\n":
        nowhere = os.open("/dev/null", os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)
        while True:
            signal.pause()


if __name__ == "__main__":
    main()
