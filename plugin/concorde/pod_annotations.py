"""What a pod's author wrote: annotations, which runtimes pass by a capability (containerd 1.6, CRI-O)."""

from __future__ import annotations

from .configuration import table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CAPABILITY = "io.kubernetes.cri.pod-annotations"
OURS = "concorde.contmec.dev/"
GUARANTEE = OURS + "egress-guarantee"
ANSWERS = OURS + "answers-guarantee"
INGRESS = OURS + "ingress-guarantee"
PROMISES = GUARANTEE, ANSWERS, INGRESS


def guarantee(direction: str) -> str:
    """The annotation with what is promised in a direction: `egress` or `ingress`."""
    return f"{OURS}{direction}-guarantee"


def of(document: dict[str, Any]) -> dict[str, Any]:
    """The pod's, in a network configuration as the runtime passes it. Raises CniError 7."""
    return table(table(document, "runtimeConfig") or {}, CAPABILITY) or {}


def promises(given: dict[str, Any]) -> dict[str, str]:
    """The annotations that promise something to a further interface, each with that interface's name."""
    found = {}
    for name in given:
        for kind in PROMISES:
            if name.startswith(f"{kind}."):
                found[name] = name[len(kind) + 1 :]
    return found


def path(name: str) -> str:
    """Where in the configuration one of them is."""
    return f'runtimeConfig["{CAPABILITY}"]["{name}"]'
