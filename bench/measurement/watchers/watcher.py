"""A thread that looks on while a block of code runs, from a moment that becomes the zero of its clock."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Watcher(ABC):
    """Watches from ``start`` until the end of the ``with`` block, in ``_watch``."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._zero = 0.0

    def __enter__(self) -> Self:
        return self

    def start(self, zero: float) -> None:
        """Begin to watch; ``zero`` is the run's beginning on the monotonic clock."""
        self._zero = zero
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    @abstractmethod
    def _watch(self) -> None:
        """Look on until ``_stop`` is set."""
