"""The command line: one thin task for each verb. Run ``./invokew --list``."""

from __future__ import annotations

import sys
from pathlib import Path

from invoke.context import Context
from invoke.tasks import task

from bench import command_line, commands

SCENARIO = {
    "scenario": "a scenario's name or file; may be repeated (default: the paper's two)",
    "set_": "override one field, as in flows[0].duration=5; may be repeated",
    "scale": "multiply every rate, as in 0.1",
}
REPORTS = {"reports": "directory of the recordings"}
NAME = {"name": "which testbed, if several are up side by side"}


@task(
    iterable=["scenario", "set_"],
    help={
        **SCENARIO,
        **REPORTS,
        "enforcement": "how guarantees are kept: none, pod, node, bandwidth",
        "repetitions": "how often each scenario's traffic runs",
        "provider": "where nodes come from: netns",
        "orchestrator": "what runs the pods: cni",
    },
)
def bench(
    _context: Context,
    scenario: list[str],
    set_: list[str],
    scale: float = 1.0,
    enforcement: str = "",
    repetitions: int = 0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
) -> None:
    """Run experiments and judge them: does every pod get the bandwidth it was promised?"""
    overrides = list(set_)
    if enforcement:
        overrides.append(f"enforcement={enforcement}")
    if repetitions:
        overrides.append(f"measurement.repetitions={repetitions}")
    run = command_line.ends_with_status(commands.run_bench)
    run(scenario, overrides, scale, provider, orchestrator, Path(reports))


@task(
    iterable=["scenario", "enforcement", "set_"],
    help={
        **SCENARIO,
        **REPORTS,
        "scenario": "a scenario's name or file; may be repeated (default: contmec and congested)",
        "enforcement": "none, bandwidth, pod, node; may be repeated (default: all)",
        "provider": "where nodes come from: netns",
        "orchestrator": "what runs the pods: cni",
    },
)
def matrix(
    _context: Context,
    scenario: list[str],
    enforcement: list[str],
    set_: list[str],
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
) -> None:
    """Compare enforcements: the same scenarios with each of them, in one table, figure and page."""
    run = command_line.ends_with_status(commands.run_matrix)
    run(scenario, enforcement, set_, scale, provider, orchestrator, Path(reports))


@task(
    iterable=["place", "set_"],
    help={
        **REPORTS,
        "place": "physical, vtep, bridge, bridge-veth, eth0, node; may be repeated (default: all)",
        "set_": SCENARIO["set_"],
        "scale": SCENARIO["scale"],
        "provider": "where nodes come from: netns",
        "orchestrator": "what runs the pods: cni",
    },
)
def places(
    _context: Context,
    place: list[str],
    set_: list[str],
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    reports: str = "reports",
) -> None:
    """Measure at which interface bandwidth can be guaranteed: what the paper's section 3.2 argues."""
    run = command_line.ends_with_status(commands.run_places)
    run(place, set_, scale, provider, orchestrator, Path(reports))


@task(positional=["run"], help={**REPORTS, "run": "a recording's directory or run id"})
def figures(_context: Context, run: str, reports: str = "reports") -> None:
    """Make samples, summary, figures and report again from a recording alone."""
    command_line.ends_with_status(commands.draw_figures)(run, Path(reports))


@task(iterable=["set_"], help={**SCENARIO, **NAME})
def up(
    _context: Context, set_: list[str], scenario: str = "contmec", name: str = "testbed", scale: float = 1.0
) -> None:
    """Bring up a testbed that lasts, to look around in."""
    command_line.ends_with_status(commands.bring_up)(name, scenario, set_, scale)


@task(help=NAME)
def status(_context: Context, name: str = "") -> None:
    """Show the testbeds that are up."""
    command_line.ends_with_status(commands.show_status)(name or None)


@task(name="exec", positional=["place"], help={**NAME, "place": "a pod, container or node"})
def execute(_context: Context, place: str, name: str = "testbed") -> None:
    """Run a command in a pod, container or node: exec A-1 -- ip address."""
    command_line.ends_with_status(commands.execute)(name, place, command_line.after_dashes())


@task(
    positional=["place"],
    help={**NAME, "place": "a pod, container or node", "interface": "one of its network interfaces"},
)
def capture(_context: Context, place: str, name: str = "testbed", interface: str = "eth0") -> None:
    """Show the packets of a pod, container or node: capture A-1 -- tcp port 5201."""
    command_line.ends_with_status(commands.capture)(name, place, interface, command_line.after_dashes())


@task(help=NAME)
def down(_context: Context, name: str = "testbed") -> None:
    """Take a testbed down."""
    command_line.ends_with_status(commands.take_down)(name)


@task
def doctor(_context: Context) -> None:
    """Say what this machine lacks, and what to do about it."""
    command_line.ends_with_status(commands.examine)()


@task
def schema(_context: Context) -> None:
    """Write the JSON Schema of scenarios, for editors."""
    command_line.ends_with_status(commands.write_schema)()


@task
def lint(context: Context) -> None:
    """Check style, types, and which part imports which."""
    for tool in (
        "ruff check",
        "ruff format --check",
        "mypy tasks.py bench testbed plugin/build.py benchmarks tests",
        "mypy plugin/concorde",
        "lint-imports --no-logo",
    ):
        # The plugin is no package of ours, so the import rules must be told where it is.
        context.run(f".venv/bin/{tool}", env={"PYTHONPATH": "plugin"})


@task(pre=[lint])
def test(context: Context) -> None:
    """Check everything the project promises; needs no network and, with user namespaces, no root."""
    context.run(".venv/bin/pytest -n auto --dist worksteal")


if __name__ == "__main__":
    command_line.main(sys.modules[__name__])
