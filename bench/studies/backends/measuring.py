"""Measures what is no recording, as far as it is not there yet: a file for each thing that was done.

Where a machine drifts, backends take turns: throughput is measured on all of them side by side, and each
round of the others has them in an order of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pydantic import BaseModel

from bench.measurement.ways import first, flow, nodes, offered, others, scenarios
from bench.measurement.ways.ground import ground
from bench.recording import atomic
from bench.recording.directory import BESIDE
from bench.recording.records import slug
from bench.recording.ways import Cost, Exchanges, Flow, Nodes, Throughput
from bench.studies.backends.ways import COST, FIRST, NODES, THROUGHPUT, Way
from bench.studies.matrix.study import blocks

PAIR = 3  # nodes: a master, and two workers whose pods talk
TURNS, SECONDS = 3, 1  # flows on each fresh pair, and how long each lasts

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """What is to be measured."""

    ways: Sequence[Way]
    parts: Sequence[str]
    rounds: Mapping[str, int]  # by part
    sizes: Sequence[int]  # numbers of nodes
    seed: int

    def of(self, part: str) -> list[Way]:
        """Return the ways of which a part is measured."""
        return [way for way in self.ways if part in way.parts and part in self.parts]


def directory_of(study: Path, way: str) -> Path:
    """Return where a way's files are."""
    return study / BESIDE / slug(way, set())


def files(study: Path, way: str, part: str) -> list[Path]:
    """Return the files of one part of a way, in order."""
    return sorted(directory_of(study, way).glob(f"{part}-*.json"), key=_number)


def throughput_files(study: Path) -> list[Path]:
    """Return the files in which all ways are."""
    return sorted((study / BESIDE).glob(f"{THROUGHPUT}-*.json"), key=_number)


def measure(wanted: Wanted, study: Path, tell: Tell) -> None:
    """Measure what is missing. Raises RuntimeError, once all else is there, for what could not be."""
    steps = [(file, what, make) for file, what, make in _steps(wanted, study) if not file.exists()]
    failed = []
    for number, (file, what, make) in enumerate(steps, start=1):
        tell(f"{number} of {len(steps)}: {what}")
        try:
            atomic.write_model(file, make())
        except RuntimeError as error:
            failed.append(f"{what}: {error}")
            tell(failed[-1])
    if failed:
        raise RuntimeError("\n".join(failed))


_Step = tuple[Path, str, Callable[[], BaseModel]]


def _steps(wanted: Wanted, study: Path) -> Iterator[_Step]:
    """Yield every measurement: its file, what it is, and what makes it."""
    beside = wanted.of(THROUGHPUT)
    for number in range(1, wanted.rounds[THROUGHPUT] + 1 if beside else 1):
        file = study / BESIDE / f"{THROUGHPUT}-{number}.json"
        yield file, f"throughput, round {number}", partial(throughput, beside, number, wanted.seed)
    for part, make in ((COST, cost), (FIRST, exchanges)):
        ways = wanted.of(part)
        for number, order in enumerate(blocks(range(len(ways)), wanted.rounds[part], wanted.seed), start=1):
            for way in (ways[place] for place in order):
                file = directory_of(study, way.name) / f"{part}-{number}.json"
                yield file, f"{way.name}: {part}, round {number}", partial(make, way, number)
    for size in wanted.sizes:
        for way in wanted.of(NODES):
            file = directory_of(study, way.name) / f"{NODES}-{size}.json"
            yield file, f"{way.name}: {size} nodes", partial(many, way, size)


def throughput(ways: Sequence[Way], number: int, seed: int) -> Throughput:
    """Bring a fresh pair of nodes up for each way, and let a flow go on each of them by turns."""
    with ExitStack() as stack:
        pairs = [stack.enter_context(ground(scenarios.of_nodes(way.cluster, PAIR)))[0].pods for way in ways]
        flows = []
        for order in blocks(range(len(ways)), TURNS, seed + number):
            for place in order:
                source, destination = pairs[place].values()
                before = others.look()
                rate = flow.throughput(source, destination, SECONDS)
                beside = others.since(before, others.look())
                flows.append(Flow(backend=ways[place].name, bits_per_second=rate, beside=beside))
    return Throughput(round=number, flows=flows)


def cost(way: Way, number: int) -> Cost:
    """Offer packets on a fresh pair of nodes."""
    with ground(scenarios.of_nodes(way.cluster, PAIR)) as (testbed, _):
        source, destination = testbed.pods.values()
        plan = offered.Plan()
        found = [offered.offer(source, destination, one, plan) for one in offered.OFFERS]
    return Cost(backend=way.name, round=number, offered=found)


def exchanges(way: Way, number: int) -> Exchanges:
    """Exchange a byte with pods of fresh nodes."""
    with ground(scenarios.of_nodes(way.cluster, first.NODES, first.PODS)) as (testbed, together):
        return first.measure(testbed, together, way.name, number)


def many(way: Way, size: int) -> Nodes:
    """Bring many nodes up, and let one of them leave, join and move."""
    scenario = scenarios.of_nodes(way.cluster, size)
    begin = time.monotonic()
    with ground(scenario) as (testbed, together):
        return nodes.measure(testbed, together, way.name, time.monotonic() - begin)


def _number(file: Path) -> int:
    return int(file.stem.rpartition("-")[2])
