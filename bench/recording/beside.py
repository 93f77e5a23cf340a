"""What is kept of a promised flow that goes on while something happens beside it; field by field."""

from __future__ import annotations

from pydantic import Field

from bench.recording.queues import Queue
from bench.recording.records import Entry, Stall, Stretch, slug
from testbed.scenario import Scenario


class Watched(Entry):
    """What the queues of one place did; see bench.recording.queues."""

    place: str  # as that names its file
    readings: list[tuple[float, list[Queue]]]  # moments on the round's clock, and what had changed by then


class Way(Entry):
    """Where a flow's packets pass queues; places are named as their files are (bench.recording.queues)."""

    flow: str  # its label
    sender: str
    leaves: str  # the sender's node
    arrives: str  # the receiver's node
    nodes: list[str]  # all of them
    others: list[str]  # pods and containers that are not the sender

    @classmethod
    def of(cls, scenario: Scenario, label: str) -> Way:
        """Return the way of one of a scenario's transfers."""
        flow = next(one for one in scenario.transfers if one.label == label)
        ends = [name for name in (*scenario.pods, *scenario.containers) if name != flow.source]
        leaves, arrives = scenario.node_of(flow.source), scenario.node_of(flow.destination)
        return cls(
            flow=label,
            sender=slug(flow.source, set()),
            leaves=slug(leaves, set()),
            arrives=slug(arrives, set()),
            nodes=[slug(name, set()) for name in scenario.nodes],
            others=[slug(name, set()) for name in ends],
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
    way: Way | None = None  # None: nobody looked at queues
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
