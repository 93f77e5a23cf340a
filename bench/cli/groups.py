"""The verbs as people are shown them: in groups, with what a word alone means to each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from invoke.tasks import Task


@dataclass(frozen=True)
class Verbs:
    """All verbs; each module is a group, and the first line of its docstring the group's title."""

    modules: Sequence[ModuleType]
    # Of which verbs words alone mean an option, by verb: there may be none, and many where it takes many.
    words: Mapping[str, str]
    # The verbs that take a command to run after a place, and whether it may begin with an option.
    commanding: Mapping[str, bool]
    left_out: Sequence[str] = ()

    def groups(self) -> list[tuple[str, list[Task[Any]]]]:
        """Return each group's title and verbs, in the order in which they are shown."""
        return [
            (
                (module.__doc__ or "").partition("\n")[0],
                [
                    one
                    for one in vars(module).values()
                    if isinstance(one, Task) and one.name not in self.left_out
                ],
            )
            for module in self.modules
        ]

    def tasks(self) -> list[Task[Any]]:
        """Return all verbs."""
        return [task for _, tasks in self.groups() for task in tasks]

    def alone(self, verb: str) -> str | None:
        """Return the option that a verb's words alone are values of, if they are."""
        return self.words.get(verb)
