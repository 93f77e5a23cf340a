"""Promised pods that come to a full link and go again, while another one's promise is kept there."""

from __future__ import annotations

import time
from collections.abc import Sequence

from bench.measurement.beside import streams
from bench.recording.beside import Round
from testbed.testbed import Testbed

WARM_UP_S = 1.0


def churn(testbed: Testbed, label: str, others: str, pods: Sequence[str], seconds: float) -> Round:
    """Let pods, which are there, go and come by turns for so long beside a promised flow.

    Raises RuntimeError.
    """
    changes = 0
    with (
        streams.counting(testbed, label) as counted,
        streams.sending(testbed, label, others),
    ):
        streams.wait_until(time.monotonic() + WARM_UP_S)
        begun = time.monotonic()
        while time.monotonic() < begun + seconds:
            pod = pods[changes % len(pods)]
            testbed.remove(pod)
            testbed.add(pod)
            changes += 1
        ended = time.monotonic()
    one = counted.round(f"pods that went and came: {changes}", streams.floor(testbed, label), begun, ended)
    return one.model_copy(update={"faults": testbed.check()})
