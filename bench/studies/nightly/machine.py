"""Which machine a recording is of, as far as numbers of one night may be compared with those of another.

A machine is what is the same after each boot. Clock readings are not (a key that had them split one machine's
history at every boot in folo-rs/folo#429), nor is a host's name, which in data centres is another each time.
What changes on a machine from time to time stands beside: it is named if it changed in the night of a change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

DIGITS = 12
UNKNOWN = "unknown"
# A processor's model has its nominal speed in its name.
_SPEED = re.compile(r"\s*@\s*[0-9.]+\s*[GM]Hz")
_RELEASE = re.compile(r"([0-9]+\.[0-9]+)")


def identity(environment: Mapping[str, Any]) -> str:
    """Return 12 hex digits for a machine; ``environment`` is what ``environment.json`` has, or its host."""
    return hashlib.sha256("\n".join(_traits(environment)).encode()).hexdigest()[:DIGITS]


def _traits(environment: Mapping[str, Any]) -> list[str]:
    host = _part(environment, "host")
    models = {_SPEED.sub("", str(model)) for model in host.get("processors") or [UNKNOWN]}
    memory = host.get("memory_bytes")
    kernel = _RELEASE.match(str(host.get("kernel", "")))
    return [
        f"architecture: {host.get('machine', UNKNOWN)}",
        f"processor models: {', '.join(sorted(models))}",
        f"processors: {host.get('processors_usable', UNKNOWN)}",
        f"memory: {round(memory / 2**30)} GiB" if isinstance(memory, int) else f"memory: {UNKNOWN}",
        f"hypervisor: {host.get('hypervisor', UNKNOWN)}",
        f"kernel: {kernel[1] if kernel else UNKNOWN}",
    ]


def beside(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what may change on one machine, by what it is called."""
    host, tools, harness = (_part(environment, name) for name in ("host", "tools", "harness"))
    commit = str(harness.get("commit", UNKNOWN))
    if harness.get("uncommitted_changes"):
        commit += " with uncommitted changes"
    return {
        "commit": commit,
        "iperf3": str(tools.get("iperf3", UNKNOWN)),
        "pinned packages": str(harness.get("requirements", UNKNOWN)),
        "kernel": str(host.get("kernel", UNKNOWN)),
        "Python": str(harness.get("python", UNKNOWN)),
    }


def _part(environment: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = environment.get(name)
    return part if isinstance(part, dict) else {}
