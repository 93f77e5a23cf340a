"""What is observed beside a run's transfers: the protocol, and who is registered for it.

An observation looks before the traffic, while it flows and after it, and what it finds is recorded with the
repetition. From the recording it says what that means: why the run proves nothing, what else is to be known,
and its part of the page. So all that concerns it is in one file: docs/examples/forks_observation.py.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from bench.observations.causes import Cause
from bench.recording.records import Fault, Repetition, RunRecord
from testbed.registry import Registry, Settings
from testbed.scenario import Scenario
from testbed.scenario.words import Part

if TYPE_CHECKING:
    from testbed.access.place import Place
    from testbed.testbed import Testbed

NOT_RECORDED = "not recorded"


@dataclass(frozen=True)
class Scene:
    """Where one looks: a testbed that is up."""

    testbed: Testbed
    scenario: Scenario  # as it was asked for; the testbed's own has probes too
    way: Sequence[Place] = ()  # where the transfers' packets pass queues, as far as it is within reach


@dataclass(frozen=True)
class Seen:
    """What was found over one repetition."""

    record: Mapping[str, Any] = field(default_factory=dict)  # as JSON; kept under the observation's name
    fields: Mapping[str, Any] = field(default_factory=dict)  # of a Repetition: the project's own have some
    faults: Sequence[Fault] = ()  # what makes the repetition prove nothing, whatever it measured
    notes: Sequence[str] = ()  # what else is to be known, in words


class Evidence(NamedTuple):
    """What a recording has for causes to be found in."""

    scenario: Scenario
    record: RunRecord
    # Payload bytes by repetition, label, and "sender" or "receiver", which says so.
    totals: Mapping[tuple[int, str, str], int] = {}


class Column(NamedTuple):
    """A column of the page's table of repetitions."""

    heading: str
    legend: str  # what the numbers are, for the line above the table
    cell: Callable[[Repetition], str]


class Table(NamedTuple):
    """A table on the page, below that of repetitions."""

    title: str
    legend: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: int = 1  # so many columns, from the first on, hold words


class Watching(Protocol):
    """Looks on within a ``with`` block, from a moment that is the zero of its clock."""

    def __enter__(self) -> Self:
        """Get ready."""

    def start(self, zero: float) -> None:
        """Begin to watch; ``zero`` is the repetition's beginning on the monotonic clock."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""

    @property
    def seen(self) -> Seen:
        """What was seen, once the block has ended."""


class Watcher(ABC):
    """A thread that looks on from ``start`` until the end of the ``with`` block, in ``_watch``."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._zero = 0.0

    def __enter__(self) -> Self:
        return self

    def start(self, zero: float) -> None:
        """Begin to watch; ``zero`` is the run's beginning on the monotonic clock."""
        self._zero = zero
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    @abstractmethod
    def _watch(self) -> None:
        """Look on until ``_stop`` is set."""


class Observation:
    """One observation; whoever derives from it says what it has to say."""

    name: str
    # Whether what it looks at goes on changing once the traffic is over, so that it looks before anything
    # else is begun.
    at_once = True
    columns: Sequence[Column] = ()
    settings: Part | None = None  # its own, where a scenario says nothing; whoever is asked has what one says

    def before(self, scene: Scene) -> Any:
        """Look before the traffic; what is returned ``after`` is given back."""

    def watching(self) -> Watching | None:
        """Return what looks on while any transfers go on, those of a calibration too; None: nothing does."""
        return None

    def after(self, scene: Scene, before: Any) -> Seen:
        """Look after the traffic, and return what was found."""
        return Seen()

    def causes(self, evidence: Evidence) -> Iterator[Cause]:
        """Yield why what was recorded proves nothing, each in its own words with its numbers."""
        yield from ()

    def notes(self, record: RunRecord) -> Iterator[str]:
        """Yield what else is to be known of what was recorded."""
        yield from ()

    def details(self, repetition: Repetition) -> Mapping[str, Any]:
        """Return what the page unfolds of a repetition, by what it is."""
        return {}

    def table(self, record: RunRecord) -> Table | None:
        """Return a table for the page; None: there is nothing to be shown."""
        return None


OBSERVATIONS = Registry[Observation]("observation", word="observation")


def register(observation: Observation) -> None:
    """Let something be observed in every run from now on. Raises ValueError for a name that is taken."""
    OBSERVATIONS.register(observation.name, observation)


def configured(settings: Settings) -> dict[str, Observation]:
    """Return all observations by name, as a scenario sets them."""
    return {name: OBSERVATIONS.configured(name, settings) for name in OBSERVATIONS}


class Observed:
    """What observations find around one repetition's traffic, in their order.

    Who looked last before the traffic looks first after it.
    """

    def __init__(self, scene: Scene, observations: Mapping[str, Observation]) -> None:
        self._scene = scene
        self._all = observations
        self._before = {name: one.before(scene) for name, one in self._all.items()}
        self._seen: dict[str, Seen] = {}

    def look(self, at_once: bool) -> None:
        """Look once more: at what goes on changing, or at what stays as it is."""
        for name, before in reversed(self._before.items()):
            one = self._all[name]
            if one.at_once == at_once:
                self._seen[name] = one.after(self._scene, before)

    @property
    def seen(self) -> dict[str, Seen]:
        """What was found, by observation."""
        return {name: self._seen[name] for name in self._before if name in self._seen}

    @property
    def notes(self) -> list[str]:
        """What else is to be known, in words."""
        return [note for seen in self.seen.values() for note in seen.notes]


def recorded(repetition: Repetition, found: Mapping[str, Seen]) -> Repetition:
    """Return a repetition with what was found over it, by observation."""
    fields = {name: value for seen in found.values() for name, value in seen.fields.items()}
    faults = [*repetition.faults, *(fault for seen in found.values() for fault in seen.faults)]
    own = {name: dict(seen.record) for name, seen in found.items() if seen.record}
    observed = {**repetition.observed, **own}
    return repetition.model_copy(update={**fields, "faults": faults, "observed": observed})


def causes(evidence: Evidence) -> list[Cause]:
    """Return why a run proves nothing by what was observed, observation by observation."""
    known = configured(evidence.scenario.settings)
    return [cause for one in known.values() for cause in one.causes(evidence)]


def notes(scenario: Scenario, record: RunRecord) -> list[str]:
    """Return what else is to be known of what was observed."""
    return [note for one in configured(scenario.settings).values() for note in one.notes(record)]
