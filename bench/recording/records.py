"""What is stored of a run: the records of it, field by field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from testbed.scenario.units import format_factor, format_number


class Entry(BaseModel):
    """Base of everything stored as JSON: no unknown fields, so that a misspelt one is noticed."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False, defer_build=True)


# As begin_directory (directory.py) makes them; what follows the time is a scenario's name.
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[A-Za-z0-9][A-Za-z0-9._-]{0,180}")

Time = Annotated[float, Field(ge=0)]  # seconds
Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9-]+$")]


class Transfer(Entry):
    """One transfer of one repetition."""

    slug: Slug  # names the raw files: iperf3's are <slug>.receiver.json and <slug>.sender.json
    started_s: float  # when its client was started, seconds after the repetition's beginning
    error: str | None = None  # the generator's own words, if it failed
    sender_interface_bytes: int | None = None  # sent by the source's eth0 meanwhile, layer 2
    class_bytes: int | None = None  # counted by the HTB class of the source, layer 2; None: no class


class Stretch(Entry):
    """Some time of a repetition, in seconds after its beginning."""

    start_s: float
    end_s: float


class CpuUse(Stretch):
    """What the machine's processors did in one stretch of time, as shares of all of them."""

    busy: float  # 1 - idle - iowait
    steal: float  # taken by the hypervisor
    busiest: float | None = None  # the same as busy of the busiest single processor; None: not recorded


class Stall(Stretch):
    """A stretch of time in which the machine ran nothing, as far as the harness could tell."""


class Fault(Entry):
    """What makes a repetition prove nothing, found while its testbed was up."""

    # What the kernel has is not as it was configured, or what is measured is not sound.
    kind: Literal["state", "measurement"]
    text: str


class Load(Entry):
    """What a machine's processors had to do beside programs, over one repetition."""

    softirq: list[float]  # share of time in software interrupts (networking's, mostly), by processor
    # Share of time in which something waited for a processor ("some" of cpu in the kernel's
    # Documentation/accounting/psi.rst); None: not readable.
    pressure: float | None = None


class Delayed(Entry):
    """One direction of a zone's trunk that takes time, over one repetition."""

    zone: str
    out: bool  # from the zone to the others
    means: str  # what made the delay: netem, or our own relay
    delay_s: float
    # How many frames passed; of these, how many were later than a tenth of the delay, beside the delay; how
    # late the worst was; how many were lost by what makes the delay, and not by a queue that was full. None:
    # it does not count, as netem.
    frames: int | None = None
    late: int | None = None
    worst_s: float | None = None
    dropped: int | None = None
    lateness: list[int] | None = None  # frames less than 1 us late, less than 2, less than 4, and so on


class CountedLink(Entry):
    """Which counter in the readings of queues is that of one direction of a link (testbed.scenario.links)."""

    owner: str
    trunk: bool
    out: bool  # away from its owner
    place: Slug  # as its readings' file is named
    device: str


class Took(Entry):
    """How long exchanges took from when they were due; null: the percentile is among those that were lost."""

    p50_s: Time | None
    p99_s: Time | None
    max_s: Time | None  # of those that were answered


class Repetition(Entry):
    """All transfers of one repetition, on one clock that starts at 0 with the repetition."""

    transfers: dict[str, Transfer]  # by the label of the flow or disturbance
    cpu: list[CpuUse]
    stalls: list[Stall] = []
    saturated: list[Stretch] = []  # in which a processor of the harness's machine had nothing to spare
    loads: dict[str, Load] | None = None  # by machine, called as one of its nodes; None: not recorded
    # Of every queue on a transfer's way, by place, interface and handle: packets that it dropped meanwhile,
    # and bytes that left by its default class.
    dropped: dict[str, int] | None = None
    by_default: dict[str, int] | None = None
    delayed: list[Delayed] | None = None  # by the trunks of zones; None: none takes time, or not recorded
    faults: list[Fault] = []
    # What else was observed, as JSON, by observation; not in the file if there is nothing.
    observed: dict[str, dict[str, Any]] = Field({}, exclude_if=lambda found: not found)


class Foreseen(Entry):
    """Whether a machine can tell at a share of every rate, as far as a calibration knows."""

    scale: float  # of the rates that were asked for
    margin: float  # what the flows can have beside the disturbances, over what they need, where it is least
    can_tell: bool


class Calibration(Entry):
    """Throughput of the guaranteed flows' paths without any shaping, all at once, before the run."""

    seconds: float
    bits_per_second: dict[str, float]  # payload received, by flow label
    error: str | None = None
    # By scale, the one asked for first; None: not foreseen, as after the traffic and by earlier versions.
    foreseen: list[Foreseen] | None = None


class Seconds(Entry):
    """How long the parts of the run took."""

    up: float
    calibration: float
    traffic: float
    down: float


def _utf8(text: str) -> str:
    """Raise ValueError for what a command line may hold and a file of text may not."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("not UTF-8 text") from None
    return text


Words = Annotated[str, AfterValidator(_utf8)]


class Asked(Entry):
    """What the command line asks for in whatever it measures, as it was given."""

    model_config = ConfigDict(frozen=True)

    overrides: tuple[Words, ...] = ()  # as for --set; the enforcement and the repetitions are among them
    scale: float = 1.0
    duration: int | None = Field(None, ge=1, le=86_400)  # seconds of traffic; None: the scenario's own
    provider: Words = "netns"  # with its source, as in ssh:inventory.yaml
    orchestrator: Words = "cni"
    reports: Words = "reports"  # the directory of the recordings


class Request(Asked):
    """``raw/request.json``: all that was asked for of one run, from the command line to its recording."""

    scenario: Words  # a file, a name in scenarios/, or a recording whose scenario is meant
    kubeconfigs: tuple[Words, ...] = ()  # of clusters that exist, as FILE or a=FILE; they make provider moot


class StudyRequest(Asked):
    """``request.json`` beside a study's index: all that was asked for of the study."""

    study: Words  # its name
    choices: dict[Words, tuple[Words, ...]] = {}  # what it alone may be asked for
    kubeconfigs: tuple[Words, ...] = ()  # as in Request, of a study that is made there, too

    def case(self, scenario: str, overrides: Iterable[str]) -> Request:
        """Return what is asked for of one case; ``overrides`` are all of it, the study's among them."""
        return Request(
            scenario=scenario,
            overrides=tuple(overrides),
            scale=self.scale,
            duration=self.duration,
            provider=self.provider,
            orchestrator=self.orchestrator,
            reports=self.reports,
            kubeconfigs=self.kubeconfigs,
        )


class Beginning(Entry):
    """``raw/beginning.json``: how a run was started, so that it can be gone on with."""

    started_at: str  # UTC, ISO 8601
    provider: str  # with its source, as in ssh:inventory.yaml
    orchestrator: str
    # The run that proved nothing because of the machine, and led to this one; None: there is none.
    retry_of: str | None = None


class Finished(Entry):
    """``raw/repetition-N/finished.json``: all there is of one repetition beside the generators' own output.

    It is written when nothing of the repetition is missing, its checks included. What was made once for
    several repetitions, as the calibration was, is in each of them.
    """

    repetition: Repetition
    seconds: float  # that its traffic took
    calibration: Calibration | None
    faults: list[str] = []  # of earlier versions; now the repetition has its own
    notes: list[str]


class RunRecord(Entry):
    """``raw/run.json``: what was done, beside the generators' own output."""

    schema_version: Literal[1] = 1
    run_id: str  # the recording's name when it was made; it may be kept under another
    started_at: str  # UTC, ISO 8601
    provider: str
    orchestrator: str
    seconds: Seconds
    calibration: Calibration | None  # the one that carried least
    calibrations: list[Calibration] = []  # all that were made, in order; empty: not recorded
    repetitions: list[Repetition]
    faults: list[str]  # all of the repetitions', in words
    notes: list[str] = []  # what else is to be known of the nodes, in words
    add_s: dict[str, float] | None = None  # what each pod's ADD took, by its name; None: not recorded
    retry_of: str | None = None  # as in Beginning
    # Of the links on transfers' ways; None: queues were not read, or by an earlier version.
    counted: list[CountedLink] | None = Field(None, exclude_if=lambda known: known is None)
    files: dict[str, str] | None = None  # SHA-256 of every other file, by path; None: not recorded


class Analysed(Entry):
    """``raw/analysis.json``: the one number of an analysis that is no function of the recording."""

    seconds: float  # that the first one took


def is_run_id(name: str) -> bool:
    """Tell whether a recording can have this name when it is complete: a time, the scenario, the enforcement.

    So it is none of the names that have a meaning of their own beside recordings, as ``latest`` has.
    """
    return _RUN_ID.fullmatch(name) is not None and not name.endswith(".unfinished")


def slug(label: str) -> str:
    """Return a file name for the label of a transfer, or a name."""
    return re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") or "transfer"


def slugs(labels: Iterable[str]) -> dict[str, str]:
    """Return a file name of its own for each label."""
    found: dict[str, str] = {}
    for label in labels:
        name, count = slug(label), 1
        while name in found.values():
            count += 1
            name = f"{slug(label)}-{count}"
        found[label] = name
    return found


def receiver_slug(of: str, end: str) -> str:
    """Return how the files of one of several receivers of a transfer begin, whose own begin with ``of``."""
    return f"{of}.{end.lower()}"


SMALLER = (0.5, 0.2, 0.1)  # shares of every rate that are tried where a machine cannot tell at what was asked


def excluded(found: Sequence[Foreseen] | None, scale: float) -> bool:
    """Tell whether a statement is excluded at a scale: it is if it already is at a smaller one, or at it."""
    return any(not one.can_tell for one in found or () if one.scale <= scale * (1 + 1e-9))


def foreseen_text(found: Sequence[Foreseen]) -> str:
    """Return whether this machine can tell, or at which smaller rates it can."""
    asked = found[0]
    margin = f"{format_number(round(asked.margin, 2))} times what the flows need"
    if asked.can_tell:
        return f"this machine can tell: beside all that disturbs there is {margin}"
    smaller = next((one for one in found if one.can_tell), None)
    if smaller is None:
        least = format_factor(found[-1].scale)
        return f"this machine cannot tell, not at {least} either: beside all that disturbs there is {margin}"
    return (
        f"this machine cannot tell: beside all that disturbs there is {margin}; "
        f"at {format_factor(smaller.scale)} it can"
    )
