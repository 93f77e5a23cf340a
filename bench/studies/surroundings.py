"""What ``environment.json`` says of the machine and the commit that a recording is of.

Whatever is not there, in recordings of earlier versions or in a damaged file, is simply not known.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

UNKNOWN = "unknown"
_RELEASE = re.compile(r"[0-9]+\.[0-9]+")


def part(environment: Any, name: str) -> Mapping[str, Any]:
    """Return one part of it, such as ``host``; an empty one if there is none."""
    found = environment.get(name) if isinstance(environment, dict) else None
    return found if isinstance(found, dict) else {}


def traits(environment: Any) -> dict[str, Any]:
    """Return by what a machine is known, as far as it is: nothing that another boot changes."""
    host = part(environment, "host")
    memory, kernel = host.get("memory_bytes"), _RELEASE.match(str(host.get("kernel")))
    found = {
        "architecture": host.get("machine"),
        "processors": host.get("processors_usable"),
        "processor models": sorted({str(model) for model in host.get("processors") or ()}),
        "memory in GiB": round(memory / 2**30) if isinstance(memory, int) else None,
        "hypervisor": host.get("hypervisor"),
        "kernel": kernel[0] if kernel else None,
    }
    return {name: value for name, value in found.items() if value is not None} if host else {}


def commit(environment: Any) -> str:
    """Return the commit of the harness, and whether there was more than that."""
    harness = part(environment, "harness")
    changed = " with uncommitted changes" if harness.get("uncommitted_changes") else ""
    return f"{harness.get('commit', UNKNOWN)}{changed}"
