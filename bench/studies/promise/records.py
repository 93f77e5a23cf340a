"""What is kept of a promised flow that goes on while something happens beside it; field by field."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from bench.recording.queues import DEVICE, Queue, Reading
from bench.recording.records import Entry, Stall, Stretch, slug
from testbed.scenario import Scenario
from testbed.scenario.frames import Protocol, frame_bytes, payload_bytes


class Watched(Entry):
    """What the queues of one place did; see bench.recording.queues."""

    place: str  # as that names its file
    readings: list[tuple[float, list[Queue]]]  # moments on the round's clock, and what had changed by then


class Datapath(Entry):
    """Where a flow's packets pass queues; places are named as their files are (bench.recording.queues)."""

    flow: str  # its label
    sender: str
    leaves: str  # the sender's node
    arrives: str  # the receiver's node
    nodes: list[str]  # all of them
    others: list[str]  # pods and containers that are not the sender

    @classmethod
    def of(cls, scenario: Scenario, label: str) -> Datapath:
        """Return the path of one of a scenario's transfers."""
        flow = next(one for one in scenario.transfers if one.label == label)
        ends = [name for name in (*scenario.pods, *scenario.containers) if name != flow.source]
        leaves, arrives = scenario.nodes_of(flow)
        return cls(
            flow=label,
            sender=slug(flow.source),
            leaves=slug(leaves),
            arrives=slug(arrives),
            nodes=[slug(name) for name in scenario.nodes],
            others=[slug(name) for name in ends],
        )


class Round(Entry):
    """One promised flow for some time, all moments in seconds on one clock."""

    name: str  # what was done beside it
    floor_bps: float  # the payload that its receiver shall have, bits per second
    points: list[tuple[float, float]]  # moments, and the payload (bits) that had arrived by then
    since_s: float  # from when on it is judged,
    until_s: float  # and up to when
    stalls: list[Stall]
    saturated: list[Stretch]  # in which a processor had nothing to spare
    lost: int = 0  # packets that the machine dropped meanwhile, for no processor got round to them
    faults: list[str] = Field([])  # what was not as it should be afterwards, in words
    sent: int | None = None  # frames that were sent against it; None: none
    added_s: float | None = None  # when its pod's ADD had returned; None: it was there all the time
    way: Datapath | None = None  # None: nobody looked at queues
    watched: list[Watched] = Field([])

    @property
    def label(self) -> str:
        """What its flow is called."""
        return self.way.flow if self.way else self.name


class Rounds(Entry):
    """``measured/CHECK.json``: what a check measured, one round after another."""

    rounds: list[Round]


class Step(Entry):
    """A pod that was to come, or to go."""

    pod: str
    came: bool  # whether it is there afterwards
    words: str  # why it was refused; empty: it was not


class Steps(Entry):
    """``measured/room.json``."""

    steps: list[Step]
    faults: list[str]  # of those who were there all the time, in words


class Asking(Entry):
    """Exchanges with one port of one node."""

    port: int
    from_node: str
    to_node: str
    took_s: list[float | None]  # each in its turn; None: no answer within the time one waits


class Asked(Entry):
    """``measured/control.json``."""

    waited_s: float  # how long an answer was waited for
    askings: list[Asking]


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
