from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import pytest

from bench.analysis import next_steps
from bench.analysis.next_steps import RULES, Ask, NextStep
from bench.analysis.summary import SecondsSummary, Summary
from bench.analysis.verdict import Outcome
from bench.cli.table import VERBS
from bench.observations.causes import Cause, Kind, Topic
from bench.presentation import commands
from bench.recording import atomic, requests
from bench.recording.records import Request, StudyRequest
from bench.studies import known
from bench.studies.study import REQUEST
from testbed.scenario import Scenario, render_yaml
from tests.unit.bench.presentation.conftest import TypeIn

pytestmark = pytest.mark.usefixtures("elsewhere")

RUN = "20260101T000000Z-some-run"
KINDS: dict[Topic, Kind] = {
    **dict.fromkeys(("calibration", "generator", "relay"), "machine"),
    "kernel": "state",
}
BROKEN: tuple[Topic, ...] = ("mean", "attainment", "ceiling", "latency", "lost")
STARVED: tuple[Topic, ...] = ("mean", "attainment", "latency", "lost")
INVALID: tuple[Topic, ...] = tuple(topic for topic in get_args(Topic) if topic != "ceiling")
# What a run that has just ended has all of; others may have taken it from a recording since.
ALWAYS_THERE: tuple[Topic, ...] = ("files", "repetitions")


def summary(verdict: Outcome, *causes: tuple[Kind, Topic], flow: str | None = None) -> Summary:
    """What came out of a run, as far as what follows depends on it."""
    return Summary(
        run_id=RUN, started_at="2026-01-01T00:00:00Z", scenario="any", title="", provider="netns",
        orchestrator="cni", enforcement="any", verdict=verdict, reasons=[topic for _, topic in causes],
        causes=[
            Cause(
                kind=kind, flow=flow, phase=None, repetition=0, observed=None, required=None, text=topic,
                topics=(topic,),
            )
            for kind, topic in causes
        ],
        notes=[], flows=[], calibration=None,
        seconds=SecondsSummary(up=0, calibration=0, traffic=0, down=0, analysis=0),
    )  # fmt: skip


def outcomes(scenario: Scenario, topics: tuple[Topic, ...] = INVALID) -> Iterator[Summary]:
    """Each verdict, and each kind of cause of it."""
    yield summary("held")
    yield from (summary("violated", ("promise", topic)) for topic in BROKEN)
    label = scenario.requests[0].label if scenario.requests else None
    for topic in topics:
        kind = "machine" if topic in STARVED else KINDS.get(topic, "measurement")
        yield summary("invalid", (kind, topic), flow=label)


class Walk:
    """Follows every step to whatever may come out of it, and refuses to come back."""

    def __init__(self) -> None:
        self.longest: dict[str, int] = {}  # by command: how many may follow it
        self.asked: dict[str, Ask] = {}

    def follow(self, ask: Ask, path: tuple[str, ...] = ()) -> int:
        command = commands.of_step(NextStep(ask, "")).command
        assert command not in path, "\n".join((*path, command))
        if command not in self.longest:
            self.asked[command] = ask
            after = [self.follow(one, (*path, command)) for one in self._next(ask, bool(path))]
            self.longest[command] = 1 + max(after, default=0)
        return self.longest[command]

    def _next(self, ask: Ask, went_on: bool) -> list[Ask]:
        steps: list[NextStep | None] = []
        if isinstance(ask, Request):
            scenario = requests.read(ask)
            topics = tuple(one for one in INVALID if one not in ALWAYS_THERE) if went_on else INVALID
            steps += [next_steps.of_run(ask, scenario, one) for one in outcomes(scenario, topics)]
        elif isinstance(ask, StudyRequest):
            steps += [known.named(ask.study).next_of(ask, outcome) for outcome in get_args(Outcome)]
        return [step.ask for step in steps if step]


@pytest.fixture
def walk() -> Walk:
    """Return a walk where a recording of each run is that of the paper's experiment."""
    recording = Path("reports", RUN)
    (recording / "raw").mkdir(parents=True)
    (recording / "scenario.yaml").write_text(render_yaml(requests.read(Request(scenario="contmec"))))
    return Walk()


PAPER = Request(scenario="contmec")
THERE = Request(scenario="congested", kubeconfigs=("a=first 'config'", "b=second"))


SSH = Request(scenario="contmec", provider="ssh:lab.yaml")
LATENCY = Request(scenario="latency", overrides=("enforcement=bandwidth",))


@pytest.mark.parametrize(
    ("ask", "scales", "durations"),
    [
        (PAPER, [], []),
        pytest.param(THERE, [0.5, 0.2], [30, 60], marks=pytest.mark.long(one_in=0)),
        pytest.param(SSH, [0.5, 0.2], [30, 60], marks=pytest.mark.long(one_in=0)),
        pytest.param(PAPER, [0.5, 0.2], [30, 60], marks=pytest.mark.long(one_in=0)),
        pytest.param(LATENCY, [0.5, 0.2], [30, 60], marks=pytest.mark.long(one_in=0)),
    ],
)
def test_no_chain_of_steps_repeats_itself(
    ask: Request,
    scales: Sequence[float],
    durations: Sequence[int],
    walk: Walk,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the lists of scales and durations a few are enough: each is gone through in one direction."""
    monkeypatch.setattr(next_steps, "SCALES", scales)
    monkeypatch.setattr(next_steps, "DURATIONS", durations)
    assert walk.follow(ask) > 5
    assert {"./invokew doctor", "./invokew reproduce --recorded"} < walk.longest.keys()


def test_a_shell_takes_each_kind_of_step_as_it_is_meant(walk: Walk, type_in: TypeIn) -> None:
    """What measures is begun as it was meant to be; the options of who asked are kept."""
    asks = [
        PAPER.model_copy(
            update={"reports": "my reports/of $today", "orchestrator": "kubernetes", "scale": 0.5}
        ),
        Request(scenario="latency", overrides=("title='it''s'", "enforcement=none")),
        THERE,
    ]
    steps: dict[object, tuple[Request, NextStep]] = {}
    for ask in asks:
        scenario = requests.read(ask)
        for outcome in outcomes(scenario):
            step = next_steps.of_run(ask, scenario, outcome)
            steps.setdefault((type(step.ask), step.reason), (ask, step))
    for ask, step in steps.values():
        command = commands.of_step(step).command
        assert (f"--reports {shlex.quote(ask.reports)}" in command) == (
            ask.reports != "reports" and command != "./invokew doctor"
        )
        if isinstance(step.ask, Request) and step.ask.scenario != RUN:
            assert type_in(command) == (step.ask, requests.read(step.ask))
        elif isinstance(step.ask, StudyRequest):
            assert type_in(command) == step.ask
        elif isinstance(step.ask, tuple):
            verb = step.ask[0]
            assert verb in VERBS
    assert len(steps) >= 18


@pytest.mark.parametrize("name", known.STUDIES)
def test_a_study_that_was_moved_leads_to_where_recordings_are_now(
    name: str, tmp_path: Path, type_in: TypeIn
) -> None:
    study, reports = known.named(name), "my reports/of $today"
    atomic.write_model(study.index_file(tmp_path), study.index([]))
    atomic.write_model(tmp_path / REQUEST, StudyRequest(study=name, reports="where it was made"))
    step = study.next_step(tmp_path, reports)
    assert step is not None
    command = commands.of_step(step).command
    if isinstance(step.ask, StudyRequest):
        assert step.ask.reports == reports
        assert type_in(command) == step.ask
    else:
        assert shlex.split(command) == ["./invokew", "reproduce", "--recorded", "--reports", reports]


@pytest.mark.parametrize("topic", get_args(Topic))
def test_each_kind_of_cause_has_a_rule_of_its_own(topic: Topic) -> None:
    verdict = "violated" if topic == "ceiling" else "invalid"
    assert [rule for rule in RULES if topic in rule.topics and rule.verdict == verdict]


@pytest.mark.parametrize("verdict", get_args(Outcome))
def test_each_verdict_has_a_rule_for_all_that_is_left(verdict: Outcome) -> None:
    last = [rule for rule in RULES if rule.verdict == verdict][-1]
    assert not last.topics


def step(ask: Request, outcome: Summary, ruled_out: tuple[float, ...] = ()) -> str:
    return commands.of_step(next_steps.of_run(ask, requests.read(ask), outcome, ruled_out)).command


FULL = ("underlay.rate=10G",)


@pytest.mark.parametrize(
    ("ask", "outcome", "command"),
    [
        (PAPER, summary("held"), "bench --scenario contmec --set underlay.rate=10G"),
        (
            Request(scenario="contmec", overrides=FULL),
            summary("violated", ("promise", "attainment")),
            "bench --scenario contmec --set underlay.rate=10G --enforcement node",
        ),
        (
            Request(scenario="contmec", overrides=("measurement.repetitions=3", *FULL)),
            summary("violated", ("promise", "attainment")),
            "bench --scenario contmec --set underlay.rate=10G --enforcement node --repetitions 3",
        ),
        (
            Request(scenario="contmec", overrides=FULL),
            summary("held"),
            "bench --scenario contmec --set underlay.rate=10G --enforcement none",
        ),
        (Request(scenario="congested"), summary("held"), "promise --network node"),
        (
            Request(scenario="congested"),
            summary("violated", ("promise", "mean")),
            "promise --network node --profile floor",
        ),
        (
            Request(scenario="contmec", overrides=("network=bandwidth",), orchestrator="kubernetes"),
            summary("violated", ("promise", "ceiling")),
            "promise --network bandwidth --check first-second --check rate-100m --orchestrator kubernetes",
        ),
        (
            Request(scenario="contmec", overrides=("enforcement=none",), duration=5),
            summary("violated", ("promise", "mean")),
            "bench --scenario contmec --set underlay.rate=10G --duration 5 --enforcement node",
        ),
        (PAPER, summary("invalid", ("machine", "calibration")), "bench --scenario contmec --scale 0.5"),
        (
            Request(scenario="contmec", scale=0.02),
            summary("invalid", ("machine", "mean")),
            "reproduce --recorded",
        ),
        (PAPER, summary("invalid", ("measurement", "transfer")), "doctor"),
        (PAPER, summary("invalid", ("measurement", "samples")), "bench --scenario contmec --duration 30"),
        (
            Request(scenario="contmec", duration=60),
            summary("invalid", ("measurement", "samples")),
            "bench --scenario contmec --duration 120",
        ),
        (PAPER, summary("invalid", ("measurement", "files")), f"bench --scenario {RUN}"),
        (PAPER, summary("invalid", ("measurement", "repetitions")), f"bench --resume {RUN}"),
        (
            PAPER,
            summary("invalid", ("state", "kernel"), ("machine", "mean")),
            "bench --scenario contmec --repetitions 3",
        ),
        (
            Request(scenario="contmec", overrides=("measurement.repetitions=3",)),
            summary("invalid", ("state", "kernel")),
            "promise --network pod --check after-check",
        ),
        (
            Request(scenario="contmec", overrides=("pods.A-1.guarantee=null", "flows[1].duration=2")),
            summary("invalid", ("measurement", "undisturbed")),
            "bench --scenario contmec --set pods.A-1.guarantee=null --set flows[1].duration=2 "
            "--set disturbances[0].start=0.5",
        ),
        (
            Request(scenario="latency"),
            summary("invalid", ("machine", "generator"), flow="promised"),
            "bench --scenario latency --set requests[0].rate=250",
        ),
    ],
)  # fmt: skip
def test_what_follows(ask: Request, outcome: Summary, command: str) -> None:
    assert shlex.split(step(ask, outcome)) == ["./invokew", *command.split()]


def test_scales_that_are_ruled_out_are_passed_over() -> None:
    slow = summary("invalid", ("machine", "calibration"))
    assert step(PAPER, slow, (0.5, 0.2)) == "./invokew bench --scenario contmec --scale 0.1"
    assert step(PAPER, slow, next_steps.SCALES) == "./invokew reproduce --recorded"


def test_a_pod_is_promised_a_tenth_of_what_it_got() -> None:
    nothing = tuple(f"pods.{pod}.guarantee=null" for pod in ("A-1", "A-2", "B-1"))
    ask = Request(scenario="contmec", overrides=nothing)
    found = step(ask, summary("invalid", ("measurement", "unpromised")))
    assert "--set pods.A-1.guarantee=100M" in found
    assert "pods.A-1.guarantee=null" not in found


def test_causes_whose_topics_are_not_known_have_what_is_usual_for_their_kind() -> None:
    """As in a summary that was read from its file, in which they are not."""
    read = Summary.model_validate(summary("invalid", ("machine", "mean")).model_dump())
    assert read.causes[0].topics == ()
    assert step(PAPER, read) == "./invokew bench --scenario contmec --scale 0.5"


def test_the_page_for_trouble_has_each_rule() -> None:
    """If not: ./invokew schema."""
    page = commands.TROUBLESHOOT.read_text(encoding="utf-8")
    assert page == commands.troubleshoot()
    assert all(f"| {rule.command} | {rule.reason} |" in page for rule in RULES)
