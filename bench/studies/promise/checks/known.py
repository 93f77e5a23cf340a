"""Which checks there are."""

from __future__ import annotations

from bench.studies.promise.check import PROFILES, Check

_known: dict[str, Check] = {}


def register(check: Check) -> None:
    """Let a check be asked from now on. Raises LookupError for a name that is taken."""
    if check.about.name in _known:
        raise LookupError(f"there is a check {check.about.name!r} already")
    _known[check.about.name] = check


def checks() -> list[Check]:
    """Return all checks, profile after profile, each profile's in the order in which they were registered."""
    return sorted(_known.values(), key=lambda check: PROFILES.index(check.about.profile))
