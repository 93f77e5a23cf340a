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

from bench.recording import atomic
from testbed import resources

if TYPE_CHECKING:
    from pathlib import Path

    from bench.analysis.summary import Summary
    from bench.presentation.following import Following
    from bench.recording.directory import Recording
    from bench.studies.study import Study

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
    said = {"paths": _paths(files), "summary": summary.model_dump(mode="json", by_alias=True)}
    return said | ({"next": following(step)} if step else {})


def study(of: Study, directory: Path, reports: str) -> Document:
    """Return what is said of a study: its index, the cases that shall hold, and each of its runs.

    ``reports`` is as in ``Study.next_step``.
    """
    from bench.presentation import following as leading
    from bench.recording.directory import Recording

    step = of.next_step(directory, reports)
    index = of.index_file(directory)
    files = {"study": directory, "index": index, "figures": directory / "figures"}
    pages = sorted(directory.glob("*.html"))
    return {
        "study": of.name,
        "paths": {**_paths(files), "pages": [str(page.absolute()) for page in pages]},
        "index": atomic.read_json(index),
        "promised": [case._asdict() for case in of.promised(directory)],
        "next": following(leading.said(step)) if step else None,
        "runs": [
            run(Recording(directory / row.recording), summary)
            for row, summary in zip(of.rows(directory), of.summaries(directory), strict=True)
            if row.recording and summary
        ],
    }


def following(step: Following) -> Document:
    """Return what is said of what to run next."""
    return {**asdict(step), "command": resources.as_typed(step.command)}


def _paths(files: dict[str, Path]) -> dict[str, str]:
    """Return absolute paths: who reads them may stand elsewhere."""
    return {name: str(file.absolute()) for name, file in files.items()}
