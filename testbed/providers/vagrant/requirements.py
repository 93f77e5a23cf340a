"""What this machine lacks for virtual machines; looked at before anything is started."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from testbed.access import scratch
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


# Whether KVM runs guests here is tried, for a device file that is there proves nothing: within some virtual
# machines KVM can be opened and makes machines, and these end as soon as they are given the processor of the
# host, or stop at an instruction that KVM would have to emulate and does not know.
#
# What the Vagrantfile is told if the machines must be emulated. Not all that can be (``max``): programs then
# take instructions that are fast on a processor and slow in QEMU, as Go does for RSA
# (docs/explanation/diary.md).
EMULATED = {"CONCORDE_DRIVER": "qemu", "CONCORDE_CPU_MODEL": "qemu64"}
DEVICE = Path("/dev/kvm")
SECONDS = 10.0
EMULATOR = "qemu-system-x86_64"
# Firmware that goes to protected mode, returns from an interrupt that was none, and ends the emulator with a
# status of its own. Every boot loader does the first two; a KVM without help may not know how to.
FIRMWARE_SIZE, FIRST_INSTRUCTION = 0x10000, 0xFFF0
RESET = "e90d00"  # jmp to the firmware's beginning, around the end of its 64 KiB
PROGRAM = (
    "fa"  # 00: cli
    "2e660f01165000"  # 01: lgdtl %cs:0x50
    "66b801000000"  # 08: mov $1,%eax
    "0f22c0"  # 0e: mov %eax,%cr0
    "66ea19000f000800"  # 11: ljmpl $8,$0xf0019
    "b810000000"  # 19: mov $16,%eax, from here on 32 bits wide
    "8ed0"  # 1e: mov %eax,%ss
    "bc00700000"  # 20: mov $0x7000,%esp
    "9c"  # 25: pushfl
    "0e"  # 26: pushl %cs
    "682d000f00"  # 27: pushl $0xf002d
    "cf"  # 2c: iretl
    "b010"  # 2d: mov $16,%al
    "e6f4"  # 2f: out %al,$0xf4
    "f4"  # 31: hlt
    "ebfd"  # 32: jmp 0x31
    "00000000"
    "0000000000000000"  # 38: segments: none,
    "ffff0000009acf00"  # 40: code,
    "ffff00000092cf00"  # 48: data
    "170038000f00"  # 50: how long their table is, less 1, and where
)
ENDED_ITSELF = 2 * 16 + 1  # as isa-debug-exit makes it of what was written


def kvm_works() -> bool:
    """Return whether KVM runs a guest with this host's processor."""
    return DEVICE.exists() and runs("kvm", "host")


def runs(accelerator: str, processor: str) -> bool:
    """Return whether a guest runs what begins every boot loader."""
    if shutil.which(EMULATOR) is None:
        return False
    firmware = bytearray(FIRMWARE_SIZE)
    for place, digits in ((0, PROGRAM), (FIRST_INSTRUCTION, RESET)):
        code = bytes.fromhex(digits)
        firmware[place : place + len(code)] = code
    with scratch.file() as file:
        file.write_bytes(firmware)
        try:
            guest = subprocess.run(
                [
                    EMULATOR, "-accel", accelerator, "-cpu", processor, "-nodefaults", "-display", "none",
                    "-bios", str(file), "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
                ],
                capture_output=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
    return guest.returncode == ENDED_ITSELF
