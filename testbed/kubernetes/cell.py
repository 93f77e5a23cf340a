"""The first process of a cell: what a containerd and a kubelet take for a machine of their own.

Two kubelets on one worker share its network and its processes, but must not share what kubelet and containerd
have at fixed places: they delete there what they do not know. So each pair has, in the worker's network,

* a mount namespace in which /var/lib/kubelet, /var/lib/containerd, /run/containerd and so on are its own;
* a cgroup namespace, so that what it takes for the root of all cgroups is one directory of the host's;
* plain files over the host's settings that a kubelet writes: it is content, and the host stays as it is.

Processors are shared out by no cgroup: machines of their own would not share any, and on Linux 6.18 groups
let all others starve for seconds once the processors are busy (docs/explanation/diary.md). Kubernetes
cannot be told so. But in a cell's directory, ``processors`` leads to the group of version 1 in which it was
started itself, and what runs in containers is put back there (testbed.kubernetes.worker, RUNC). Version 2
cannot be had without processors; there the cell's own processes leave most of them to pods.

Run as a program on the worker, with its wishes as JSON on standard input: ``cgroup``, a directory within each
hierarchy; ``directory``, where all that is the cell's own shall lie; ``own``, the paths of which it has its
own; ``settings``, files below /proc/sys with what to show there. Prints its process id once the cell is ready
for ``nsenter``, and stays. Standard library only.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

CLONE_NEWNS, CLONE_NEWCGROUP = 0x00020000, 0x02000000  # linux/sched.h
CGROUPS = "/sys/fs/cgroup"
COMPONENTS = "components"  # where the cell's own processes are: kubepods and others are beside it
# Of version 2, those without which a cell cannot be. With more there are more files, and a kubelet (1.20)
# asks for the status of each every two seconds, and once more for every controller.
CONTROLLERS = ("cpuset", "cpu", "memory", "pids")
# The weight of the cell's own processes in version 2, where a kubelet gives all pods of a machine with one
# processor 39 (of 1024 shares 1 + 1022 * 9999 // 262142; kubelet, cm/cgroup_manager_linux.go): with 100, as
# every group begins, pods whose traffic is measured waited for kubelets.
WEIGHT = 10
PROCESSORS = "processors"
OWN = "own"  # in a cell's directory, what it has of its own instead of the worker's


class Hierarchy(NamedTuple):
    """A mounted cgroup hierarchy."""

    point: str
    version: int
    options: str  # with which to mount it again

    @property
    def controllers(self) -> list[str]:
        """What it controls; nothing is told for version 2, which has all that version 1 has not."""
        return [word for word in self.options.split(",") if word and "=" not in word and word != "none"]

    @property
    def shares_processors(self) -> bool:
        """Whether it says who gets how much of the processors."""
        return "cpu" in self.controllers


def hierarchies(mounts: str) -> list[Hierarchy]:
    """Return the cgroup hierarchies in the text of ``/proc/mounts``: of version 1, 2 or both."""
    found: dict[str, Hierarchy] = {}
    for line in mounts.splitlines():
        _, point, kind, options = line.split()[:4]
        if kind == "cgroup2":
            found[point] = Hierarchy(point, 2, "")
        elif kind == "cgroup":
            general = {
                "rw",
                "ro",
                "relatime",
                "nosuid",
                "nodev",
                "noexec",
                "noatime",
                "xattr",
                "clone_children",
            }
            special = [
                o for o in options.split(",") if o not in general and not o.startswith("release_agent=")
            ]
            named = any(word.startswith("name=") for word in special)
            found[point] = Hierarchy(point, 1, ",".join((["none"] if named else []) + special))
    return list(found.values())


def mount_commands(found: list[Hierarchy]) -> list[list[str]]:
    """Return the commands that mount hierarchies again, as the present cgroup namespace shows them.

    Beside several hierarchies of version 1, the usual links lead from a controller's name to its hierarchy.
    """
    commands = [["umount", "--recursive", "--lazy", CGROUPS]]
    if not any(one.point == CGROUPS for one in found):
        commands.append(["mount", "-t", "tmpfs", "-o", "nosuid,nodev,mode=755", "tmpfs", CGROUPS])
    for one in found:
        kind = "cgroup2" if one.version == 2 else "cgroup"
        if one.point != CGROUPS:
            commands.append(["mkdir", "-p", one.point])
        commands.append(["mount", "-t", kind, *(["-o", one.options] if one.options else []), kind, one.point])
        name = one.point.rpartition("/")[2]
        commands += [
            ["ln", "-sfn", name, f"{CGROUPS}/{controller}"]
            for controller in one.controllers
            if controller != name and one.point != CGROUPS
        ]
    return commands


def own_path(cgroups: str, one: Hierarchy) -> str:
    """Return a process's place in a hierarchy of version 1, from the text of its ``/proc/self/cgroup``."""
    for line in cgroups.splitlines():
        _, controllers, path = line.split(":", 2)
        if set(one.controllers) & set(controllers.split(",")):
            return path
    return "/"


def main() -> None:
    """Make the cell and stay in it."""
    wishes = json.load(sys.stdin)
    found = hierarchies(Path("/proc/self/mounts").read_text(encoding="utf-8"))
    before = Path("/proc/self/cgroup").read_text(encoding="utf-8")
    try:
        for one in found:
            _enter(one, wishes["cgroup"])
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS | CLONE_NEWCGROUP) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        _run(["mount", "--make-rprivate", "/"])
        for one in found:
            _enter(one, f"{wishes['cgroup']}/{COMPONENTS}")
            leave_processors(Path(one.point, wishes["cgroup"], COMPONENTS))
            if one.shares_processors:
                # Where process 1 sees it: another mount of the same hierarchy would confuse kubelets.
                seen = f"/proc/1/root{one.point}{own_path(before, one)}"
                Path(wishes["directory"], PROCESSORS).symlink_to(seen)
        for command in mount_commands(found):
            _run(command)
        _own_places(wishes)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"no cell: {error} {getattr(error, 'stderr', None) or ''}".strip())
    _stay()


def _enter(one: Hierarchy, path: str) -> None:
    """Make a cgroup and those above it, and enter it."""
    directory = Path(one.point)
    passed = []
    for part in path.split("/"):
        passed.append(directory)
        above, directory = directory, directory / part
        directory.mkdir(exist_ok=True)
        if one.version == 1 and "cpuset" in one.controllers:
            _fill(directory, above)
    (directory / "cgroup.procs").write_text(str(os.getpid()), encoding="utf-8")
    if one.version == 2:
        # Not before: with a process of its own a cgroup has no controllers to pass on, or, worse, only some
        # ("threaded" ones), and then no process may go below it.
        for above in passed:
            _pass_on_controllers(above)


def leave_processors(group: Path) -> None:
    """Let others have most of the processors, if a cgroup has them to share and is of version 2."""
    weight = group / "cpu.weight"
    if weight.exists():
        weight.write_text(f"{WEIGHT}", encoding="utf-8")


def _fill(directory: Path, above: Path) -> None:
    """Give a new cpuset the processors and memory it begins without, whoever made it.

    Another cell may be at it too: one that is there may still be empty, and nobody can enter it so.
    """
    for name in ("cpuset.cpus", "cpuset.mems"):
        if not (directory / name).read_text(encoding="utf-8").strip():
            (directory / name).write_text((above / name).read_text(encoding="utf-8"), encoding="utf-8")


def _pass_on_controllers(directory: Path) -> None:
    """Let children of a cgroup of version 2 have its controllers; some it may not have itself."""
    for controller in CONTROLLERS:
        with suppress(OSError):
            (directory / "cgroup.subtree_control").write_text(f"+{controller}", encoding="utf-8")


def _own_places(wishes: dict[str, Any]) -> None:
    """Mount what is the cell's own over what is the worker's."""
    own = Path(wishes["directory"])
    # The host may lack the places to mount on, and must not be given any: so these lie in overlays.
    for place in ("/var/lib", "/var/log"):
        upper, work = own / f"overlay{place}/upper", own / f"overlay{place}/work"
        upper.mkdir(parents=True)
        work.mkdir()
        options = f"lowerdir={place},upperdir={upper},workdir={work}"
        _run(["mount", "-t", "overlay", "-o", options, "overlay", place])
    for place in wishes["own"]:
        source = own / OWN / place.strip("/")
        source.mkdir(parents=True, exist_ok=True)  # after a restart it is there
        Path(place).mkdir(parents=True, exist_ok=True)
        _run(["mount", "--bind", str(source), place])
    for name, value in wishes["settings"].items():
        if Path("/proc/sys", name).exists():
            file = own / "settings" / name.replace("/", ".")
            file.parent.mkdir(exist_ok=True)
            file.write_text(f"{value}\n", encoding="utf-8")
            _run(["mount", "--bind", str(file), f"/proc/sys/{name}"])
    _run(["mount", "--make-rshared", "/"])  # kubelet mounts volumes for containers to see


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def _stay() -> None:
    """Hold the namespaces in a process of their own until it is killed."""
    pid = os.fork()
    if pid:
        sys.stdout.write(f"{pid}\n")
        return
    os.setsid()
    nowhere = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
