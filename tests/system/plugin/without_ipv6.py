"""Run a program as a kernel with `ipv6.disable=1` would let it run: it and all it starts get no IPv6 socket.

What else such a kernel lacks, the caller takes away. Source: linux/seccomp.h, linux/filter.h.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
import sys

SOCKET = {"x86_64": 41, "aarch64": 198}  # its number as a system call
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
LOAD, IS, RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS; BPF_JMP | BPF_JEQ; BPF_RET
NUMBER, FIRST_ARGUMENT = 0, 16  # offsets in struct seccomp_data
ALLOW, FAIL = 0x7FFF0000, 0x00050000 | errno.EAFNOSUPPORT


def main() -> None:
    """Forbid it, and become that program."""
    forbid(SOCKET[os.uname().machine])
    os.execv(sys.argv[1], sys.argv[1:])


def forbid(call: int) -> None:
    steps = (
        (LOAD, 0, 0, NUMBER),
        (IS, 0, 3, call),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (IS, 0, 1, socket.AF_INET6),
        (RETURN, 0, 0, FAIL),
        (RETURN, 0, 0, ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    for asked in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (PR_SET_SECCOMP, FILTER, program, 0, 0)):
        if library.prctl(*asked):
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    main()
