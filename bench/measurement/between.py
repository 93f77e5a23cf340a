"""One transfer between two pods of a testbed that is up already: a bench of one flow, without the rest.

What it leaves is read and judged like a run's (bench.analysis). There is no calibration, for nothing is taken
off somebody's testbed: what the machine could carry is not known, but how busy it was.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bench.generators import generator_of
from bench.measurement import transfers
from bench.measurement.plan import Plan, Planned, Receiving
from bench.observations import observation
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.records import RunRecord, Seconds
from testbed import lasting
from testbed.access.place import PodPlace
from testbed.providers.persistence import Location, Persisted
from testbed.scenario import Scenario, Traffic, render_yaml
from testbed.scenario.addressing import Addressing
from testbed.scenario.rules import faults


def scenario(kept: Persisted, source: str, destination: str, seconds: int) -> Scenario:
    """Return a testbed's scenario with one flow alone, from one of its pods to another.

    Raises LookupError for what is no pod of it, and for a flow that cannot be.
    """
    whole = lasting.scenario_of(kept)
    for name in (source, destination):
        if name not in whole.pods:
            raise LookupError(f"testbed {kept.name!r} has no pod {name!r} (pods: {', '.join(whole.pods)})")
    if source == destination:
        raise LookupError(f"{source} to {destination}: a transfer needs two pods")
    flow = Traffic.model_validate({"from": source, "to": destination, "duration": seconds})
    measurement = whole.measurement.model_copy(update={"repetitions": 1, "queues": None})
    alone = {"flows": [flow], "disturbances": [], "requests": [], "measurement": measurement}
    one = whole.model_copy(update=alone)
    if found := faults(one):
        raise LookupError("; ".join(fault.message for fault in found))
    return one


def measure(kept: Persisted, one: Scenario, directory: Path) -> RunRecord:
    """Make the flow of a scenario as ``scenario`` returns it, and record it in a directory.

    A flow that fails has its reason in the record. Raises LookupError where there are no pods, RuntimeError
    if they cannot be entered.
    """
    recording = Recording(directory)
    recording.raw_directory.mkdir(parents=True)
    atomic.write(recording.scenario_file, render_yaml(one).encode())
    started = datetime.now(UTC).isoformat(timespec="seconds")
    repetition = transfers.run(_plan(kept, one), recording.repetition_directory(0), lambda *_: None)
    return RunRecord(
        run_id=directory.name,
        started_at=started,
        provider="up",
        orchestrator="up",
        seconds=Seconds(up=0, calibration=0, traffic=one.duration, down=0),
        calibration=None,
        repetitions=[repetition],
        faults=[],
    )


def _plan(kept: Persisted, one: Scenario) -> Plan:
    (flow,) = one.flows
    places, addressing, tool = kept.state().places, Addressing(one), generator_of(one, flow)

    def there(name: str, network: bool) -> PodPlace:
        where: Location = places[name]
        return kept.place(name, where.network if network else where.entry, where.address)

    address, interval = places[flow.destination].address, one.measurement.interval
    planned = Planned(
        traffic=flow,
        generator=tool,
        source=there(flow.source, network=not tool.in_pods),
        source_network=there(flow.source, network=True),
        receivers=(
            Receiving(
                flow.destination,
                there(flow.destination, network=not tool.in_pods),
                there(flow.destination, network=True),
                there(places[flow.destination].node, network=False),
            ),
        ),
        address=address,
        receiver=tool.receiver(addressing, flow, interval),
        ready=tool.ready(addressing, flow),
        sender=tool.sender(addressing, flow, address, interval),
    )
    return Plan([planned], hosts=[], observations=observation.configured(one.settings))
