"""Measuring: does a pod get what it was promised?"""

from __future__ import annotations

from pathlib import Path

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import DURATION, JSON, RUN, SCENARIO, STUDY, task


@task(
    iterable=["scenario", "set_", "kubeconfig"],
    help={
        **RUN,
        **DURATION,
        **JSON,
        "scenario": f"{SCENARIO}; may be repeated (default: the paper's two)",
        "kubeconfig": "run on a cluster that exists: [CLUSTER=]FILE[@CONTEXT]; one for each cluster",
        "enforcement": "the network: none, pod, node, bandwidth, another of scenarios/networks, or a file "
        "(default: the scenario's)",
        "repetitions": "how often each scenario's traffic runs (default: the scenario's)",
        "resume": "go on with an interrupted run, as it was begun: its directory or run id",
        "scale": "multiply every rate, as in 0.1; auto: the largest of 1, 0.5, 0.2 and 0.1 at which this "
        "machine can tell",
        "retry": "how many further runs at most if one is invalid because of the machine: once more, then at "
        "0.5, 0.2, 0.1 of every rate, for 3 minutes in all; 0: none",
    },
)
def bench(
    _context: Context,
    scenario: list[str],
    set_: list[str],
    kubeconfig: list[str],
    scale: str = "1",
    duration: str = "",
    enforcement: str = "",
    repetitions: str | None = None,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    retry: int = 4,
    json: bool = False,
) -> None:
    """Run experiments and judge them: does every pod get the bandwidth it was promised?"""
    from bench.cli.verbs import asked, experiments

    def run() -> int:
        overrides = [*set_, *asked.overrides(enforcement, repetitions)]
        factor, auto = asked.scale(scale)
        return experiments.bench(
            scenario, kubeconfig, resume, json, retry, auto,
            overrides=overrides, scale=factor, duration=duration,
            provider=provider, orchestrator=orchestrator, reports=reports,
        )  # fmt: skip

    def plan() -> int:
        overrides = [*set_, *asked.overrides(enforcement, repetitions)]
        factor, auto = asked.scale(scale)
        return experiments.plan(
            scenario, kubeconfig, resume, retry, auto,
            overrides=overrides, scale=factor, duration=duration,
            provider=provider, orchestrator=orchestrator, reports=reports,
        )  # fmt: skip

    exits.ends_with_status(run, plan)()


@task(
    positional=["name"],
    help={
        "name": "the file to write, as NAME.yaml, and the scenario's name",
        "from_": "a scenario to begin with, its comments included (default: one that explains itself)",
    },
)
def new(_context: Context, name: str, from_: str = "") -> None:
    """Write a scenario of your own, with comments, to be changed and run."""
    from bench.cli.verbs import scenarios

    exits.ends_with_status(scenarios.write_new)(name, from_)


@task(
    iterable=["profile", "check", "set_", "kubeconfig"],
    help={
        **STUDY,
        "network": "which network is asked (default: node)",
        "profile": "ceiling, floor, latency, robust; may be repeated (default: all)",
        "check": "one check by its name; may be repeated (default: the profiles' own; attacks, of which "
        "some-attacks tries some, only by its name)",
        "link": "rate of each node's link (default: what each check has; of clusters that exist: yours)",
        "kubeconfig": "ask clusters that exist: [CLUSTER=]FILE[@CONTEXT]; one for each cluster",
        "attack_own_pods": "on clusters that exist too, let one of the kit's pods forge frames as fast as it "
        "can; the kit's own pods and the nodes' tables are its targets",
    },
)
def promise(
    _context: Context,
    profile: list[str],
    check: list[str],
    set_: list[str],
    kubeconfig: list[str],
    network: str = "",
    link: str = "",
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    attack_own_pods: bool = False,
    json: bool = False,
) -> None:
    """Ask a network which promises it keeps: limits, floors, latency; 1 if one is broken that it claims."""
    from bench.cli.verbs import studies

    words = (("network", network), ("link", link), ("attack-own-pods", "yes" if attack_own_pods else ""))
    single = {name: [word] for name, word in words if word}
    exits.ends_with_status(studies.run, studies.plan)(
        "promise", {**single, "profile": profile, "check": check}, resume, json,
        kubeconfigs=kubeconfig,
        overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    iterable=["scenario", "set_", "replay"],
    help={
        **RUN,
        **DURATION,
        "scenario": f"{SCENARIO}; may be repeated (default: the paper's two)",
        "repetitions": "how often each scenario's traffic runs",
        "history": "the directory of the machines' histories",
        "to": "the directory of nightly.md, junit.xml, bigger.json, smaller.json and trend.html",
        "acknowledged": "the file of changes that are as they should be (default: nightly.yaml)",
        "replay": "do all but run, from a recording: its directory, run id, or packed file; may be repeated",
        "machine": "print which machine this is, as its history is called, and nothing else",
    },
)
def nightly(
    _context: Context,
    scenario: list[str],
    set_: list[str],
    replay: list[str],
    scale: float = 0.1,
    duration: str = "",
    repetitions: int = 5,
    history: str = "reports/history",
    to: str = "reports/nightly",
    acknowledged: str = "",
    machine: bool = False,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
) -> None:
    """Do the guarantees still hold, and as well as in the nights before?"""
    from bench.cli.verbs import asked
    from bench.cli.verbs import nightly as verb

    options = asked.Options(
        overrides=set_, scale=scale, duration=duration,
        provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip

    def run() -> int:
        if machine:
            return verb.identify()
        places = verb.places(history, to, acknowledged)
        if replay:
            return verb.replay(replay, repetitions, places, Path(reports))
        return verb.run(scenario, repetitions, places, **options)

    def plan() -> int:
        return verb.plan(scenario, repetitions, **options)

    exits.ends_with_status(run, None if machine or replay else plan)()
