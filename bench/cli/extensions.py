"""Files of other people's, which add parts: CONCORDE_EXTENSIONS=FILE[:FILE...] names them.

Each is imported once, before a verb does anything, and says what it adds by calling a ``register``.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

VARIABLE = "CONCORDE_EXTENSIONS"


def load() -> None:
    """Import the files that the environment names. Raises LookupError with what is wrong with one."""
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _import(Path(path))


def settings() -> list[tuple[str, str]]:
    """Return what of their parts a scenario can set: the path, and what it means. Raises LookupError."""
    if not os.environ.get(VARIABLE):
        return []
    load()
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
    from testbed.registry import KINDS

    shipped = set(KINDS[kind])
    load()
    return [name for name in KINDS[kind] if name not in shipped]


def _import(file: Path) -> None:
    name = f"concorde_extension:{file.resolve()}"
    if name in sys.modules:
        return
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise LookupError(f"{VARIABLE}: {file}: not a file of Python")
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module  # as dataclasses and pydantic look for a class's module
    try:
        specification.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[name]
        if not isinstance(error, (Exception, SystemExit)):
            raise
        words = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise LookupError(f"{VARIABLE}: {file}: {type(error).__name__}: {words}") from error


if __name__ == "__main__":  # as completion asks
    print("\n".join(brought(sys.argv[1])))  # noqa: T201
