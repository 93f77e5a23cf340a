"""Kernel features, and whether a place has them: tried, not guessed from versions.

A kernel without loadable modules, a container without permissions and a hardened distribution all look alike
from outside.
"""

from __future__ import annotations

from dataclasses import dataclass

from testbed.access.place import CommandError, Place


@dataclass(frozen=True)
class Feature:
    """A kernel feature, and the command that shows whether it is there; it leaves what it makes."""

    name: str
    command: tuple[str, ...]
    option: str  # the kernel's configuration option
    stdin: str = ""
    needed: bool = True


def lacks(place: Place, feature: Feature) -> str:
    """Return, in words, what a kernel needs to have a feature; nothing if it has it."""
    try:
        place.run(feature.command, stdin=feature.stdin)
    except CommandError as error:
        return f"the kernel needs {feature.option} ({error})"
    return ""
