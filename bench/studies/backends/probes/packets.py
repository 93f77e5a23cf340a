"""Traffic between two pods: one flow of TCP, as fast as it goes, and packets that are offered at a rate.

Of the latter, what all processors did meanwhile is read; see ``programs/load.py``.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

from bench.measurement.probe import talking
from bench.studies.backends.probes import PROGRAMS
from bench.studies.backends.records import Offered
from bench.studies.machine import look, since
from testbed.access.place import PodPlace

PORT, IPERF3_PORT = 7009, 5999
GRACE_SECONDS = LISTENING_SECONDS = 10.0


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
    before = look()
    with (
        talking(destination, PROGRAMS / "load.py", receive) as receiver,
        talking(source, PROGRAMS / "load.py", send) as sender,
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


def throughput(source: PodPlace, destination: PodPlace, seconds: int) -> float:
    """Return the payload that iperf3 brings to the receiver, bits per second. Raises RuntimeError."""
    with tempfile.TemporaryDirectory() as directory:
        out, err = Path(directory, "out"), Path(directory, "err")
        server = destination.start(
            ["iperf3", "-s", "-1", "-J", "-p", str(IPERF3_PORT)], stdout=out, stderr=err
        )
        try:
            deadline = time.monotonic() + LISTENING_SECONDS
            while not destination.run(["ss", "-Hltn", f"sport = :{IPERF3_PORT}"]).stdout:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{destination.name}: iperf3 does not listen: {err.read_text()}")
                time.sleep(0.01)
            client = ["iperf3", "-c", destination.address, "-p", str(IPERF3_PORT), "-t", str(seconds)]
            source.run(client, timeout=seconds + 60)
            server.wait(10)
        finally:
            server.kill()
        end = json.loads(out.read_text())["end"]["sum_received"]
    return float(end["bytes"] * 8 / end["seconds"])
