"""The kernel's own counts of what pods sent: do they agree with what the receivers reported?

A receiver cannot get bytes that nobody sent. If the sender, its interface or its HTB class counted fewer,
one of the observers is wrong, or the traffic went past the class; either way the run proves nothing. More
sent than received is the ordinary case (retransmissions, drops, queues) and no contradiction, except for
TCP, whose sender can be ahead of its receiver only by what the socket buffers hold. A sender's own count is
compared only if its generator says that it is one of payload.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from bench.generators import generator_of, guaranteed
from bench.observations.causes import Cause
from bench.observations.observation import Evidence, Observation
from bench.observations.procfs import sent_bytes
from bench.recording.records import Transfer
from testbed.access import batch
from testbed.access.place import CommandError, Place, in_parallel
from testbed.scenario import Traffic
from testbed.scenario.frames import payload_share
from testbed.scenario.networks import path_of

DEVICES = ["cat", "/proc/net/dev"]
QDISCS = ["tc", "-j", "-s", "qdisc", "show", "dev"]

# The counters are read shortly before and after a transfer; a twentieth is far more than that can explain,
# and less than any bypassed class leaves out.
TOLERANCE = 0.05
# TCP: the largest default buffers of a stream (net.ipv4.tcp_wmem 4 MiB, tcp_rmem 6 MiB), with room to spare.
BUFFERED_BYTES = 16 * 2**20
TCP_TOLERANCE = 0.10


class Counters(Observation):
    """Compares what is counted around transfers of every kind, a calibration's too (``transfers.run``)."""

    name = "counters"

    def causes(self, evidence: Evidence) -> Iterator[Cause]:
        """Yield every counter that cannot be true."""
        return contradictions(evidence)


@dataclass(frozen=True)
class Count:
    """What an interface of a pod or node has sent so far."""

    interface_bytes: int  # layer 2
    class_bytes: int | None  # layer 2, through its HTB; None without one
    direct_packets: int  # packets that found no class and went out unshaped


def read(place: Place, interface: str = "eth0") -> Count:
    """Read the counters of one place. Raises CommandError."""
    commands = [DEVICES, [*QDISCS, interface]]
    counted, shown = said_of_both = batch.look(place, commands)
    for command, said in zip(commands, said_of_both, strict=True):
        said.checked(place.name, command)
    sent = sent_bytes(counted.stdout)
    if interface not in sent:
        raise CommandError(place.name, DEVICES, 0, f"no {interface} among {', '.join(sent) or 'nothing'}")
    root = next((q for q in shown.json() if q.get("root") and q["kind"] == "htb"), None)
    if root is None:
        return Count(sent[interface], None, 0)
    return Count(sent[interface], root["bytes"], root["options"]["direct_packets_stat"])


@contextmanager
def counting(senders: Sequence[tuple[Transfer, Place, str]]) -> Iterator[None]:
    """Record with each transfer what its sender's interface, in its place, sends until the block's end.

    Raises CommandError.
    """
    sources = {place.name: (place, interface) for _, place, interface in senders}

    def count() -> dict[str, Count]:
        return dict(zip(sources, in_parallel(lambda one: read(*one), sources.values()), strict=True))

    before = count()
    yield
    after = count()
    for transfer, place, _ in senders:
        earlier, later = before[place.name], after[place.name]
        transfer.sender_interface_bytes = later.interface_bytes - earlier.interface_bytes
        if later.class_bytes is not None and earlier.class_bytes is not None:
            transfer.class_bytes = later.class_bytes - earlier.class_bytes


def contradictions(evidence: Evidence) -> Iterator[Cause]:
    """Yield every counter that cannot be true beside a guaranteed flow's receiver."""
    scenario, record, totals = evidence
    for number, repetition in enumerate(record.repetitions):
        for flow in guaranteed(scenario):
            received = totals.get((number, flow.label, "receiver"))
            transfer = repetition.transfers.get(flow.label)
            if not received or transfer is None:
                continue
            comparable = generator_of(scenario, flow).sender_counts_payload
            sent = totals.get((number, flow.label, "sender")) if comparable else None
            mtu = path_of(scenario, flow.source)[0]
            for text, observed, required in _compare(flow, received, sent, transfer, mtu):
                yield Cause(
                    kind="measurement",
                    text=f"{flow.label}, repetition-{number}: {text}",
                    flow=flow.label,
                    repetition=number,
                    observed=observed,
                    required=required,
                    topics=("counters",),
                )


def _compare(
    flow: Traffic, received: int, sent: int | None, transfer: Transfer, mtu: int
) -> Iterator[tuple[str, float, float]]:
    """Yield for each contradiction its words, and the bytes that were counted and those that had to be."""
    # An interface counts a GSO packet's headers once, a class those of every frame in it.
    counters = (
        ("its sender counted", sent, received),
        ("its pod's eth0 sent", transfer.sender_interface_bytes, received),
        ("its HTB class counted", transfer.class_bytes, received / payload_share(mtu, flow.protocol)),
    )
    for name, counted, needed in counters:
        if counted is not None and counted < (1 - TOLERANCE) * needed:
            text = (
                f"the receiver got {received:,} bytes, but {name} {counted:,}, "
                f"which is less than the {needed:,.0f} that this takes"
            )
            yield text, counted, needed
    if flow.protocol == "tcp" and sent is not None:
        most = received * (1 + TCP_TOLERANCE) + flow.parallel * BUFFERED_BYTES
        if sent > most:
            text = (
                f"the sender wrote {sent:,} bytes, the receiver got {received:,}: more is missing "
                "than socket buffers hold"
            )
            yield text, sent, most
