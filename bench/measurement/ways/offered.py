"""Offers packets from one pod to another, and reads what all processors did; see ``programs/load.py``."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from bench.measurement.ways import others
from bench.measurement.ways.talking import talking
from bench.recording.ways import Offered
from testbed.access.pods import PodPlace

PORT = 7009
GRACE_SECONDS = 10.0


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


def offer(source: PodPlace, destination: PodPlace, one: Offer, plan: Plan) -> Offered:
    """Offer packets and return what came of it. Raises RuntimeError."""
    wishes: dict[str, Any] = {"address": destination.address, "port": PORT}
    receive = {**wishes, "role": "receive", **plan._asdict()}
    # A little longer than is counted: what is read at the end is read while packets still come.
    length = plan.lead + plan.window * plan.windows + 0.3
    send = {**wishes, "role": "send", "rate": one.rate, "size": one.size, "seconds": length}
    before = others.look()
    with talking(destination, "load", receive) as receiver, talking(source, "load", send) as sender:
        for each in (receiver, sender):
            each.expect("ready", GRACE_SECONDS)
        receiver.begin()
        receiver.expect("idle", plan.idle + GRACE_SECONDS)
        sender.begin()
        sent = sender.data(length + GRACE_SECONDS)
        found = receiver.data(plan.idle + GRACE_SECONDS)
    beside = others.since(before, others.look())
    return Offered.model_validate_json(
        json.dumps({**found, **one._asdict(), "sent": sent["sent"], "others_s": beside.others_s})
    )
