"""What requests take while nothing else is under way, and what pings take: before all traffic, and after.

The difference is what client and server add to the path. It is a function of the machine, so every run finds
it out for itself: between the pods, with the programs and at the rate of its own requests. What is found is
in the recording's raw files; one that is missing there is told of by the analysis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from bench.generators import exchanger_of, idle
from bench.measurement import transfers
from bench.measurement.plan import Plan, place, plan
from testbed.access.place import in_parallel
from testbed.scenario import Requests
from testbed.testbed import Testbed

ECHO_SECONDS = 30.0  # that the pings may take at most, where nodes are slow


def measure(testbed: Testbed, requests: Sequence[Requests], directory: Path) -> None:
    """Ask on the paths of a scenario's requests; what ``idle.files`` names lands in ``directory``."""
    if not requests:
        return
    samples = [idle.sample(one) for one in requests]
    planned = plan(testbed, samples, float(idle.SECONDS))
    files = idle.files(testbed.scenario, samples, directory, "echo")
    directory.mkdir(parents=True, exist_ok=True)
    # At the same time: a processor that sleeps takes long to wake, for both alike.
    work: list[Callable[[], None]] = [
        partial(_ask, planned, directory),
        *(partial(_ping, testbed, one, files[one.label]) for one in samples),
    ]
    in_parallel(lambda one: one(), work)


def _ask(planned: Plan, directory: Path) -> None:
    transfers.run(planned, directory, lambda _seconds, _rates: None)


def _ping(testbed: Testbed, sample: Requests, file: Path) -> None:
    exchanger = exchanger_of(testbed.scenario, sample)
    source = place(testbed, sample.source, exchanger)
    command = exchanger.echo(sample, testbed.address_for(sample))
    errors = file.with_name(f"{file.name.partition('.')[0]}.echo.stderr")
    process = source.start(command, stdout=file, stderr=errors)
    try:
        process.wait(ECHO_SECONDS)
    finally:
        process.kill()
