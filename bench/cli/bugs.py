"""What becomes of an error that nobody foresaw: it is a bug, and never a verdict nor the user's mistake.

It ends the program with a status of its own, and with one line that says where the details are. Python's
standard library only, for a missing package may be the error.
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bench.cli.statuses import BUG


@contextmanager
def reported() -> Iterator[None]:
    """End the program with status 70 at an error that is still one here; say where it is told."""
    try:
        yield
    except Exception as error:
        details = f"{sys.version}\n{shlex.join(sys.argv)}\n{''.join(traceback.format_exception(error))}"
        with suppress(OSError):  # the status is told even where nothing can be said
            # Its type alone: its words may be of any length, and hold what a terminal would obey.
            sys.stderr.write(f"this is a bug in the testbed ({type(error).__name__}): {_kept(details)}\n")
        sys.exit(BUG)


def _kept(details: str) -> str:
    """Write details to a file and return where that is; or return them, where none can be written."""
    try:
        descriptor, path = tempfile.mkstemp(prefix="concorde-testbed-bug-", suffix=".txt", text=True)
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(details)
    except OSError:
        return f"no file for the details can be written, so here they are\n{details}"
    return f"the details are in {path}"
