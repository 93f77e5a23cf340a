"""What had arrived at a pod by each moment, from what its node's devices had sent."""

from __future__ import annotations

from collections.abc import Sequence

from bench.recording.queues import DEVICE, Reading
from testbed.scenario.frames import Protocol, frame_bytes, payload_bytes

Point = tuple[float, float]  # seconds on any clock, and bits that had arrived by then

ANY_MTU = 1500  # headers are as long whatever it is


def busiest(readings: Sequence[Reading]) -> str | None:
    """Return the device of a node that sent most in all.

    Where all that comes to a node is for one of its pods, it is the node's end of that pod's pair: what is
    received is not counted, and answers are small. None: nothing was counted.
    """
    if not readings:
        return None
    first, last = readings[0].queues, readings[-1].queues
    sent = {
        key[0]: counter.bytes - (first[key].bytes if key in first else 0)
        for key, counter in last.items()
        if counter.kind == DEVICE
    }
    return max(sent, key=lambda device: sent[device], default=None)


def payload(readings: Sequence[Reading], device: str, protocol: Protocol) -> list[Point]:
    """Return the payload (bits) that a device had sent by each reading, since the first that knows it.

    Each packet that is counted has one set of headers, whether it is one frame or was joined of many.
    """
    headers = frame_bytes(ANY_MTU) - payload_bytes(ANY_MTU, protocol)
    points = []
    for reading in readings:
        counter = reading.queues.get((device, DEVICE, "", ""))
        if counter is not None:
            points.append((reading.at_s, 8.0 * (counter.bytes - headers * counter.packets)))
    return points
