"""What every queue on the way does meanwhile, if the scenario wants that read.

One program in each place reads the kernel's counters and goes on with it (bench.measurement.queue_reader);
what it says is written down once the traffic is over. A place without Python, or whose clock is another
machine's, has no file.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.measurement import queue_reader as program
from bench.measurement.plan import Plan
from bench.observations.observation import Seen
from bench.recording import atomic, queues
from bench.recording.records import slugs
from testbed.access import scratch

# By its text: places within machines do not have our files.
PROGRAM = Path(program.__file__)
# How long before the traffic the first reading may be.
LONGEST_S = 60.0
LAST_S = 1.0  # how long the last reading is waited for
LOOK_S = 0.02


class QueueWatcher:
    """Reads from the beginning of the block; at its end the readings are in ``directory``."""

    def __init__(self, plan: Plan, directory: Path) -> None:
        self._places = {place.name: place for place in plan.way} if plan.queues else {}
        self._wishes = json.dumps({"interval": plan.queues})
        self._directory = directory
        self._files: dict[str, Path] = {}
        self._running = ExitStack()
        self._zero: float | None = None

    def __enter__(self) -> Self:
        text = PROGRAM.read_text(encoding="utf-8") if self._places else ""
        for name, place in self._places.items():
            self._files[name] = self._running.enter_context(scratch.file())
            command = ["python3", "-IS", "-c", text, self._wishes]
            process = place.start(command, stdout=self._files[name], stderr=Path(os.devnull))
            self._running.callback(process.kill)
        return self

    def start(self, zero: float) -> None:
        """Say when the run begins, on the monotonic clock."""
        self._zero = zero

    @property
    def seen(self) -> Seen:
        """Nothing beside the files that it leaves."""
        return Seen()

    @property
    def reads(self) -> bool:
        """Whether every place has been read."""
        return all(file.stat().st_size for file in self._files.values())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._running:
            if self._zero is None:
                return
            if kind is None:
                self._wait_for_last(time.monotonic())
            names = slugs(self._files)
            for name, file in self._files.items():
                said = file.read_text(encoding="utf-8")
                lines = on_clock(said, self._zero, time.monotonic())  # it goes on meanwhile
                if lines:
                    atomic.write(self._directory / queues.file_name(names[name]), lines.encode())

    def _wait_for_last(self, end: float) -> None:
        """Wait until every place was read once more after the end; on a busy machine it may come late."""
        deadline = end + LAST_S
        late = [file for file in self._files.values() if file.stat().st_size]  # others never say anything
        while late and time.monotonic() < deadline:
            late = [file for file in late if not _read_after(file, end)]
            if late:
                time.sleep(LOOK_S)  # a file in memory does not tell when it grows


def _read_after(file: Path, moment: float) -> bool:
    """Tell whether the last whole line of a file was said after a moment of this machine's clock."""
    lines = file.read_text(encoding="utf-8").rpartition("\n")[0]
    last = lines.rpartition("\n")[2]
    return bool(last) and json.loads(last)[0] >= moment


def on_clock(said: str, zero: float, now: float) -> str:
    """Return what a place said with moments after ``zero``; nothing of another machine's clock, or broken.

    ``now`` is the present. The last line may be cut off.
    """
    found = []
    for text in said.splitlines(keepends=True):
        if not text.endswith("\n"):
            break
        at, *counters = json.loads(text)
        if not zero - LONGEST_S <= at <= now:
            return ""
        found.append(queues.line(at - zero, [queues.Queue(*one) for one in counters]))
    return "".join(found)
