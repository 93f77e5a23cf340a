"""Which datapaths are compared: every backend, and settings of one that change what is measured.

And what of them is no recording, measured as far as it is not there yet: a file for each thing that was done.
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
from typing import Any

from pydantic import BaseModel

from bench.measurement.probe import talking
from bench.recording import atomic
from bench.recording.directory import BESIDE
from bench.recording.records import slug
from bench.studies import packets
from bench.studies.backends.index import COST, FIRST, NODES, PARTS, THROUGHPUT
from bench.studies.backends.probes import PROGRAMS, nodes, scenarios
from bench.studies.backends.probes.scenarios import MASTER, ground, network_of
from bench.studies.backends.records import Cost, Exchange, Exchanges, Flow, Kind, Nodes, Throughput
from bench.studies.machine import look, since
from bench.studies.packets import End, Plan
from bench.studies.study import blocks
from testbed.scenario.networks import KINDS

PAIR = 3  # nodes: a master, and two workers whose pods talk
FIRST_NODES, FIRST_PODS = 7, 2  # a master, one worker that asks, and five that are asked; pods of each
MOST_SECONDS = 8.0  # that one exchange may take; a neighbour that is not there is given up after about six
TURNS, SECONDS = 3, 1  # flows on each fresh pair, and how long each lasts

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Datapath:
    """A backend with its settings."""

    name: str
    cluster: Mapping[str, Any]  # what its cluster says
    parts: Sequence[str] = PARTS

    def overrides(self, cluster: str) -> tuple[str, ...]:
        """Return what a scenario's cluster is to say, as for ``--set``."""
        return tuple(_settings(f"clusters.{cluster}", self.cluster))


def _bgp(name: str, **settings: Any) -> Datapath:
    return Datapath(f"bgp, {name}", {"backend": "bgp", "bgp": settings}, (NODES,))


def _misses(name: str, **settings: str) -> Datapath:
    return Datapath(f"vxlan-miss, {name}", {"backend": "vxlan-miss", "resolve": settings}, (FIRST,))


# Settings that matter for one question alone: a dead daemon, a mesh that grows as the square of its nodes,
# and flannel's second and third generation, of which less is left to be missed.
SETTINGS = (
    _misses("L3 by miss", l2="ahead", l3="miss"),
    _misses("all ahead", l2="ahead", l3="ahead"),
    _bgp("no graceful restart", graceful_restart=False),
    _bgp("route reflector", route_reflector=MASTER),
)


def known() -> dict[str, Datapath]:
    """Return all datapaths, by name: of the backends that are registered, each followed by its settings."""
    found: dict[str, Datapath] = {}
    for backend in KINDS:
        found[backend] = Datapath(backend, {"backend": backend})
        found |= {datapath.name: datapath for datapath in SETTINGS if datapath.cluster["backend"] == backend}
    return found


def _settings(path: str, values: Mapping[str, Any]) -> Sequence[str]:
    return [
        setting
        for key, value in values.items()
        for setting in (
            _settings(f"{path}.{key}", value)
            if isinstance(value, Mapping)
            else [f"{path}.{key}={str(value).lower() if isinstance(value, bool) else value}"]
        )
    ]


@dataclass(frozen=True)
class Wanted:
    """What is to be measured."""

    datapaths: Sequence[Datapath]
    parts: Sequence[str]
    rounds: Mapping[str, int]  # by part
    sizes: Sequence[int]  # numbers of nodes
    seed: int

    def of(self, part: str) -> list[Datapath]:
        """Return the datapaths of which a part is measured."""
        return [datapath for datapath in self.datapaths if part in datapath.parts and part in self.parts]


def directory_of(study: Path, datapath: str) -> Path:
    """Return where a datapath's files are."""
    return study / BESIDE / slug(datapath)


def files(study: Path, datapath: str, part: str) -> list[Path]:
    """Return the files of one part of a datapath, in order."""
    return sorted(directory_of(study, datapath).glob(f"{part}-*.json"), key=_number)


def throughput_files(study: Path) -> list[Path]:
    """Return the files in which all datapaths are."""
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
    together = wanted.of(THROUGHPUT)
    for number in range(1, wanted.rounds[THROUGHPUT] + 1 if together else 1):
        file = study / BESIDE / f"{THROUGHPUT}-{number}.json"
        yield file, f"throughput, round {number}", partial(throughput, together, number, wanted.seed)
    for part, make in ((COST, cost), (FIRST, exchanges)):
        datapaths = wanted.of(part)
        for number, order in enumerate(
            blocks(range(len(datapaths)), wanted.rounds[part], wanted.seed), start=1
        ):
            for datapath in (datapaths[place] for place in order):
                file = directory_of(study, datapath.name) / f"{part}-{number}.json"
                yield file, f"{datapath.name}: {part}, round {number}", partial(make, datapath, number)
    for size in wanted.sizes:
        for datapath in wanted.of(NODES):
            file = directory_of(study, datapath.name) / f"{NODES}-{size}.json"
            yield file, f"{datapath.name}: {size} nodes", partial(many, datapath, size)


def throughput(datapaths: Sequence[Datapath], number: int, seed: int) -> Throughput:
    """Bring a fresh pair of nodes up for each datapath, and let a flow go on each of them by turns."""
    with ExitStack() as stack:
        pairs = [
            stack.enter_context(ground(scenarios.of_nodes(datapath.cluster, PAIR)))[0].pods
            for datapath in datapaths
        ]
        flows = []
        for order in blocks(range(len(datapaths)), TURNS, seed + number):
            for place in order:
                source, destination = pairs[place].values()
                before = look()
                rate = packets.throughput(source, End.of(destination), SECONDS).bits_per_second
                meanwhile = since(before, look())
                flows.append(Flow(backend=datapaths[place].name, bits_per_second=rate, beside=meanwhile))
    return Throughput(round=number, flows=flows)


def cost(datapath: Datapath, number: int) -> Cost:
    """Offer packets on a fresh pair of nodes."""
    with ground(scenarios.of_nodes(datapath.cluster, PAIR)) as (testbed, _):
        source, destination = testbed.pods.values()
        end, plan = End.of(destination), Plan()
        found = [packets.offer(source, end, one, plan) for one in packets.OFFERS]
    return Cost(backend=datapath.name, round=number, offered=found)


def exchanges(datapath: Datapath, number: int) -> Exchanges:
    """Exchange a byte with pods of all other nodes, which are fresh: each for the first time."""
    with ground(scenarios.of_nodes(datapath.cluster, FIRST_NODES, FIRST_PODS)) as (testbed, together):
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
        with talking(together.hub, PROGRAMS / "exchanges.py", wishes) as talk:
            talk.begin()
            took = talk.data(MOST_SECONDS * (len(order) + 1))
    found = [Exchange(kind=kind, to=pod, ns=ns) for (kind, pod), ns in zip(order, took, strict=True)]
    return Exchanges(backend=datapath.name, round=number, exchanges=found)


def many(datapath: Datapath, size: int) -> Nodes:
    """Bring many nodes up, and let one of them leave, join and move."""
    scenario = scenarios.of_nodes(datapath.cluster, size)
    begin = time.monotonic()
    with ground(scenario) as (testbed, together):
        return nodes.measure(testbed, together, datapath.name, time.monotonic() - begin)


def _number(file: Path) -> int:
    return int(file.stem.rpartition("-")[2])
