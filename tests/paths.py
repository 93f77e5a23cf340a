"""Where the project's own files are, for tests."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What ``reports/reference/contmec`` shows, for whoever needs a summary of a real run.
CONTMEC_SUMMARY = ROOT / "tests" / "unit" / "bench" / "contmec.json"
