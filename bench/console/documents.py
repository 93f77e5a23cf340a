"""What programs are told: with ``--json`` a verb leaves one document on standard output, and nothing else.

What people are told goes to standard error meanwhile, whichever module says it. Who ends with an error leaves
no document: status and words are those that they are without ``--json``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from testbed import resources

if TYPE_CHECKING:
    from pathlib import Path

    from bench.analysis.summary import Summary
    from bench.presentation.commands import Following
    from bench.recording.directory import Recording

Document = dict[str, Any]

# Within a schema fields may be added, never renamed.
SCHEMA = 1


@contextmanager
def document(wanted: bool) -> Iterator[Document]:
    """Lend a document to be filled in; it is written, if it is wanted, unless an error ends the block."""
    filled: Document = {"schema": SCHEMA}
    if not wanted:
        yield filled
        return
    with redirect_stdout(sys.stderr):
        yield filled
    if sys.stdout is not None:
        # In ASCII: whatever the terminal's encoding is, and nothing that it would take for an order.
        sys.stdout.write(json.dumps(filled, indent=2, allow_nan=False) + "\n")
        sys.stdout.flush()


def run(recording: Recording, summary: Summary, step: Following | None = None) -> Document:
    """Return what is said of one run: all of its summary, where its files are, and what to run next."""
    files = {
        "recording": recording.directory,
        "summary": recording.summary_file,
        "samples": recording.samples_file,
        **({"exchanges": recording.exchanges_file} if summary.requests else {}),
        "figures": recording.figures_directory,
        "report": recording.report_file,
    }
    said = {"paths": paths(files), "summary": summary.model_dump(mode="json", by_alias=True)}
    return said | ({"next": following(step)} if step else {})


def following(step: Following) -> Document:
    """Return what is said of what to run next."""
    return {**asdict(step), "command": resources.as_typed(step.command)}


def paths(files: dict[str, Path]) -> dict[str, str]:
    """Return absolute paths: who reads them may stand elsewhere."""
    return {name: str(file.absolute()) for name, file in files.items()}
