"""Studies: several experiments that answer one question together."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import DURATION, SCENARIO, STUDY, task


@task(
    iterable=["scenario", "enforcement", "set_"],
    help={
        **STUDY,
        **DURATION,
        "scenario": f"{SCENARIO}; may be repeated (default: contmec, congested and latency)",
        "enforcement": "none, bandwidth, pod, node; may be repeated (default: all)",
        "repetitions": "of each cell, in blocks: every cell once, in a random order",
        "seed": "of that order (default: 0)",
        "gate": "exit status 1 if a case that shall hold is violated, 3 if one of them is invalid, else 0",
    },
)
def matrix(
    _context: Context,
    scenario: list[str],
    enforcement: list[str],
    set_: list[str],
    repetitions: int = 1,
    seed: int = 0,
    scale: float = 1.0,
    duration: str = "",
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    gate: bool = False,
    json: bool = False,
) -> None:
    """Compare enforcements: the same scenarios with each of them, in one table, figure and page."""
    from bench.cli.verbs import studies

    choices = {"scenario": scenario, "enforcement": enforcement}
    for name, number, default in (("repetitions", repetitions, 1), ("seed", seed, 0)):
        choices[name] = [] if number == default else [str(number)]
    exits.ends_with_status(studies.run, studies.plan)(
        "matrix", choices, resume, json, gate,
        overrides=set_, scale=scale, duration=duration,
        provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    iterable=["place", "set_"],
    help={
        **STUDY,
        **DURATION,
        "place": "physical, vtep, bridge, bridge-veth, eth0, node; may be repeated (default: all)",
    },
)
def places(
    _context: Context,
    place: list[str],
    set_: list[str],
    scale: float = 1.0,
    duration: str = "",
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Measure at which interface bandwidth can be guaranteed: what the paper's section 3.2 argues."""
    from bench.cli.verbs import studies

    exits.ends_with_status(studies.run, studies.plan)(
        "places", {"place": place}, resume, json,
        overrides=set_, scale=scale, duration=duration,
        provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    iterable=["backend", "part", "nodes", "set_"],
    help={
        **STUDY,
        "backend": "one backend, or one of its settings; may be repeated (default: all that there are)",
        "part": "guarantee, round-trip, throughput, cost, first, nodes; may be repeated (default: all)",
        "nodes": "how many nodes a cluster has in the last part; may be repeated (default: 3, 10, 30, 60)",
        "repetitions": "how often each is measured but the nodes (default: 12 throughput, 5 cost and first)",
        "seed": "of the order in which backends take turns (default: 0)",
    },
)
def backends(
    _context: Context,
    backend: list[str],
    part: list[str],
    nodes: list[str],
    set_: list[str],
    repetitions: str = "",
    seed: str = "",
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Measure every backend that this machine can run: what it costs, and how soon it knows of a change."""
    from bench.cli.verbs import studies

    choices = {"backend": backend, "part": part, "nodes": nodes}
    single = {"repetitions": repetitions, "seed": seed}
    exits.ends_with_status(studies.run, studies.plan)(
        "backends", {**choices, **{name: [word] for name, word in single.items() if word}}, resume, json,
        overrides=set_, scale=scale, provider=provider, orchestrator=orchestrator, reports=reports,
    )  # fmt: skip


@task(
    positional=["name"],
    iterable=["choose", "set_"],
    help={
        **STUDY,
        **DURATION,
        "name": "which study: matrix, places, backends, promise, or one that CONCORDE_EXTENSIONS=FILE brings",
        "choose": "what the study alone may be asked for, as KEY=VALUE; may be repeated",
    },
)
def study(
    _context: Context,
    name: str,
    choose: list[str],
    set_: list[str],
    scale: float = 1.0,
    duration: str = "",
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
    resume: str = "",
    json: bool = False,
) -> None:
    """Run several experiments that answer one question together."""
    from bench.cli.verbs import studies

    def run(what: Callable[..., int]) -> int:
        return what(
            name, studies.chosen(choose), resume, json,
            overrides=set_, scale=scale, duration=duration,
            provider=provider, orchestrator=orchestrator, reports=reports,
        )  # fmt: skip

    exits.ends_with_status(partial(run, studies.run), partial(run, studies.plan))()
