"""What the nodes of a cluster that exists have of its ranges of pod addresses, as its API tells it.

Nothing is written there. Whoever gave the blocks, they are shown as they are: where there is no
ClusterCIDRConfig, they are of none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any
from urllib.parse import urlencode

from edge.addresses import kinds
from edge.addresses.allocation import Allocator, NoBlockError, Node
from edge.addresses.inventory import Inventory
from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.namespaces import ANSWER_SECONDS

PAGE = 500  # objects of an answer, as kubectl has it: so neither side holds a large cluster's pods at once
CONFIGS = "clustercidrconfigs"
EVENT = "CIDRNotAvailable"  # the reason by which an event says that a node waits
# What kubectl says where an API has no such kind, and where one may not look.
ABSENT, FORBIDDEN = "(NotFound)", "(Forbidden)"


@dataclass(frozen=True)
class Answers:
    """What a cluster's API answered."""

    nodes: Sequence[Node]
    configs: Sequence[Mapping[str, Any]] = ()  # of both groups
    groups: Sequence[str] = ()  # those of the two that the API has
    pods: Mapping[str, int] = field(default_factory=dict)  # with an address of their node's block, by node
    events: Mapping[str, str] = field(default_factory=dict)  # what was last said of a node that waits


def ask(client: Outside) -> Answers:
    """Return what a cluster's API says. Raises LookupError, with the kubeconfig, if it does not."""
    nodes = [_node(one) for one in _listed(client, "/api/v1/nodes")]
    found = {
        group: _raw(client, f"/apis/{group}/{CONFIGS}", unless=(ABSENT,))
        for group in (kinds.OURS, kinds.VENDOR)
    }
    # A pod that has ended has given its address back.
    running = _listed(client, "/api/v1/pods", fieldSelector="status.phase!=Succeeded,status.phase!=Failed")
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
    """Return what a cluster's nodes have, and why others wait."""
    allocator, notes = Allocator(), []
    owners: dict[str, str] = {}
    for document in sorted(answers.configs, key=_age):
        try:
            config = kinds.parse(document)
        except kinds.BadConfigError as error:
            notes.append(f"{kinds.called(document)} gives nothing: {error}")
            continue
        allocator.add(config)
        if why := _withdrawn(document):
            allocator.withdraw(config.name, why)
        status = document.get("status") or {}
        owners |= {one["name"]: config.name for one in status.get("nodes") or ()}
    if not answers.groups:
        notes.append(
            f"this cluster knows no {kinds.KIND}, neither of {kinds.OURS} nor of {kinds.VENDOR}: blocks are "
            "shown as of no config"
        )
    nodes = sorted(answers.nodes, key=lambda node: node.name)
    for node in nodes:
        if node.blocks:
            allocator.occupy(node, owners.get(node.name, ""))
    waiting = {node.name: _why(allocator, node, answers.events) for node in nodes if not node.blocks}
    return Inventory(cluster, allocator, nodes, answers.pods, waiting, notes)


def _why(allocator: Allocator, node: Node, events: Mapping[str, str]) -> str:
    """Say why a node has no block: there is none for it, or nobody has given it one."""
    offered = allocator.offer(node)
    if offered is not None:
        said = f" Its last event: {events[node.name]}" if node.name in events else ""
        return f"{offered.config} has one for it that nobody has given: does the controller run?{said}"
    try:
        allocator.allocate(node)
    except NoBlockError as error:
        return str(error)
    raise AssertionError(f"{node.name}: nothing is offered, and something given")


def _withdrawn(document: Mapping[str, Any]) -> str:
    """Return why a config gives nothing more, as the API has it; empty if it does."""
    if document["metadata"].get("deletionTimestamp"):
        return "is being deleted"
    for one in (document.get("status") or {}).get("conditions") or ():
        if one["type"] == "Ready" and one["status"] == "False":
            return f"is not ready: {one.get('message') or one.get('reason') or 'nobody says why'}"
    return ""


def _age(document: Mapping[str, Any]) -> tuple[str, str]:
    """The order in which configs count, where they count alike."""
    return str(document["metadata"].get("creationTimestamp")), kinds.called(document)


def _node(found: Mapping[str, Any]) -> Node:
    metadata, spec = found["metadata"], found["spec"]
    blocks = spec.get("podCIDRs") or [one for one in [spec.get("podCIDR")] if one]
    labels = metadata.get("labels") or {}
    # Older servers keep a block with its host bits set.
    return Node(metadata["name"], labels, tuple(ip_network(block, strict=False) for block in blocks))


def _events(client: Outside) -> dict[str, str]:
    """Return what was last said of each node that waits; nothing, if one may not ask."""
    selector = f"involvedObject.kind=Node,reason={EVENT}"
    shown = _raw(client, "/api/v1/events", unless=(FORBIDDEN,), fieldSelector=selector) or {"items": []}
    found = sorted(shown["items"], key=lambda one: one.get("lastTimestamp") or "")
    return {one["involvedObject"]["name"]: one["message"] for one in found}


def _listed(client: Outside, path: str, **query: str) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list, a page at a time. Raises LookupError."""
    more: dict[str, str] = {}
    while True:
        shown = _raw(client, path, limit=PAGE, **query, **more)
        assert shown is not None
        yield from shown["items"]
        token = shown["metadata"].get("continue")
        if not token:
            return
        more = {"continue": token}


def _raw(client: Outside, path: str, unless: Sequence[str] = (), **query: str | int) -> dict[str, Any] | None:
    """Return what is at a path; None if kubectl says one of ``unless``. Raises LookupError."""
    wait = f"--request-timeout={ANSWER_SECONDS}s"
    done = client.run("get", "--raw", f"{path}?{urlencode(query)}", wait, check=False)
    if done.status == 0:
        found: dict[str, Any] = json.loads(done.stdout)
        return found
    if any(words in done.stderr for words in unless):
        return None
    said = done.stderr.strip().rpartition("\n")[2] or f"kubectl ended with {done.status}"
    raise LookupError(f"--kubeconfig {client.access}: {path}: {said}")
