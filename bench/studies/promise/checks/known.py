"""Which checks there are."""

from __future__ import annotations

from bench.studies.promise.check import PROFILES, Check
from testbed.registry import Registry

CHECKS = Registry[Check]("check")


def register(check: Check) -> None:
    """Let a check be asked from now on. Raises ValueError for a name that is taken."""
    CHECKS.register(check.about.name, check)


def checks() -> list[Check]:
    """Return all checks, profile after profile, each profile's in the order in which they were registered."""
    return sorted(CHECKS.values(), key=lambda check: PROFILES.index(check.about.profile))
