"""Verbs for testbeds that stay up: up, status, kubeconfig, exec, capture, ssh, down.

If the nodes are machines, which stay up by themselves, the verbs mean those; see ``machines``.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from bench.cli.exits import BAD_INPUT, HELD
from bench.cli.terminal import complain, say
from bench.cli.verbs import machines
from bench.recording.requests import scenario_file
from testbed.scenario import load
from testbed.scenario.quantities import format_rate

NAMESPACES = "netns"


def bring_up(
    name: str, file: str, overrides: Sequence[str], scale: float, provider: str, orchestrator: str
) -> int:
    """Bring up a lasting testbed of one scenario, or its virtual machines."""
    if provider == machines.VAGRANT:
        return machines.bring_up(file, overrides, scale)
    from bench.cli.progress import Display
    from testbed import lasting

    if provider != NAMESPACES:
        raise LookupError(f"--provider {provider}: what stays up is made of namespaces or by vagrant")
    scenario = load(scenario_file(file), overrides, scale)
    lasting.up(scenario, name, orchestrator, Display(Console(), name).stage)
    return show_status(name)


def show_status(name: str | None) -> int:
    """Show one lasting testbed, or all of them."""
    from testbed import lasting

    console = Console()
    states = {name: lasting.state(name)} if name else lasting.states()
    if not states:
        say("no testbed is up")
    for each, state in states.items():
        table = Table(title=f"{each}: scenario {state.scenario}, enforcement {state.enforcement}")
        for heading in ("name", "kind", "node", "address", "guarantee"):
            table.add_column(heading, justify="right" if heading == "guarantee" else "left")
        for place, where in state.places.items():
            promised = format_rate(where.guarantee_bps) if where.guarantee_bps else "-"
            table.add_row(place, where.kind, where.node, where.address, promised)
        console.print(table)
    return HELD


def show_kubeconfig(name: str, cluster: str) -> int:
    """Print a kubeconfig with which this machine's programs reach a cluster of real Kubernetes."""
    from testbed import lasting

    say(lasting.kubeconfig(name, cluster), end="")
    return HELD


def execute(name: str, place: str, command: Sequence[str]) -> int:
    """Become a command in a pod, container or node of a lasting testbed."""
    from testbed import lasting

    if not command:
        complain("no command: write it after --, as in exec A-1 -- ip address")
        return BAD_INPUT
    lasting.execute(name, place, list(command))
    return HELD


def capture(name: str, place: str, interface: str, expression: Sequence[str]) -> int:
    """Become tcpdump on an interface of a pod, container or node."""
    from testbed import lasting

    lasting.capture(name, place, interface, list(expression))
    return HELD


def log_in(name: str, node: str, provider: str, file: str, command: Sequence[str]) -> int:
    """Become a shell, or a command, on a node: a lasting testbed's, or a machine."""
    if provider != NAMESPACES:
        return machines.log_in(provider, file, node, command)
    from testbed import lasting

    lasting.execute(name, node, list(command) or [lasting.SHELL])
    return HELD


def take_down(name: str, provider: str = NAMESPACES, file: str = "", destroy: bool = False) -> int:
    """Take a lasting testbed down, or virtual machines, or what runs have left on other machines."""
    if destroy and provider != machines.VAGRANT:
        raise LookupError("--destroy is for machines that the testbed has made: --provider vagrant")
    if provider != NAMESPACES:
        return machines.take_down(provider, file, destroy)
    from testbed import lasting

    lasting.down(name)
    say(f"testbed {name!r} is down")
    return HELD
