"""What real Kubernetes needs of this machine; looked at before anything is started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from testbed import resources
from testbed.access.local import ENVIRONMENT
from testbed.kubernetes import cell
from testbed.supplies import binaries, images

PROGRAMS = {
    "etcd": "etcd-server",
    "containerd": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "openssl": "openssl",
}
LOOPBACK = "containernetworking-plugins"


def demand() -> None:
    """Raise LookupError with all that is missing, and what to do about it."""
    if found := list(missing()):
        raise LookupError("--orchestrator kubernetes: " + "\n".join(found))


def missing() -> Iterator[str]:
    """Yield, in words, what is missing."""
    if os.geteuid() != 0:
        yield (
            "needs root: containerd and kubelet make cgroups and overlay mounts; run it with sudo, "
            "or use --orchestrator cni"
        )
        return
    absent = {package for name, package in PROGRAMS.items() if not _found(name)}
    absent |= {package for name, package in images.TOOLS.items() if not _found(name)}
    if not any(Path(directory, "loopback").exists() for directory in resources.REFERENCE_PLUGINS):
        absent.add(LOOPBACK)
    if absent:
        yield f"packages are missing: apt-get install {' '.join(sorted(absent))}"
    if not cell.hierarchies(Path("/proc/self/mounts").read_text(encoding="utf-8")):
        yield f"no cgroups are mounted at {cell.CGROUPS}"
    if not Path("/dev/kmsg").exists():
        yield "there is no /dev/kmsg, which a kubelet reads; a container must be given it"
    try:
        binaries.find()
    except (LookupError, RuntimeError) as error:
        yield str(error)


def _found(program: str) -> bool:
    return shutil.which(program, path=ENVIRONMENT["PATH"]) is not None
