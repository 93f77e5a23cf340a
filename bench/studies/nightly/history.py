"""``DIR/<machine>.jsonl``: one line for each night of a machine, the first one first.

A line is one ``write`` under a lock, and synced. Whoever was killed meanwhile may have left the beginning of
one; that is set aside, into ``<machine>.jsonl.torn``, before the next is written. A run id is there once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from bench.recording.atomic import StoredError
from bench.studies.nightly.night import Night
from testbed.access import locks
from testbed.scenario.faults import explained, render_path

TORN = ".torn"


class History:
    """The nights of one machine, in a file."""

    def __init__(self, directory: Path, machine: str) -> None:
        self.file = directory / f"{machine}.jsonl"

    def nights(self) -> list[Night]:
        """Return all whole lines. Raises StoredError with file and line for one that is none of ours."""
        try:
            content = self.file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise StoredError(self.file, error.strerror or str(error)) from None
        return self._parsed(content)

    def prepare(self) -> None:
        """Make sure that lines can be written. Raises LookupError: nothing is started then."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            descriptor = self._opened()
        except OSError as error:
            raise LookupError(
                f"--history: {self.file} cannot be written: {error.strerror}; give another directory"
            ) from None
        try:
            if not locks.take(descriptor):
                raise LookupError(
                    f"--history: {self.file}: its file system has no locks; give a directory on another"
                )
        finally:
            os.close(descriptor)

    @contextmanager
    def locked(self) -> Iterator[Locked]:
        """Keep others from writing meanwhile. Raises OSError with the file's name, and StoredError."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        descriptor = self._opened()
        try:
            locks.take(descriptor)
            yield Locked(self, descriptor)
        finally:
            os.close(descriptor)

    def _opened(self) -> int:
        return os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def _parsed(self, content: bytes) -> list[Night]:
        """Read whole lines; what is after the last line's end was left half."""
        lines = content.split(b"\n")[:-1]
        nights = [self._night(number, line) for number, line in enumerate(lines, start=1)]
        seen: set[str] = set()
        for number, night in enumerate(nights, start=1):
            if night.run_id in seen:
                raise StoredError(self.file, f"line {number}: run {night.run_id} is there twice; remove one")
            seen.add(night.run_id)
        return nights

    def _night(self, number: int, line: bytes) -> Night:
        try:
            return Night.model_validate_json(line)
        except ValidationError as error:
            path, text = explained(error)[0]
            words = ": ".join(filter(None, (f"line {number}", render_path(path), text)))
            raise StoredError(self.file, f"{words}; correct or remove that line") from None


class Locked:
    """A history that nobody else writes to."""

    def __init__(self, history: History, descriptor: int) -> None:
        self._file, self._descriptor = history.file, descriptor
        self.nights: Sequence[Night] = history.nights()

    def append(self, night: Night) -> None:
        """Write a line. Raises OSError with the file's name, and then the file is as it was."""
        if any(one.run_id == night.run_id for one in self.nights):
            raise ValueError(f"{night.run_id} is there already")
        line = (night.model_dump_json() + "\n").encode()
        try:
            self._set_aside()
            whole = os.fstat(self._descriptor).st_size
            if os.write(self._descriptor, line) != len(line):
                os.ftruncate(self._descriptor, whole)
                raise OSError(28, "no room for a whole line")
            os.fsync(self._descriptor)
            _sync(self._file.parent)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self._file)) from None
        self.nights = [*self.nights, night]

    def _set_aside(self) -> None:
        """Move what is after the last line's end to a file of its own."""
        content = self._file.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return
        with Path(f"{self._file}{TORN}").open("ab") as torn:
            torn.write(content[whole:] + b"\n")
            torn.flush()
            os.fsync(torn.fileno())
        os.ftruncate(self._descriptor, whole)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
