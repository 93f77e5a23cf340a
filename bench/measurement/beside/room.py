"""Whether too large a sum of promises is refused, and whether a pod that goes makes room."""

from __future__ import annotations

from bench.recording.beside import Step, Steps
from testbed.testbed import Testbed


def steps(testbed: Testbed, first: str, second: str) -> Steps:
    """Let a second pod come beside a first one, in its place, and the first beside the second.

    The link has room for either, and not for both. The first is there at the beginning. Raises RuntimeError
    for what is no answer of the network.
    """
    found = [_add(testbed, second)]
    faults = testbed.check()
    if found[-1].came:
        testbed.remove(second)
    testbed.remove(first)
    found.append(_add(testbed, second))
    found.append(_add(testbed, first))
    return Steps(steps=found, faults=[*faults, *testbed.check()])


def _add(testbed: Testbed, pod: str) -> Step:
    try:
        testbed.add(pod)
    except RuntimeError as error:
        return Step(pod=pod, came=False, words=str(error))
    return Step(pod=pod, came=True, words="")
