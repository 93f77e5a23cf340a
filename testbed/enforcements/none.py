"""Nobody keeps the promise: pods are attached, and that is all."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.enforcements.concorde import Concorde


@dataclass(frozen=True)
class NoEnforcement(Concorde):
    """See testbed.enforcements.enforcement.Enforcement."""
