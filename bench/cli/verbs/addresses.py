"""The verb addresses: what nodes have of a cluster's ranges, of a scenario or of a cluster that exists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench.console.documents import Document
from bench.console.messages import say
from bench.console.statuses import HELD
from bench.recording import atomic
from bench.recording.requests import scenario_file
from edge.addresses.inventory import Inventory
from testbed.clusters import addresses, kubeconfigs
from testbed.scenario import Scenario, blocks, load


def show(
    scenario: str, kubeconfig: str, set_: Sequence[str], all_: bool, draw: str, document: Document
) -> int:
    """Show which node has which block, and what is free. Raises LookupError for what cannot be read."""
    from bench.presentation import addresses as presentation

    console = Console()
    document["clusters"] = []
    inventories = _inventories(scenario, kubeconfig, set_)
    for number, inventory in enumerate(inventories):
        if number:
            console.print()
        presentation.show(console, inventory, all_)
        document["clusters"].append(presentation.document(inventory))
    if draw:
        atomic.write(Path(draw), presentation.svg(inventories).encode())
        say(f"drawn: {draw}")
    return HELD


def say_room(scenario: Scenario) -> None:
    """Say which nodes get no block of pod addresses, and how many more get one, where blocks differ."""
    several = [name for name, cluster in scenario.clusters.items() if cluster.pod_cidrs is not None]
    if several:
        from bench.presentation import addresses as presentation

        for name in several:
            inventory = blocks.inventory(scenario, name)
            for line in (*presentation.waiting(inventory), *presentation.coming(inventory)):
                say(f"cluster {name}: {line}")


def _inventories(scenario: str, kubeconfig: str, set_: Sequence[str]) -> list[Inventory]:
    if bool(scenario) == bool(kubeconfig):
        raise LookupError(
            "addresses: name a scenario, or --kubeconfig FILE for a cluster that exists; not both"
        )
    if scenario:
        wanted = load(scenario_file(scenario), set_)
        return [blocks.inventory(wanted, name) for name in wanted.clusters]
    if set_:
        raise LookupError("--set: is for a scenario; a cluster that exists is shown as it is")
    return [_of_cluster(kubeconfig)]


def _of_cluster(text: str) -> Inventory:
    client = kubeconfigs.outside(text)
    return addresses.inventory(client.cluster, addresses.ask(client))
