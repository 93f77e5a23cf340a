"""Traffic between two pods: one flow of TCP, as fast as it goes, and packets that are offered at a rate.

Of the latter, what all processors did meanwhile is read (``programs/load.py``): what each packet cost.
"""

from __future__ import annotations

import itertools
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field

from bench.measurement.probe import talking
from bench.recording.records import Entry
from bench.studies.machine import MOST_OTHERS, Reading, look, others, since, spent
from testbed.access.place import Place, PodPlace

PORT = 7009
GRACE_SECONDS = LISTENING_SECONDS = 10.0
LEAST_RECEIVED = 0.98  # of what was offered
MOST_STOLEN = 0.01  # of all processors' time
LOAD = Path(__file__).with_name("programs") / "load.py"
Count = Annotated[int, Field(ge=0)]


class Offered(Entry):
    """UDP at one offered rate."""

    size: Count  # bytes of payload
    rate: Count  # packets a second that were offered
    sent: Count
    packets: list[Count]  # received from one reading of ``busy`` to the next
    idle: tuple[tuple[Reading, Reading], tuple[Reading, Reading]]  # nothing flows: before, after
    busy: list[Reading]
    others_s: float | None  # as in Meanwhile, over all of it


class Plan(NamedTuple):
    """How long everything is looked at, seconds."""

    idle: float = 2.0  # before and after, each
    lead: float = 0.3  # of packets, before it is counted
    window: float = 1.0
    windows: int = 8  # that are counted, one after another


class Offer(NamedTuple):
    """What is offered."""

    size: int  # bytes of payload
    rate: int  # packets a second


# So many that packets are what the processors do, and waking up is not.
OFFERS = (Offer(64, 60_000), Offer(1400, 60_000))


class End(NamedTuple):
    """Who receives: where, and what is sent to reach it, which may be something that leads there."""

    place: Place
    address: str
    port: int
    asked: tuple[str, int]  # address and port, as the sender has them

    @classmethod
    def of(cls, pod: PodPlace, port: int = PORT) -> End:
        """Return that of a pod that is sent to itself."""
        return cls(pod, pod.address, port, (pod.address, port))


def offer(source: Place, end: End, one: Offer, plan: Plan) -> Offered:
    """Offer packets and return what came of it. Raises RuntimeError."""
    receive = {"address": end.address, "port": end.port, "role": "receive", **plan._asdict()}
    # A little longer than is counted: what is read at the end is read while packets still come.
    length = plan.lead + plan.window * plan.windows + 0.3
    address, port = end.asked
    send = {"address": address, "port": port, "role": "send", **one._asdict(), "seconds": length}
    before = look()
    with (
        talking(end.place, LOAD, receive) as receiver,
        talking(source, LOAD, send) as sender,
    ):
        receiver.begin()
        receiver.expect("idle", plan.idle + GRACE_SECONDS)
        sender.begin()
        sent = sender.data(length + GRACE_SECONDS)
        found = receiver.data(plan.idle + GRACE_SECONDS)
    meanwhile = since(before, look())
    return Offered.model_validate_json(
        json.dumps({**found, **one._asdict(), "sent": sent["sent"], "others_s": meanwhile.others_s})
    )


class Brought(NamedTuple):
    """What a flow brought to its receiver."""

    bytes: int  # of payload
    seconds: float

    @property
    def bits_per_second(self) -> float:
        """Its rate."""
        return self.bytes * 8 / self.seconds


def throughput(source: Place, end: End, seconds: int) -> Brought:
    """Return what iperf3 brings to the receiver by one flow. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        server = end.place.start(["iperf3", "-s", "-1", "-J", "-p", str(end.port)], stdout=out, stderr=err)
        try:
            deadline = time.monotonic() + LISTENING_SECONDS
            while not end.place.run(["ss", "-Hltn", f"sport = :{end.port}"]).stdout:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{end.place.name}: iperf3 does not listen: {err.read_text()}")
                time.sleep(0.01)
            address, port = end.asked
            client = ["iperf3", "-c", address, "-p", str(port), "-t", str(seconds)]
            source.run(client, timeout=seconds + 60)
            server.wait(10)
        finally:
            server.kill()
        received = json.loads(out.read_text())["end"]["sum_received"]
    return Brought(received["bytes"], received["seconds"])


def per_packet_ns(one: Offered) -> float:
    """Return what all processors did for each packet received, above what they do when nothing flows.

    It is the median of the windows: what else a machine's host has to do takes a second here and there. Of
    what has no faults: then packets came in every window.
    """
    idle = statistics.fmean(spent(*window).busy for window in one.idle)
    windows = zip(itertools.starmap(spent, itertools.pairwise(one.busy)), one.packets, strict=True)
    return statistics.median((busy.busy_s - idle * busy.seconds) * 1e9 / packets for busy, packets in windows)


def faults(one: Offered) -> Iterator[str]:
    """Yield, in words, why this says nothing about packets."""
    what, busy = f"{one.size} B at {one.rate}/s", spent(one.busy[0], one.busy[-1])
    for when, window in zip(("before", "after"), one.idle, strict=True):
        if (wasted := spent(*window).busy) > MOST_OTHERS:
            yield f"{what}: {wasted:.2f} processors were busy {when} it, when nothing flowed"
    yield from (f"{what}: {words}" for words in others(one.others_s, one.idle[0][0], one.idle[1][1]))
    if busy.stolen_s > MOST_STOLEN * busy.seconds * busy.processors:
        yield f"{what}: the hypervisor took {busy.stolen_s:.2f} s"
    received = sum(one.packets) / (one.rate * busy.seconds)
    if received < LEAST_RECEIVED:
        yield f"{what}: {received:.1%} of that were received".replace("%", " %")
