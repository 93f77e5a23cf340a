"""What to run after a verdict, so that something is known that was not known before.

A function of what was asked for and what came out: it reads no file, so that a page made again is the same.
Each rule is for one verdict and some of its causes, and stands for one row of the docs
(docs/howto/troubleshoot.md); the first that has something to offer is taken.

No chain of these steps comes back to where it was, for each leads on in one direction: from links with room
to full ones; from any enforcement to none, then to the one that shares out links, to the kit of promises, to
the studies; from a scale, a duration or a rate of requests to the next of a list. What ends without a verdict
ends the chain.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from bench import generators
from bench.analysis.summary import Summary
from bench.analysis.verdict import Outcome
from bench.observations.causes import Kind, Topic
from bench.recording.records import SMALLER, Asked, Request, StudyRequest
from testbed.scenario import Scenario, enforcements, links, rules
from testbed.scenario.units import format_rate, parse_rate

# What causes are mostly about whose topics are not known, as of a summary that was read from its file.
USUAL: Mapping[Kind, tuple[Topic, ...]] = {
    "promise": ("mean",),
    "state": ("kernel",),
    "machine": ("calibration",),
    "measurement": ("transfer",),
}

# Verbs that measure nothing, in their words.
Words = tuple[str, ...]
Ask = Request | StudyRequest | Words

SCALES = (*SMALLER, 0.05, 0.02)  # of what the scenario's file says
DURATIONS = (10, 30, 60, 120)  # seconds
FEW_REQUESTS = 20  # a second; of fewer no percentile is known
REPETITIONS = 3  # of what was seen once: whether it is there every time
KNOWN_WELL = 5  # repetitions, from which on intervals are over them (bench.analysis.spread)
PROMISED_OF_GOT = 0.1  # of what a pod got without a promise
UNKNOWN_BPS = 1e9  # in place of what it got, where nothing was measured
PROMISED_OF_LINK = 0.8  # of a link that is made full, so that every enforcement has room for the promise
ENFORCEMENT, NETWORK = "enforcement", "network"  # which say the same in a scenario
OWN_LAST = (ENFORCEMENT, "measurement.repetitions")
RESERVING = "node"  # the one of this project that keeps a floor on full links
BASELINE = enforcements.UNDESCRIBED
DEMANDING = "congested"  # a scenario with promises, disturbances and full links
DOCTOR: Words = ("doctor",)

# What steps find out that several rules have.
SLOW = "whether it holds at a part of every rate, which this machine may carry"
RECORDED = "what the kept recordings show, for which no machine has to be fast"
SIDE_BY_SIDE = "which enforcements keep a promise, side by side"
SEEN = "whether it is so each time"


@dataclass(frozen=True)
class NextStep:
    """What to run next, and why."""

    ask: Ask
    reason: str  # what it finds out


class NextStudy(NamedTuple):
    """The study that follows one."""

    name: str | None  # None: the last has been
    reason: str = ""  # what it finds out


LAST = NextStudy(None)


@dataclass(frozen=True)
class Case:
    """A run that was judged, as far as a rule must know it."""

    request: Request
    scenario: Scenario  # as run
    summary: Summary
    ruled_out: Collection[float] = ()  # scales that were tried, or are no use here

    @property
    def topics(self) -> set[Topic]:
        """What decided: of a violated run the promises that were broken, and not what else was odd."""
        broken = self.summary.verdict == "violated"
        causes = [one for one in self.summary.causes if one.kind == "promise" or not broken]
        return {topic for cause in causes for topic in cause.topics or USUAL[cause.kind]}

    def changed(self, **fields: object) -> Request | None:
        """Return what asks for the same with other fields; None if they are no others."""
        asked = self.request.model_copy(update=fields)
        return None if asked == self.request else asked

    def overridden(self, *overrides: str) -> Request | None:
        """Return what asks for the same with these overrides, in place of what was set of the same fields."""
        paths = {one.partition("=")[0] for one in overrides}
        if ENFORCEMENT in paths:
            paths.add(NETWORK)
        kept = [one for one in self.request.overrides if one.partition("=")[0] not in paths]
        # Those with options of their own come last, as they do when they are typed.
        return self.changed(overrides=tuple(sorted((*kept, *overrides), key=_place)))


@dataclass(frozen=True)
class Rule:
    """One row: after which verdict, for which causes, what is run, and what that finds out."""

    verdict: Outcome
    topics: Sequence[Topic]  # any of them; none: whatever the causes are
    because: str  # for the docs: when it is so
    command: str  # for the docs: what is run
    reason: str
    find: Callable[[Case], Ask | None]


def of_run(
    request: Request, scenario: Scenario, summary: Summary, ruled_out: Collection[float] = ()
) -> NextStep:
    """Return what to run after a run was judged.

    ``ruled_out`` are scales that are no use here: they were tried, or the calibration says so.
    """
    case = Case(request, scenario, summary, ruled_out)
    for rule in RULES:
        if rule.verdict == summary.verdict and (not rule.topics or case.topics.intersection(rule.topics)):
            ask = rule.find(case)
            if ask is not None:
                return NextStep(ask, rule.reason)
    raise AssertionError("the last rule of each verdict is for all that is left")


def of_study(asked: StudyRequest, outcome: Outcome, leads_to: NextStudy | None) -> NextStep | None:
    """Return what to run after a study; None where nothing follows from one that is somebody's own."""
    if outcome == "invalid" and (scale := _smaller(asked.scale)) is not None:
        return NextStep(asked.model_copy(update={"scale": scale}), SLOW)
    if leads_to is None:
        return None
    if leads_to.name is None or asked.kubeconfigs:
        return NextStep(_recorded(asked.reports), RECORDED)
    return NextStep(_study(leads_to.name, asked), leads_to.reason)


def of_recording(run: str | None, reports: str) -> NextStep:
    """Return what to run after several were judged together, of which this says most; None: it has none."""
    if run is None:
        return NextStep(DOCTOR, "what this machine lacks")
    return NextStep(("figures", run, *where(reports)), "why, and what follows of it")


def _recorded(reports: str) -> Words:
    """Return what reads the kept recordings again; ``reports`` is for what it leads to in turn."""
    return ("reproduce", "--recorded", *where(reports))


def where(reports: str) -> Words:
    """Return the option for the directory of the recordings, if it is not the usual one."""
    return () if reports == Request.model_fields["reports"].default else ("--reports", reports)


def _study(name: str, asked: Asked, **choices: Sequence[str]) -> StudyRequest:
    """Return a study asked for where something else was: of its own scenarios, on nodes made alike."""
    return StudyRequest(
        study=name,
        choices={key: tuple(values) for key, values in choices.items() if values},
        scale=asked.scale,
        provider=asked.provider,
        orchestrator=asked.orchestrator,
        reports=asked.reports,
    )


# Held.


def _fill_links(case: Case) -> Ask | None:
    """Links that the disturbance can fill, where none has a rate yet."""
    override = _full_link(case)
    if override is None or not _agrees(_with_link(case, case.scenario, override)):
        return None
    return case.overridden(override)


def _baseline(case: Case) -> Ask | None:
    kind = enforcements.of(case.scenario)
    if not kind.claims or kind.shares_links or not case.scenario.disturbances:
        return None
    return _with_network(case, BASELINE)


def _kit(*profiles: str, checks: Sequence[str] = ()) -> Callable[[Case], Ask | None]:
    """The kit of promises, for a network that claims anything and has a name or a file."""

    def find(case: Case) -> Ask | None:
        name = _named_network(case)
        if name is None or not enforcements.of(case.scenario).claims:
            return None
        link: Sequence[str] = ()
        if case.request.kubeconfigs:
            if case.scenario.underlay.rate is None:
                return None
            link = (format_rate(case.scenario.underlay.rate),)
        found = _study("promise", case.request, network=(name,), profile=profiles, check=checks, link=link)
        return found.model_copy(update={"kubeconfigs": case.request.kubeconfigs})

    return find


def _repeated(times: int, there: bool = False) -> Callable[[Case], Ask | None]:
    """The same more often; ``there``: on clusters that exist alone."""

    def find(case: Case) -> Ask | None:
        if case.scenario.measurement.repetitions >= times or (there and not case.request.kubeconfigs):
            return None
        return case.overridden(f"measurement.repetitions={times}")

    return find


def _matrix(case: Case) -> Ask | None:
    return None if case.request.kubeconfigs else _study("matrix", case.request)


def _kept(case: Case) -> Ask:
    return _recorded(case.request.reports)


# Violated.


def _longer(case: Case) -> Ask | None:
    longer = next((seconds for seconds in DURATIONS if seconds > case.scenario.duration), None)
    return None if longer is None else case.changed(duration=longer)


def _reserving(case: Case) -> Ask | None:
    """The enforcement that reserves, on links that have a rate, or get one."""
    if enforcements.of(case.scenario).shares_links:
        return None
    return _with_network(case, RESERVING)


# Invalid.


def _as_run(case: Case) -> Ask | None:
    """The scenario as it was run, from the recording; unless it was that already."""
    if _is_recording(case.request.scenario):
        return None
    return case.changed(scenario=case.summary.run_id, overrides=(), scale=1.0, duration=None)


def _resumed(case: Case) -> Ask:
    return ("bench", "--resume", case.summary.run_id, *where(case.request.reports))


def _promised(case: Case) -> Ask | None:
    """A promise to the first pod that sends: so little of what it got that the machine has room for it."""
    got = {
        flow.name: max((phase.mean_bps for phase in flow.phases.values()), default=0.0)
        for flow in case.summary.flows
    }
    for flow in case.scenario.flows:
        pod = case.scenario.pods.get(flow.source)
        if pod is not None and pod.guarantee is None:
            rate = _rounded((got.get(flow.label, 0.0) or UNKNOWN_BPS) * PROMISED_OF_GOT / case.request.scale)
            asked = case.overridden(f"pods.{flow.source}.guarantee={format_rate(rate)}")
            promised = pod.model_copy(update={"guarantee": round(rate * case.request.scale)})
            pods = {**case.scenario.pods, flow.source: promised}
            return asked if asked and _agrees(case.scenario.model_copy(update={"pods": pods})) else None
    for index, requests in enumerate(case.summary.requests):
        if requests.latency_s is not None:
            continue
        took = max((phase.p99_s or 0.0 for phase in requests.phases.values()), default=0.0)
        return case.overridden(f"requests[{index}].latency={max(2 * took, 0.001):.3g}")
    return None


def _demanding(case: Case) -> Ask | None:
    """Another scenario, on the same nodes."""
    if case.request.scenario == DEMANDING or _is_recording(case.request.scenario) or case.request.kubeconfigs:
        return None
    return case.changed(scenario=DEMANDING, overrides=())


def _disturbed(case: Case) -> Ask | None:
    """The first disturbance where the first flow is judged that has a guarantee, or the first requests."""
    judged = [*generators.guaranteed(case.scenario), *(one for one in case.scenario.requests if one.judged)]
    if not judged or not case.scenario.disturbances:
        return None
    start = judged[0].start + case.scenario.measurement.warm_up
    first, *others = case.scenario.disturbances
    moved = [first.model_copy(update={"start": start}), *others]
    agrees = _agrees(case.scenario.model_copy(update={"disturbances": moved}))
    return case.overridden(f"disturbances[0].start={start:g}") if agrees else None


def _scaled(case: Case) -> Ask | None:
    scale = _smaller(case.request.scale, case.ruled_out)
    return None if scale is None else case.changed(scale=scale)


def _finer(case: Case) -> Ask | None:
    """Samples of more bytes: of longer intervals, as far as transfers have enough of them."""
    interval = 2 * case.scenario.measurement.interval
    measurement = case.scenario.measurement.model_copy(update={"interval": interval})
    agrees = _agrees(case.scenario.model_copy(update={"measurement": measurement}))
    return case.overridden(f"measurement.interval={interval:g}") if agrees else _longer(case)


def _fewer_requests(case: Case) -> Ask | None:
    """Half as many of the requests whose generator was late."""
    late = {cause.flow for cause in case.summary.causes if "generator" in cause.topics}
    halved = [
        f"requests[{index}].rate={requests.rate / 2:g}"
        for index, requests in enumerate(case.scenario.requests)
        if requests.label in late and requests.rate / 2 >= FEW_REQUESTS
    ]
    return case.overridden(*halved) if halved else None


def _doctor(_case: Case) -> Ask:
    return DOCTOR


_REPETITIONS = f"the same with `--repetitions {REPETITIONS}`"
_SCALE = f"the same with the next smaller `--scale` of {', '.join(f'{scale:g}' for scale in SCALES)}"
_PROMISE = "`promise` of the same network"

RULES: Sequence[Rule] = (
    Rule(
        "held",
        (),
        "the links have room",
        "the same on links that the promises fill to four fifths",
        "whether it holds on full links, where a limit alone reserves nothing",
        _fill_links,
    ),
    Rule(
        "held",
        (),
        "on full links, or on links that are as they are",
        f"the same with enforcement `{BASELINE}`",
        "whether it was the enforcement that kept it",
        _baseline,
    ),
    Rule(
        "held",
        (),
        "on clusters that exist",
        f"the same with `--repetitions {KNOWN_WELL}`",
        "how much the means differ from one repetition to the next",
        _repeated(KNOWN_WELL, there=True),
    ),
    Rule(
        "held",
        (),
        f"enforcement `{RESERVING}`, or none other can be tried",
        _PROMISE,
        "what else this network keeps: ceilings, floors, and under attack",
        _kit(),
    ),
    Rule("held", (), f"enforcement `{BASELINE}`", "`matrix`", SIDE_BY_SIDE, _matrix),
    Rule("held", (), "none of these", "`reproduce --recorded`", RECORDED, _kept),
    Rule(
        "violated",
        ("ceiling",),
        "a pod sent more than its ceiling",
        f"{_PROMISE}: its first second, its long run",
        "whether it is a burst, or no limit at all",
        _kit(checks=("first-second", "rate-100m")),
    ),
    Rule(
        "violated",
        ("ceiling",),
        "the same, of a network without a name",
        "the same for longer",
        "whether it is a burst that ends",
        _longer,
    ),
    Rule(
        "violated",
        ("mean", "attainment", "latency", "lost"),
        "a flow got too little, or requests too late",
        f"the same with enforcement `{RESERVING}`",
        "whether neighbours took it: there, a share of the link is reserved",
        _reserving,
    ),
    Rule(
        "violated",
        ("mean", "attainment"),
        f"the same with enforcement `{RESERVING}`",
        f"{_PROMISE}, profile floor",
        "who takes it: what each class and queue let pass meanwhile",
        _kit("floor"),
    ),
    Rule(
        "violated",
        ("latency", "lost"),
        f"the same with enforcement `{RESERVING}`",
        f"{_PROMISE}, profile latency",
        "where small messages wait, in a pod with a rate and beside it",
        _kit("latency"),
    ),
    Rule("violated", (), "none of these", "`matrix`", SIDE_BY_SIDE, _matrix),
    Rule(
        "violated",
        (),
        "none of these, on clusters that exist",
        "`doctor`",
        "what this machine lacks",
        _doctor,
    ),
    Rule(
        "invalid",
        ("files",),
        "a file of the recording is missing, or not as the run left it",
        "the scenario as it was run, from the recording",
        "what the same scenario shows in a recording that is whole",
        _as_run,
    ),
    Rule(
        "invalid",
        ("repetitions",),
        "repetitions are missing",
        "`bench --resume`",
        "what the repetitions show that are missing",
        _resumed,
    ),
    Rule(
        "invalid",
        ("transfer", "uncalibrated"),
        "a transfer or the calibration failed",
        "`doctor`",
        "what this machine lacks",
        _doctor,
    ),
    Rule(
        "invalid",
        ("samples", "exchanges"),
        "too few samples or requests",
        "the same for longer",
        "what more samples of each phase show",
        _longer,
    ),
    Rule(
        "invalid",
        ("coarse",),
        "samples of so few bytes that a packet more or less makes one low",
        "the same with samples twice as long, or for longer",
        "what samples show that hold more",
        _finer,
    ),
    Rule(
        "invalid",
        ("unpromised",),
        "nothing has a guarantee or a threshold",
        "the same with a tenth of what the first pod got promised to it",
        "whether a promise is kept that this network can be made",
        _promised,
    ),
    Rule(
        "invalid",
        ("unpromised",),
        "the same, and no pod sends",
        f"scenario `{DEMANDING}`",
        "how a scenario ends that has promises, and disturbs them",
        _demanding,
    ),
    Rule(
        "invalid",
        ("undisturbed",),
        "nothing was measured while anything disturbed it",
        "the same with the first disturbance where the first flow is judged",
        "whether it holds while something disturbs it",
        _disturbed,
    ),
    Rule(
        "invalid",
        ("counters", "clocks", "kernel"),
        "counters contradict each other, clocks drift apart, or the kernel's state changed",
        _REPETITIONS,
        SEEN,
        _repeated(REPETITIONS),
    ),
    Rule(
        "invalid",
        ("kernel",),
        "the same each time",
        f"{_PROMISE}: after CHECK",
        "whether it is the network that changes it",
        _kit(checks=("after-check",)),
    ),
    Rule(
        "invalid",
        ("generator",),
        "the generator of requests was late",
        "the same with half as many requests",
        "whether the generator is in time if it has less to do",
        _fewer_requests,
    ),
    Rule(
        "invalid",
        ("calibration", "relay", "mean", "attainment", "latency", "lost"),
        "the machine may have been the limit",
        _SCALE,
        SLOW,
        _scaled,
    ),
    Rule(
        "invalid",
        ("calibration", "relay", "mean", "attainment", "latency", "lost", "generator"),
        "the same at the smallest",
        "`reproduce --recorded`",
        RECORDED,
        _kept,
    ),
    Rule("invalid", (), "none of these", "`doctor`", "what this machine lacks", _doctor),
)


# What can be changed.


def _place(override: str) -> int:
    """Return behind which others an override comes, for sorting."""
    path = override.partition("=")[0]
    return OWN_LAST.index(path) if path in OWN_LAST else -1


def _named_network(case: Case) -> str | None:
    """Return how a command names the network: as it was asked for, else its name; None if it has none."""
    said = [one.partition("=") for one in case.request.overrides]
    asked = [word for key, _, word in said if key in (ENFORCEMENT, NETWORK)]
    if asked:
        return asked[-1]
    return case.scenario.enforcement if isinstance(case.scenario.enforcement, str) else None


def _with_network(case: Case, name: str) -> Request | None:
    """Return the same with another enforcement; links get a rate if it needs one.

    None if it cannot be had: on clusters that exist enforcements are what is installed.
    """
    if case.request.kubeconfigs:
        return None
    changed = case.scenario.model_copy(update={"enforcement": name})
    wanted = []
    if not _agrees(changed):
        rate = _full_link(case)
        if rate is None:
            return None
        wanted = [rate]
        changed = _with_link(case, changed, rate)
    return case.overridden(*wanted, f"{ENFORCEMENT}={name}") if _agrees(changed) else None


def _full_link(case: Case) -> str | None:
    """Return what gives all links a rate that promises and disturbances fill together.

    None if that cannot be asked for: links have a rate, nothing disturbs, or somebody else made them.
    """
    scenario = case.scenario
    made_here = case.request.provider == "netns" and not case.request.kubeconfigs
    if not made_here or not scenario.disturbances or links.limited(scenario):
        return None
    by_node: dict[str, float] = {}
    for pod in scenario.pods.values():
        by_node[pod.node] = by_node.get(pod.node, 0.0) + (pod.guarantee or 0)
    most = max(by_node.values(), default=0.0)
    if not most:
        return None
    return f"underlay.rate={format_rate(_rounded(most / PROMISED_OF_LINK / case.request.scale))}"


def _with_link(case: Case, scenario: Scenario, override: str) -> Scenario:
    rate = round(parse_rate(override.partition("=")[2]) * case.request.scale)
    return scenario.model_copy(update={"underlay": scenario.underlay.model_copy(update={"rate": rate})})


def _agrees(scenario: Scenario) -> bool:
    return not rules.faults(scenario)


def _is_recording(scenario: str) -> bool:
    """Tell whether a scenario was named by a recording: by its run id, or its directory."""
    return re.search(r"\b\d{8}T\d{6}Z-", scenario) is not None


def _smaller(scale: float, ruled_out: Collection[float] = ()) -> float | None:
    return next((one for one in SCALES if one < scale and one not in ruled_out), None)


def _rounded(rate: float) -> int:
    """Return a rate with two digits, not below what it was, bits per second."""
    unit = int(10 ** max(0, math.floor(math.log10(max(rate, 1.0))) - 1))
    return math.ceil(round(rate / unit, 6)) * unit
