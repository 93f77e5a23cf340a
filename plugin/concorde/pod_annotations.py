"""What a pod's author wrote: annotations, which runtimes pass by a capability (containerd 1.6, CRI-O)."""

from __future__ import annotations

from .configuration import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CAPABILITY = "io.kubernetes.cri.pod-annotations"
OURS = "concorde.contmec.dev/"


def of(document: dict[str, Any]) -> dict[str, Any]:
    """The pod's, in a network configuration as the runtime passes it. Raises CniError 7."""
    return table(table(document, "runtimeConfig") or {}, CAPABILITY) or {}


def path(name: str) -> str:
    """Where in the configuration one of them is."""
    return f'runtimeConfig["{CAPABILITY}"]["{name}"]'
