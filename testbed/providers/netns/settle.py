"""Lets traffic wait for its class in network namespaces whose nodes share processors.

Where links have a rate, packets queue for them, and nodes that share processors then disturb TCP in two ways
that machines of their own do not.

The packets of a flow wait in the backlogs of several processors and overtake each other, which TCP takes for
loss. So every interface steers a flow's packets to one processor (receive packet steering, kernel
Documentation/networking/scaling.rst), and RACK, for which what is later than a fraction of the round trip -
here a few microseconds - is lost (RFC 8985, section 6.2), is off (ip-sysctl: tcp_recovery).

And a sender waits for a processor now and then, longer than the 3 MB last that Linux's usual buffers let it
send ahead: 6 ms of 4 Gbit/s. With these buffers what waits is limited by the queue of its class.

Run as a program, with the paths of the namespaces on standard input. It has mounts of its own, and enters one
namespace after the other: a process for each would take ten times as long.
"""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress
from pathlib import Path

SETTINGS = {
    "tcp_recovery": "0",
    "tcp_rmem": "4096 131072 33554432",
    "tcp_wmem": "4096 65536 33554432",
}
# <linux/sched.h> and <sys/mount.h>
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000
MS_PRIVATE_BELOW = 0x4000 | 0x40000
MNT_DETACH = 2

_libc = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Settle all namespaces, or say which one could not be, and why."""
    _call("unshare", CLONE_NEWNS)
    _call("mount", b"none", b"/", None, MS_PRIVATE_BELOW, None)
    processors = _processors(Path("/proc/self/status").read_text(encoding="ascii"))
    for path in sys.stdin.read().splitlines():
        try:
            _settle(path, processors)
        except OSError as error:
            sys.exit(f"{path}: {error}")


def _settle(path: str, processors: str) -> None:
    namespace = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    _call("setns", namespace, CLONE_NEWNET)
    os.close(namespace)
    for name, value in SETTINGS.items():
        Path("/proc/sys/net/ipv4", name).write_text(value, encoding="ascii")
    with suppress(OSError):  # for root only
        _call("mount", b"sysfs", b"/sys", b"sysfs", 0, None)
        try:
            for queue in Path("/sys/class/net").glob("*/queues/rx-*/rps_cpus"):
                queue.write_text(processors, encoding="ascii")
        finally:
            _call("umount2", b"/sys", MNT_DETACH)


def _processors(status: str) -> str:
    """Return the mask of the processors that a process may use, from its ``/proc/PID/status``."""
    return next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed:"))


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns 0. Raises OSError."""
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


if __name__ == "__main__":
    main()
