"""What a program says of itself never ends it."""

from __future__ import annotations

import errno
import io

from edge.log import Logger


class Full(io.StringIO):
    """A disk without room."""

    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_on_a_full_disk_a_program_goes_on() -> None:
    log = Logger(Full())
    log("one")
    log.once("two")
