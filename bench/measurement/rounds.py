"""What agents of nodes wrote down of their rounds meanwhile; of a machine with another clock, nothing."""

from __future__ import annotations

import time
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.measurement.plan import Plan
from bench.observations.observation import Seen
from bench.recording import atomic, rounds
from bench.recording.records import slugs


class RoundsWatcher:
    """At the end of the block the rounds since its beginning are in ``directory``."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self._rounds = plan.rounds
        self._directory = directory
        self._zero: float | None = None

    def __enter__(self) -> Self:
        return self

    def start(self, zero: float) -> None:
        """Say when the run begins, on the monotonic clock."""
        self._zero = zero

    @property
    def seen(self) -> Seen:
        """Nothing beside the files that it leaves."""
        return Seen()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._zero is None or self._rounds is None or kind is not None:
            return
        found, now = self._rounds(), time.monotonic()
        names = slugs(found)
        for node, lines in found.items():
            if text := rounds.on_clock(lines, self._zero, now):
                atomic.write(self._directory / rounds.file_name(names[node]), text.encode())
