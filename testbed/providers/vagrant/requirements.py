"""What this machine lacks for virtual machines; looked at before anything is started."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

from testbed.supplies.box import NAME

LIBVIRT = "libvirt"
PACKAGES = (
    "vagrant vagrant-libvirt libvirt-daemon-system libvirt-clients qemu-system-x86 qemu-utils dnsmasq-base"
)


def hypervisor() -> str:
    """Return which of Vagrant's providers makes the machines, by Vagrant's own variable for that."""
    return os.environ.get("VAGRANT_DEFAULT_PROVIDER", LIBVIRT)


def box() -> str:
    """Return which box the machines are made from; as in the Vagrantfile."""
    return os.environ.get("CONCORDE_BOX", NAME)


def is_local() -> bool:
    """Return whether the machines run on this one; libvirt's may be elsewhere."""
    return hypervisor() != LIBVIRT or urlsplit(uri()).hostname is None


def demand() -> None:
    """Raise LookupError with what is missing, and what to do about it."""
    for fault in missing():
        raise LookupError(f"--provider vagrant: {fault}")


def missing() -> Iterator[str]:
    """Yield what is missing; what cannot be asked for without it is not looked at."""
    if shutil.which("vagrant") is None:
        yield f"vagrant is not installed: apt-get install {PACKAGES}"
        return
    import vagrant  # which says on standard error if there is no Vagrant, whether it is asked or not

    asked = vagrant.Vagrant()
    if hypervisor() == LIBVIRT:
        if "vagrant-libvirt" not in [plugin.name for plugin in asked.plugin_list()]:
            yield "Vagrant has no plugin for libvirt: apt-get install vagrant-libvirt"
        yield from _libvirt()
    # Another box than ours is perhaps one that Vagrant finds by itself.
    if box() == NAME and NAME not in [each.name for each in asked.box_list()]:
        yield f"there is no box {NAME}: make it with ./invokew box.build"


def _libvirt() -> Iterator[str]:
    if shutil.which("virsh") is None:
        yield f"libvirt is not installed: apt-get install {PACKAGES}"
        return
    asked = subprocess.run(
        ["virsh", "--connect", uri(), "--quiet", "version"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if asked.returncode != 0:
        yield (
            "libvirt does not answer: systemctl start libvirtd, and be root or in the group libvirt; "
            f"without systemd see docs/howto/virtual-machines.md ({asked.stderr.strip()})"
        )


def uri() -> str:
    """Return where libvirt is."""
    return os.environ.get("LIBVIRT_DEFAULT_URI", "qemu:///system")
