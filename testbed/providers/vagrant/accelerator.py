"""Whether KVM runs guests here: tried, for a device file that is there proves nothing.

Within some virtual machines KVM can be opened and makes machines, and these end as soon as they are given
the processor of the host.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

# What the Vagrantfile is told if the machines must be emulated. Not all that can be (``max``): programs then
# take instructions that are fast on a processor and slow in QEMU, as Go does for RSA (docs/vagrant.md).
EMULATED = {"CONCORDE_DRIVER": "qemu", "CONCORDE_CPU_MODEL": "qemu64"}
DEVICE = Path("/dev/kvm")
SECONDS = 10.0
EMULATOR = "qemu-system-x86_64"
# Firmware that ends the emulator with a status of its own: mov $16,%al; out %al,$0xf4; hlt; jmp.
FIRMWARE_SIZE, FIRST_INSTRUCTION = 0x10000, 0xFFF0
PROGRAM = bytes.fromhex("b010e6f4f4ebfd")
ENDED_ITSELF = 2 * 16 + 1  # as isa-debug-exit makes it of what was written


def kvm_works() -> bool:
    """Return whether a guest with this host's processor runs its first instructions."""
    if not DEVICE.exists() or shutil.which(EMULATOR) is None:
        return False
    firmware = bytearray(FIRMWARE_SIZE)
    firmware[FIRST_INSTRUCTION : FIRST_INSTRUCTION + len(PROGRAM)] = PROGRAM
    with tempfile.NamedTemporaryFile() as file:
        file.write(firmware)
        file.flush()
        try:
            guest = subprocess.run(
                [
                    EMULATOR, "-accel", "kvm", "-cpu", "host", "-nodefaults", "-display", "none",
                    "-bios", file.name, "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04",
                ],
                capture_output=True, timeout=SECONDS, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
    return guest.returncode == ENDED_ITSELF
