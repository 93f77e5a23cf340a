"""A promised pod that comes to a node whose link is full: it is attached, and sends at once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from bench.measurement.beside import streams
from bench.recording.beside import Round
from testbed.testbed import Testbed

FULL_S = 0.5  # after which what fills the link has found its rate
LOOKED_AT_S = 1.5


def rounds(testbed: Testbed, pod: str, label: str, others: Sequence[str], times: int) -> Iterator[Round]:
    """Let a pod come and send ``label`` beside ``others``, so many times, and go again.

    It is judged from the end of its ADD, where that is called from here. Where others call it, getting into
    a pod takes longer than what is measured: there it is judged from when its sender, which waits in its
    place, is let go. Raises RuntimeError.
    """
    for number in range(1, times + 1):
        with streams.sending(testbed, *others), streams.listening(testbed, label):
            streams.wait_until(time.monotonic() + FULL_S)
            with streams.counting(testbed, label) as counted:
                testbed.add(pod)
                added = time.monotonic()
                ours = pod in testbed.add_s
                with streams.sender(testbed, label, held=not ours) as sender:
                    since = added if ours else time.monotonic()
                    if not ours:
                        sender.release()
                    streams.wait_until(since + LOOKED_AT_S)
        one = counted.round(f"ADD {number}", streams.floor(testbed, label), since, since + LOOKED_AT_S)
        yield one.model_copy(update={"added_s": added, "faults": testbed.check()})
        testbed.remove(pod)
