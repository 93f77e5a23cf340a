"""What files from outside bring (``testbed.registry.load``), as help and completion ask for it."""

from __future__ import annotations

import os
import sys

from testbed import registry


def settings() -> list[tuple[str, str]]:
    """Return what of their parts a scenario can set: the path, and what it means. Raises LookupError."""
    if not os.environ.get(registry.VARIABLE):
        return []
    registry.load()
    from testbed.scenario import settings

    return [(path, f"{about} (default: {default})") for path, default, about in settings.fields()]


def brought(kind: str) -> list[str]:
    """Return the names of a kind's parts that the files bring, or the paths of all ``settings``.

    Raises LookupError.
    """
    if kind == "settings":
        return [path for path, _ in settings()]
    from bench.observations import observation  # noqa: F401
    from bench.presentation.figures import registry as _figures  # noqa: F401
    from bench.studies import known as _studies  # noqa: F401
    from testbed import assembly  # noqa: F401

    shipped = set(registry.KINDS[kind])
    registry.load()
    return [name for name in registry.KINDS[kind] if name not in shipped]


if __name__ == "__main__":  # as completion asks
    print("\n".join(brought(sys.argv[1])))  # noqa: T201
