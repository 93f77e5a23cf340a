"""The verb hints: why a service of a cluster that exists has the hints that it has."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from bench.console.documents import Document
from bench.console.statuses import HELD
from edge.services.hints import Delays, delays_of
from testbed.clusters import hints, kubeconfigs


def show(service: str, kubeconfig: str, namespace: str, delays: str, document: Document) -> int:
    """Say who serves whom, and what is in the way. Raises LookupError for what cannot be read."""
    from bench.presentation import hints as presentation

    if not kubeconfig:
        raise LookupError("hints: --kubeconfig FILE must say of which cluster")
    apart = _delays(delays)
    client = kubeconfigs.outside(kubeconfig)
    report = hints.report(hints.ask(client, namespace, service), apart)
    presentation.show(Console(), report)
    document.update(presentation.document(report))
    return HELD


def _delays(text: str) -> Delays:
    """Return delays that are written out, or in a file. Raises LookupError."""
    try:
        return delays_of(text if "=" in text or not text else Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LookupError(f"--delays: {error}") from None
