"""Testbeds that stay up, to look around in."""

from __future__ import annotations

from invoke.context import Context

from bench.cli import exits
from bench.cli.commands.options import CHANGES, DRAW, JSON, KEPT, NAME, ORCHESTRATOR, SCENARIO, task
from bench.cli.line import Line


@task(
    iterable=["set_", "kubeconfig"],
    help={
        **CHANGES,
        **ORCHESTRATOR,
        "name": "what it is called; several may be up side by side",
        "scenario": SCENARIO,
        "provider": "netns, or vagrant: virtual machines, made or started",
        "kubeconfig": "in a cluster that exists: [CLUSTER=]FILE[@CONTEXT]; one for each cluster",
        **DRAW,
    },
)
def up(
    _context: Context,
    set_: list[str],
    kubeconfig: list[str],
    scenario: str = "contmec",
    name: str | None = None,
    scale: float = 1.0,
    provider: str = "netns",
    orchestrator: str = "cni",
    draw: str = "",
) -> None:
    """Bring up a testbed that lasts, to look around in; or virtual machines, to measure on."""
    from bench.cli.verbs import testbeds

    def run() -> int:
        return testbeds.bring_up(name, scenario, set_, scale, provider, orchestrator, kubeconfig, draw)

    exits.ends_with_status(run, lambda: testbeds.plan(scenario, set_, scale))()


@task(help={**JSON, **DRAW, "name": "which testbed (default: all)"})
def status(_context: Context, name: str = "", draw: str = "", json: bool = False) -> None:
    """Show the testbeds that are up."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.show_status)(name or None, json, draw)


@task(name="exec", positional=["place"], help={**KEPT, "place": "a pod, container or node"})
def execute(_context: Context, place: str, name: str = "", provider: str = "", scenario: str = "") -> None:
    """Run a command in a pod, container or node: exec A-1 ip address."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.execute)(name, place, provider, scenario, Line.command)


@task(
    positional=["place"],
    help={**KEPT, "place": "a pod, container or node", "interface": "one of its network interfaces"},
)
def capture(
    _context: Context,
    place: str,
    name: str = "",
    interface: str = "eth0",
    provider: str = "",
    scenario: str = "",
) -> None:
    """Show the packets of a pod, container or node: capture A-1 tcp port 5201."""
    from bench.cli.verbs import testbeds

    run = exits.ends_with_status(testbeds.capture)
    run(name, place, interface, provider, scenario, Line.command)


@task(
    positional=["source", "destination"],
    help={
        **NAME,
        **JSON,
        "source": "the pod that sends",
        "destination": "the pod that receives",
        "duration": "seconds of traffic",
        "provider": "what else is meant than a testbed by its name, as existing:FILE",
    },
)
def iperf(
    _context: Context,
    source: str,
    destination: str,
    name: str = "",
    duration: str = "5",
    provider: str = "",
    json: bool = False,
) -> None:
    """Measure between two pods of a testbed that is up, and judge the sender's promise: iperf A-1 A-4."""
    from bench.cli.verbs import asked, testbeds

    def run() -> int:
        seconds = asked.seconds("--duration", duration)
        return testbeds.measure_between(name, source, destination, seconds, provider, json)

    exits.ends_with_status(run)()


@task(
    positional=["node"],
    help={**KEPT, "node": "a node of the testbed"},
)
def ssh(_context: Context, node: str, name: str = "", provider: str = "", scenario: str = "") -> None:
    """Open a shell on a node, or run a line in one: ssh worker-01 'tc -s class show dev eth0 | head'."""
    from bench.cli.verbs import testbeds

    run = exits.ends_with_status(testbeds.log_in)
    run(name, node, provider, scenario, Line.command)


@task(positional=["cluster"], help={**NAME, "cluster": "a cluster of the scenario"})
def kubeconfig(_context: Context, cluster: str, name: str = "") -> None:
    """Print a kubeconfig for a cluster of a testbed that is up with --orchestrator kubernetes."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.show_kubeconfig)(name, cluster)


@task(
    help={
        **NAME,
        "provider": "ssh:INVENTORY takes away what runs have left there; vagrant switches machines off",
        "scenario": "with ssh the scenario that has the machines' addresses, with vagrant the machines' own",
        "destroy": "with vagrant: remove the machines, with all that is on them",
    }
)
def down(
    _context: Context,
    name: str = "",
    provider: str = "",
    scenario: str = "",
    destroy: bool = False,
) -> None:
    """Take a testbed down."""
    from bench.cli.verbs import testbeds

    exits.ends_with_status(testbeds.take_down)(name, provider, scenario, destroy)
