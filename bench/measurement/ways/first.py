"""First exchanges: with a pod of a node that was never talked to, with another pod there, and once more."""

from __future__ import annotations

from bench.measurement.ways import scenarios
from bench.measurement.ways.ground import network_of
from bench.measurement.ways.talking import talking
from bench.recording.ways import Exchange, Exchanges, Kind
from testbed.providers import Together
from testbed.testbed import Testbed

NODES = 7  # a master, one worker that asks, and five that are asked
PODS = 2
MOST_SECONDS = 8.0  # that one exchange may take; a neighbour that is not there is given up after about six


def measure(testbed: Testbed, together: Together, backend: str, number: int) -> Exchanges:
    """Ask pods of all other workers, each for the first time. Raises RuntimeError."""
    asking, *asked = scenarios.workers(testbed.scenario)
    kinds: tuple[tuple[Kind, int], ...] = (("node", 0), ("known", 0), ("pod", 1))
    order = [(kind, scenarios.pod(node, pod)) for node in asked for kind, pod in kinds]
    wishes = {
        "source": network_of(testbed, together, scenarios.pod(asking)),
        "ends": [
            {"network": network_of(testbed, together, pod), "address": testbed.pods[pod].address}
            for _, pod in order
        ],
        "seconds": MOST_SECONDS,
    }
    with talking(together.hub, "exchanges", wishes) as talk:
        talk.expect("ready", MOST_SECONDS)
        talk.begin()
        took = talk.data(MOST_SECONDS * (len(order) + 1))
    exchanges = [Exchange(kind=kind, to=pod, ns=ns) for (kind, pod), ns in zip(order, took, strict=True)]
    return Exchanges(backend=backend, round=number, exchanges=exchanges)
