"""A file that says which leases a resolver knows, once the kernel has what they justify: a line for each."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from edge.overlay.leases import Lease


def line(lease: Lease) -> str:
    """Return what is said of a lease."""
    return f"{lease.subnet} at {lease.mac} behind {lease.address}"


def write(path: Path, leases: Iterable[Lease]) -> None:
    """Write the file, whole or not at all. Raises OSError."""
    new = path.with_name(f"{path.name}.new")
    new.write_text("".join(f"{line(lease)}\n" for lease in sorted(leases)), encoding="utf-8")
    os.replace(new, path)  # noqa: PTH105 (as atomic as the kernel's)
