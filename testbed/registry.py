"""Parts of one kind, by their names: how one becomes known, how it is set, and what is said of others.

A part may have settings of its own. Its attribute ``settings`` is then what they are where nothing is said,
an instance of the part's own model (testbed.scenario.words.Part); a scenario says ``settings.WORD.NAME``
instead (testbed.scenario.settings), and the part is handed that. A file from outside makes its parts known in
the same way: docs/howto/extend.md.
"""

from __future__ import annotations

import copy
import importlib.util
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

Part = TypeVar("Part")
Settings = Mapping[str, Mapping[str, Any]] | None  # a scenario's, by kind and by the part's name

VARIABLE = "CONCORDE_EXTENSIONS"  # FILE[:FILE...]: files from outside

KINDS: dict[str, Registry[Any]] = {}  # whose parts may have settings, by the kind's word there


class Registry(dict[str, Part]):
    """The parts of one kind, in the order in which they were registered."""

    def __init__(self, kind: str, plural: str | None = None, word: str = "") -> None:
        """``kind`` is what people call one, as in "no study 'x' (studies: matrix, places)".

        ``word`` is what a scenario's settings call the kind; without one its parts have none.
        """
        super().__init__()
        self.kind = kind
        self.plural = plural or f"{kind}s"
        self.word = word
        if word:
            KINDS[word] = self

    def register(self, name: str, part: Part) -> None:
        """Make a part known. Raises ValueError for a name that is taken: nobody's part is replaced."""
        if name in self:
            raise ValueError(f"there is {_a(self.kind)} {name!r} already")
        self[name] = part

    def named(self, name: str) -> Part:
        """Return a part. Raises LookupError with those there are."""
        if name not in self:
            raise LookupError(self.unknown(name))
        return self[name]

    def unknown(self, name: str) -> str:
        """Say that there is no such part, and which there are."""
        return f"no {self.kind} {name!r} ({self.plural}: {', '.join(self)})"

    def check(self, name: object) -> str:
        """Return the name of a part, for a model's field. Raises ValueError with those there are."""
        if isinstance(name, str) and name in self:
            return name
        *others, last = map(repr, self)
        known = f"{', '.join(others)} or {last}" if others else last
        close = nearest(name, self) if isinstance(name, str) else None
        raise ValueError(f"input should be {known}{f' (did you mean {close!r}?)' if close else ''}")

    def describe(self, schema: dict[str, Any]) -> None:
        """Say in a field's JSON Schema which names there are."""
        schema["enum"] = list(self)

    def having(self) -> Iterator[tuple[str, Any]]:
        """Yield the name of each part that has settings, with what these are where nothing is said."""
        for name, part in self.items():
            if (settings := getattr(part, "settings", None)) is not None:
                yield name, settings

    def handed(self, name: str, said: Settings) -> tuple[Any, ...]:
        """Return what is handed to what makes or draws a part, last: its settings, or nothing without any."""
        own = dict(self.having()).get(name)
        return () if own is None else ((said or {}).get(self.word, {}).get(name, own),)

    def configured(self, name: str, said: Settings) -> Part:
        """Return a part whose ``settings`` are as a scenario says. Raises LookupError as ``named``."""
        part = self.named(name)
        for settings in self.handed(name, said):
            part = copy.copy(part)
            part.settings = settings  # type: ignore[attr-defined]  # as ``having`` has found
        return part


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that comes nearest; None if none comes near. Of equals the first wins."""
    return next(iter(get_close_matches(word, list(known), n=1)), None)


def load() -> None:
    """Import the files from outside that the environment names, each once.

    Raises LookupError with what is wrong with one.
    """
    for path in filter(None, os.environ.get(VARIABLE, "").split(os.pathsep)):
        _import(Path(path))


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
