"""Do independent counters agree with what the receivers reported?

A receiver cannot get bytes that nobody sent. If the sender, its interface or its HTB class counted fewer,
one of the observers is wrong, or the traffic went past the class; either way the run proves nothing. More
sent than received is the ordinary case (retransmissions, drops, queues) and no contradiction, except for
TCP, whose sender can be ahead of its receiver only by what the socket buffers hold. A sender's own count is
compared only if its generator says that it is one of payload.
"""

from __future__ import annotations

from collections.abc import Iterator

from bench.analysis.causes import Cause
from bench.generators import generator_of, guaranteed
from bench.recording.records import RunRecord, Transfer
from testbed.scenario import Scenario, Traffic
from testbed.scenario.frames import payload_share
from testbed.scenario.networks import path_of

# The counters are read shortly before and after a transfer; a twentieth is far more than that can explain,
# and less than any bypassed class leaves out.
TOLERANCE = 0.05
# TCP: the largest default buffers of a stream (net.ipv4.tcp_wmem 4 MiB, tcp_rmem 6 MiB), with room to spare.
BUFFERED_BYTES = 16 * 2**20
TCP_TOLERANCE = 0.10


def contradictions(
    totals: dict[tuple[int, str, str], int], scenario: Scenario, record: RunRecord
) -> list[Cause]:
    """Return every counter that cannot be true beside a guaranteed flow's receiver.

    ``totals`` holds payload bytes by repetition, label and source, as ``samples.read`` gives them.
    """
    found: list[Cause] = []
    for number, repetition in enumerate(record.repetitions):
        for flow in guaranteed(scenario):
            received = totals.get((number, flow.label, "receiver"))
            transfer = repetition.transfers.get(flow.label)
            if not received or transfer is None:
                continue
            comparable = generator_of(flow).sender_counts_payload
            sent = totals.get((number, flow.label, "sender")) if comparable else None
            mtu = path_of(scenario, flow.source)[0]
            found += [
                Cause(
                    "measurement",
                    f"{flow.label}, repetition-{number}: {text}",
                    flow=flow.label,
                    repetition=number,
                    observed=observed,
                    required=required,
                    topics=("counters",),
                )
                for text, observed, required in _compare(flow, received, sent, transfer, mtu)
            ]
    return found


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
