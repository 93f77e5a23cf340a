"""Verbs for testbeds that stay up: up, status, kubeconfig, exec, capture, ssh, down.

A testbed is found by its name. With ``--provider`` the verbs mean what that leads to: also machines that are
nobody's to bring up.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench.cli.verbs.addresses import say_room
from bench.cli.verbs.segments import say_segments
from bench.console import asked
from bench.console.documents import Document
from bench.console.messages import complain, say
from bench.console.progress import Display
from bench.console.statuses import BAD_INPUT, HELD, STATUS_OF_VERDICT
from bench.measurement import between
from bench.recording import atomic
from bench.recording.directory import Recording
from bench.recording.requests import scenario_file
from testbed import lasting
from testbed.assembly import admit, demand_links, on_clusters
from testbed.providers.persistence import DEFAULT, Persisted, State
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from testbed.scenario.units import format_rate


def bring_up(
    name: str | None,
    scenario: str,
    set_: Sequence[str],
    scale: float,
    provider: str,
    orchestrator: str,
    kubeconfig: Sequence[str] = (),
    draw: str = "",
    dry: bool = False,
) -> int:
    """Bring up a lasting testbed of one scenario, or its virtual machines; with ``dry`` only check it.

    With kubeconfigs the clusters exist already, and what runs the pods is Kubernetes.
    """
    if kubeconfig:
        provider, orchestrator = on_clusters(kubeconfig)
    wanted = load(scenario_file(scenario), set_, scale)
    if dry:
        admit(Addressing(wanted))
        if wanted.segments:
            demand_links(provider, wanted)
        say_room(wanted)
        say_segments(wanted)
        return HELD
    called = lasting.called(wanted, provider, name)
    kept = lasting.up(wanted, provider, orchestrator, called, Display(Console(), called).stage)
    _show(kept.name, kept.state())
    _draw(kept, draw)
    return HELD


def show_status(name: str | None, document: Document, draw: str = "") -> int:
    """Show one lasting testbed, or all of them; with ``draw`` draw one on the terminal and into a file."""
    if draw:
        _draw(_chosen(name or ""), draw)
    document["testbeds"] = [_shown(name, lasting.find(name).state())] if name else _all_shown()
    return HELD


def _all_shown() -> list[Document]:
    """Show every testbed, and return what programs are told of each."""
    found = lasting.testbeds()
    if not found:
        say("no testbed is up")
    shown = []
    for kept in found:
        try:
            shown.append(_shown(kept.name, kept.state()))
        except RuntimeError as error:  # the others are there all the same
            complain(str(error))
            shown.append({"name": kept.name, "error": str(error)})
    return shown


def _shown(name: str, state: State) -> Document:
    """Show what a testbed holds, and return what programs are told of it: all but the ways in."""
    _show(name, state)
    ways = {"places": {"__all__": {"entry", "network"}}, "clusters": {"__all__": {"kubectl", "port"}}}
    return {
        "name": name,
        "error": None,
        **state.model_dump(mode="json", exclude={**ways, "definition": True}),
    }


def _draw(kept: Persisted, file: str) -> None:
    """Draw a testbed's topology on the terminal, and as SVG into a file if one is named."""
    from bench.presentation import topology

    state = kept.state()
    if not (state.definition or file):  # machines, which are no testbed
        return
    scenario = lasting.scenario_of(kept)
    addresses = {name: where.address for name, where in state.places.items()}
    Console().print(topology.tree(scenario, addresses))
    if file:
        atomic.write(Path(file), topology.svg(scenario, addresses).encode())
        say(f"drawn: {file}")


def _show(name: str, state: State) -> None:
    """Show what a testbed holds."""
    kept = f", enforcement {state.enforcement}" if state.enforcement else ""
    table = Table(title=f"{name}: scenario {state.scenario}{kept}")
    for heading in ("name", "kind", "node", "address", "guarantee"):
        table.add_column(heading, justify="right" if heading == "guarantee" else "left")
    for place, where in state.places.items():
        promised = format_rate(where.guarantee_bps) if where.guarantee_bps else "-"
        table.add_row(place, where.kind, where.node, where.address, promised)
    Console().print(table)
    for note in state.notes:
        say(note)


def show_kubeconfig(name: str, cluster: str) -> int:
    """Print a kubeconfig with which this machine's programs reach a cluster of real Kubernetes."""
    say(_chosen(name).kubeconfig(cluster), end="")
    return HELD


def execute(name: str, place: str, provider: str, scenario: str, command: Sequence[str]) -> int:
    """Become a command in a pod, container or node."""
    if not command:
        complain(f"no command: write it after {place}, as in exec {place} ip address")
        return BAD_INPUT
    lasting.execute(_chosen(name, provider, scenario), place, command)
    return HELD


def capture(
    name: str, place: str, interface: str, provider: str, scenario: str, command: Sequence[str]
) -> int:
    """Become tcpdump on an interface of a pod, container or node."""
    lasting.capture(_chosen(name, provider, scenario), place, interface, command)
    return HELD


def log_in(name: str, node: str, provider: str, scenario: str, command: Sequence[str]) -> int:
    """Become a shell, or a command, on a node."""
    lasting.log_in(_chosen(name, provider, scenario), node, command)
    return HELD


def measure_between(
    name: str, source: str, destination: str, duration: str, provider: str, document: Document
) -> int:
    """Measure between two pods of a testbed that is up; judge what the sender was promised, if it was."""

    seconds = asked.seconds("--duration", duration)
    kept = _chosen(name, provider)
    one = between.scenario(kept, source, destination, seconds)
    with TemporaryDirectory(prefix="concorde-") as scratch:
        Display(Console(), kept.name).stage(f"{source} -> {destination} for {seconds} s")
        record = between.measure(kept, one, Path(scratch) / "between")
        from bench import pipeline  # half a second of pandas, which would delay the traffic
        from bench.presentation import tables

        summary = pipeline.judge(Recording(Path(scratch) / "between"), one, record)
    (flow,) = summary.flows
    verdict = None if flow.expected_goodput_bps is None else summary.verdict
    Console().print(tables.flows(summary))
    for line in [*summary.reasons, *summary.notes] if verdict else summary.notes:
        say(line)
    say(f"{verdict}: {source} -> {destination}" if verdict else f"{source} has no promise to judge")
    document |= {"flow": flow.model_dump(mode="json", by_alias=True), "reasons": summary.reasons}
    document["verdict"] = verdict
    return STATUS_OF_VERDICT[verdict] if verdict else HELD


def take_down(name: str, provider: str, scenario: str, destroy: bool) -> int:
    """Take a lasting testbed down, or virtual machines, or what runs have left on other machines."""
    # What is taken down is named: that nothing else is up is no reason.
    kept = _chosen(name if provider else name or DEFAULT, provider, scenario)
    say(kept.destroy() if destroy else kept.down())
    return HELD


def _chosen(name: str, provider: str = "", file: str = "") -> Persisted:
    """Return which testbed is meant. Raises LookupError."""
    if provider:
        return lasting.at(provider, load(scenario_file(file)) if file else None, name or None)
    return lasting.find(name) if name else lasting.only()
