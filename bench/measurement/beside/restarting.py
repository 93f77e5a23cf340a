"""A pod with a rate, while what runs on its node for pods' networks is ended and started again."""

from __future__ import annotations

import time

from bench.measurement.beside import streams
from bench.recording.beside import Round
from testbed.testbed import Testbed

BEFORE_S, AFTER_S = 2.0, 5.0
# What was saved up is used first: containerd's 2^32 - 1 bits last 8 s, where a pod of 400 Mbit/s sends with
# 1 Gbit/s. Between two flows less is saved up.
FIRST_S, WARM_UP_S = 10.0, 2.0


def restart(testbed: Testbed, label: str) -> list[Round]:
    """Measure a flow before and after, and one that begins only then. Raises RuntimeError."""
    node = testbed.scenario.node_of(streams.flow(testbed.scenario, label).source)
    floor = streams.floor(testbed, label)
    with streams.counting(testbed, label) as counted, streams.sending(testbed, label):
        begun = time.monotonic() + FIRST_S
        streams.wait_until(begun + BEFORE_S)
        agents = testbed.restart_agents(node)
        if not agents:
            raise RuntimeError(f"nothing runs on {node} that could be restarted")
        restarted = time.monotonic()
        streams.wait_until(restarted + AFTER_S)
    with streams.counting(testbed, label) as again, streams.sending(testbed, label):
        anew = time.monotonic() + WARM_UP_S
        streams.wait_until(anew + AFTER_S)
    faults = testbed.check()
    return [
        counted.round("before", floor, begun, begun + BEFORE_S),
        counted.round(f"after {', '.join(agents)}", floor, restarted, restarted + AFTER_S),
        again.round("a flow that begins then", floor, anew, anew + AFTER_S).model_copy(
            update={"faults": faults}
        ),
    ]
