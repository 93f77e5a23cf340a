"""What the nodes of a cluster that exists have of its ranges of pod addresses, as its API tells it.

Nothing is written there. Whoever gave the blocks, they are shown as they are: where there is no
ClusterCIDRConfig, they are of none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edge.addresses import checks, kinds
from edge.addresses.allocation import Allocator, Node
from edge.addresses.arrivals import as_node
from edge.addresses.books import NO_RULES, ONE_FAMILY, WAITS, Held, agreed, judged
from edge.addresses.inventory import Inventory
from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.questions import ABSENT, FORBIDDEN, listed, raw


@dataclass(frozen=True)
class Answers:
    """What a cluster's API answered."""

    nodes: Sequence[Node]
    configs: Sequence[dict[str, Any]] = ()  # of both groups
    groups: Sequence[str] = ()  # those of the two that the API has
    pods: Mapping[str, int] = field(default_factory=dict)  # with an address of their node's block, by node
    events: Mapping[str, str] = field(default_factory=dict)  # what was last said of a node that waits


def ask(client: Outside) -> Answers:
    """Return what a cluster's API says. Raises LookupError, with the kubeconfig, if it does not."""
    nodes = [as_node(one) for one in listed(client, "/api/v1/nodes")]
    found = {
        group: raw(client, f"/apis/{group}/{kinds.PLURAL}", unless=(ABSENT,))
        for group in (kinds.OURS, kinds.VENDOR)
    }
    # A pod that has ended has given its address back.
    running = listed(client, "/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
    pods = Counter(
        pod["spec"]["nodeName"]
        for pod in running
        if pod["spec"].get("nodeName") and not pod["spec"].get("hostNetwork")
    )
    waiting = any(not node.blocks for node in nodes)
    return Answers(
        nodes,
        [config for shown in found.values() if shown for config in shown["items"]],
        [group for group, shown in found.items() if shown],
        pods,
        _events(client) if waiting else {},
    )


def inventory(cluster: str, answers: Answers) -> Inventory:
    """Return what a cluster's nodes have, and why others wait: by the rules of the controller."""
    dual_stack = not any(_condition(document).get("reason") == ONE_FAMILY for document in answers.configs)
    allocator, notes = Allocator(dual_stack=dual_stack), []
    owners: dict[str, str] = {}
    found = agreed((judged(kinds.KIND, document) for document in answers.configs), NO_RULES, dual_stack)
    for held, document in zip(map(_by_controller, found), answers.configs, strict=True):
        if held.config is None:
            notes.append(f"{held.name} gives nothing: {held.message}")
            continue
        allocator.add(held.config)
        allocator.withdraw(held.name, held.message)
        owners |= {one["name"]: held.name for one in _status(document).get("nodes") or ()}
    if not answers.groups:
        notes.append(
            f"this cluster knows no {kinds.KIND}, neither of {kinds.OURS} nor of {kinds.VENDOR}: blocks are "
            "shown as of no config"
        )
    nodes = sorted(answers.nodes, key=lambda node: node.name)
    for node in nodes:
        if node.blocks:
            allocator.occupy(node, owners.get(node.name, ""))
    notes += [f"{name} {what}" for name, what in checks.crowded(allocator, nodes)]
    waiting = {node.name: _why(allocator, node, answers.events) for node in nodes if not node.blocks}
    notes += _doubts(allocator, answers.configs)
    return Inventory(cluster, allocator, nodes, answers.pods, waiting, notes)


def _why(allocator: Allocator, node: Node, events: Mapping[str, str]) -> str:
    """Say why a node has no block: there is none for it, or nobody has given it one."""
    offered = allocator.offer(node)
    if offered is None:
        return allocator.why_not(node)
    said = f" Its last event: {events[node.name]}" if node.name in events else ""
    return f"{offered.config} has one for it that nobody has given: does the controller run?{said}"


def _doubts(allocator: Allocator, configs: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield which configs give nothing, and of which the controller knows less free than is to be seen.

    It alone is told what is reserved, as the range of services is.
    """
    for document in configs:
        name, status = kinds.called(document), _status(document)
        if name not in allocator.configs:
            continue
        if why := allocator.refusal(allocator.configs[name]):
            yield f"{name} {why}"
        elif status.get("given") == len(allocator.nodes_of(name)) and status["free"] < allocator.free(name):
            yield f"{name}: its controller has {status['free']:,} free; what it reserves is free here"


def _by_controller(held: Held) -> Held:
    """Return a config as its controller judges it, which alone is told of the cluster's network."""
    if not held.reason and _condition(held.document).get("reason") in (checks.RESERVED, checks.UNLIKE):
        return held._replace(**{key: _condition(held.document)[key] for key in ("reason", "message")})
    return held


def _condition(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what its controller says of a config: among others whether the server keeps one block a node."""
    return next(iter(_status(document).get("conditions") or ()), {})


def _status(document: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any] = document.get("status") or {}
    return found


def _events(client: Outside) -> dict[str, str]:
    """Return what was last said of each node that waits; nothing, if one may not ask."""
    selector = f"involvedObject.kind=Node,reason={WAITS}"
    shown = raw(client, "/api/v1/events", unless=(FORBIDDEN,), fieldSelector=selector) or {"items": []}
    found = sorted(shown["items"], key=lambda one: one.get("lastTimestamp") or "")
    return {one["involvedObject"]["name"]: one["message"] for one in found}
