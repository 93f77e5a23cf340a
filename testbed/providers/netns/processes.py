"""The first processes of sandboxes, as ``/proc`` shows them: anybody's, of any copy of this project.

A sandbox is known by the arguments of its first process (``init.py``), and needs no file to be found.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Set
from dataclasses import dataclass
from pathlib import Path

INIT = Path(__file__).with_name("init.py")
# The dot keeps a run's own sandbox apart from lasting testbeds, whose names have none.
RUN = "a.run"
# Where one that stays says what it holds, in its own file system.
STATE = "/run/testbed/state.json"
# Where that is in any copy.
_TAIL = "/".join(INIT.parts[-4:])


@dataclass(frozen=True)
class FirstProcess:
    """The process that is a sandbox's first."""

    pid: int
    user: int  # its owner's id
    init: str  # the program that it runs
    name: str  # of the sandbox


def first_processes() -> list[FirstProcess]:
    """Return all that ``/proc`` shows; see ``hidden``."""
    return list(_found(Path("/proc")))


def hidden() -> bool:
    """Tell whether ``/proc`` keeps other users' processes to itself (its option hidepid, proc(5))."""
    if os.geteuid() == 0:
        return False
    groups = {str(group) for group in os.getgroups()}
    return hides(Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace"), groups)


def hides(mounts: str, groups: Set[str]) -> bool:
    """Tell from the text of ``/proc/mounts`` whether members of these groups see their own processes only."""
    fields = [line.split() for line in mounts.splitlines()]
    last = next((field[3] for field in reversed(fields) if field[1] == "/proc"), "")
    options = dict(option.partition("=")[::2] for option in last.split(","))
    return options.get("hidepid", "0") not in ("0", "off") and options.get("gid") not in groups


def _found(proc: Path) -> Iterator[FirstProcess]:
    for directory in proc.glob("[0-9]*"):
        try:
            argv = (directory / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
            user = directory.stat().st_uid
        except OSError:  # it has ended meanwhile, or is hidden
            continue
        if len(argv) > 2 and argv[-2].endswith(_TAIL) and "python" in argv[0]:
            yield FirstProcess(int(directory.name), user, argv[-2], argv[-1])
