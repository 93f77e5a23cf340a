"""Stand-ins for nodes and processes, for tests without privileges: they run nothing."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.access import batch
from testbed.access.place import RUN_SECONDS, CommandError, Process, Result, Route


@dataclass(frozen=True)
class Asked:
    """A command that a node was asked to run."""

    argv: list[str]
    stdin: str
    env: dict[str, str]


Answer = Callable[[Asked], Result]


def said(text: str) -> Result:
    """Return what a command leaves that ends well and says this."""
    return Result(0, text, "")


def shown(answer: object) -> Result:
    """Return what a command leaves that ends well and shows this as JSON."""
    return said(json.dumps(answer))


def silently(_: Asked) -> Result:
    """Let every command end well without a word."""
    return said("")


def in_turn(answers: Iterable[Result]) -> Answer:
    """Answer one command after the other; more than these must not come."""
    left = list(answers)
    return lambda _: left.pop(0)


def in_batch(asked: Asked, answer: Answer) -> Result:
    """Answer each command of a look around a place (testbed.access.batch); another command as it is."""
    if batch.SCRIPT not in asked.argv:
        return answer(asked)
    mark, *words = asked.argv[asked.argv.index(batch.SCRIPT) + 2 :]
    text = ""
    while words:
        count = int(words[0])
        done = answer(Asked(words[1 : 1 + count], "", {}))
        text += f"{done.status}\n{done.stdout.rstrip()}\n{mark}\n{done.stderr}\n{mark}\n"
        words = words[1 + count :]
    return said(text)


class RecordingNode:
    """A node that notes what it is asked to run, and answers as it was told.

    See testbed.access.place.Node.
    """

    cgroup = ""

    def __init__(self, name: str = "worker-01", answer: Answer = silently) -> None:
        self.name = name
        self.asked: list[Asked] = []
        self.entrance: tuple[str, ...] = ()  # the command that leads there, if it is within another node
        self._answer = answer

    @property
    def route(self) -> Route:
        """How commands get there."""
        return Route(self.name, self.entrance)

    @property
    def commands(self) -> list[list[str]]:
        """The commands that were asked for, the first one first."""
        return [asked.argv for asked in self.asked]

    def answer(self, asked: Asked) -> Result:
        """Return what a command leaves."""
        return self._answer(asked)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = RUN_SECONDS,
    ) -> Result:
        """Note a command, and answer it."""
        asked = Asked(list(argv), stdin, dict(env or {}))
        self.asked.append(asked)
        done = self.answer(asked)
        return done.checked(self.name, argv) if check else done

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Nothing can be started here."""
        raise NotImplementedError

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        """Nothing can be started here."""
        raise NotImplementedError


class SilentNode(RecordingNode):
    """A node that does not answer."""

    def answer(self, asked: Asked) -> Result:
        """Raise CommandError, as a place does that cannot be reached."""
        raise CommandError(self.name, asked.argv, "no connection", "gone")


class Running:
    """A process that goes on until it is killed. See testbed.access.place.Process."""

    def __init__(self) -> None:
        self.killed = False

    def release(self) -> None:
        """Nothing waits for that."""

    def end_input(self) -> None:
        """Nothing reads it."""

    def wait(self, timeout: float | None = None) -> int | None:
        """Return whether it was killed, as an exit status."""
        return 128 + signal.SIGKILL if self.killed else None

    def kill(self) -> None:
        """End it."""
        self.killed = True
