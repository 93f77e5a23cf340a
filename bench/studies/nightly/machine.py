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

from bench.studies import surroundings
from bench.studies.surroundings import UNKNOWN

DIGITS = 12
# A processor's model has its nominal speed in its name.
_SPEED = re.compile(r"\s*@\s*[0-9.]+\s*[GM]Hz")


def identity(environment: Mapping[str, Any]) -> str:
    """Return 12 hex digits for a machine; ``environment`` is what ``environment.json`` has, or its host."""
    return hashlib.sha256("\n".join(_traits(environment)).encode()).hexdigest()[:DIGITS]


def _traits(environment: Mapping[str, Any]) -> list[str]:
    known = surroundings.traits(environment)
    models = {_SPEED.sub("", model) for model in known.get("processor models") or [UNKNOWN]}
    memory = known.get("memory in GiB")
    return [
        f"architecture: {known.get('architecture', UNKNOWN)}",
        f"processor models: {', '.join(sorted(models))}",
        f"processors: {known.get('processors', UNKNOWN)}",
        f"memory: {UNKNOWN if memory is None else f'{memory} GiB'}",
        f"hypervisor: {known.get('hypervisor', UNKNOWN)}",
        f"kernel: {known.get('kernel', UNKNOWN)}",
    ]


def beside(environment: Mapping[str, Any]) -> dict[str, str]:
    """Return what may change on one machine, by what it is called."""
    host, tools, harness = (surroundings.part(environment, name) for name in ("host", "tools", "harness"))
    return {
        "commit": surroundings.commit(environment),
        "iperf3": str(tools.get("iperf3", UNKNOWN)),
        "pinned packages": str(harness.get("requirements", UNKNOWN)),
        "kernel": str(host.get("kernel", UNKNOWN)),
        "Python": str(harness.get("python", UNKNOWN)),
    }
