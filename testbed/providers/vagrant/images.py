"""The copy of a box in libvirt's storage: the machines' disks are differences to it.

Vagrant puts it there with the first machine and leaves it; it goes when no disk needs it any more.
"""

from __future__ import annotations

import subprocess
from xml.etree import ElementTree

POOL = "default"


def remove_unused(uri: str, box: str) -> None:
    """Remove the copies of any version of a box that are no disk's base. Raises CalledProcessError."""
    if POOL not in _virsh(uri, "pool-list", "--name").split():
        return
    prefix = f"{box.replace('/', '-VAGRANTSLASH-')}_vagrant_box_image_"
    volumes = [line.split() for line in _virsh(uri, "vol-list", POOL).splitlines()]
    described = {name: _virsh(uri, "vol-dumpxml", name, "--pool", POOL) for name, *_ in volumes}
    used = {base(description) for description in described.values()}
    for name, path in volumes:
        if name.startswith(prefix) and path not in used:
            _virsh(uri, "vol-delete", name, "--pool", POOL)


def base(description: str) -> str | None:
    """Return the path of the volume that a volume is the difference to, from libvirt's XML."""
    return ElementTree.fromstring(description).findtext("backingStore/path")


def _virsh(uri: str, *arguments: str) -> str:
    argv = ["virsh", "--connect", uri, "--quiet", *arguments]
    return subprocess.run(argv, capture_output=True, encoding="utf-8", check=True).stdout
