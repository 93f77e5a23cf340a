"""How a program hears that it is to end."""

from __future__ import annotations

import signal
from collections.abc import Callable

TO_END = (signal.SIGTERM, signal.SIGINT)


def when_to_end(do: Callable[[], object]) -> None:
    """Call ``do`` at each signal that tells this program to end; the main thread's to call.

    One that came while Python was being started is not lost where they were blocked until now, as images of
    ours have it (``env --block-signal``).
    """
    for number in TO_END:
        signal.signal(number, lambda *_: do())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, TO_END)
