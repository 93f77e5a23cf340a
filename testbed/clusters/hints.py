"""Why a service of a cluster that exists has the hints that it has, as the cluster's API tells it.

Nothing is written there. Hints are read where they are: in slices' fields, if Kubernetes writes them, or in
the publisher's annotation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from edge.services.annotations import Version, Wish, wish
from edge.services.catalogue import SERVICE_OF
from edge.services.discovery import GROUP, VERSION, found
from edge.services.endpoints import Node, Slice, node_of, slice_of
from edge.services.explanation import Explanation, Report, explain
from edge.services.hints import Delays
from edge.services.publication import known
from edge.services.selection import policies_of
from edge.services.support import supported
from testbed.clusters.kubeconfigs import Outside
from testbed.clusters.questions import ABSENT, FORBIDDEN, listed, raw

REASONS = ("TopologyAwareHints", "HintsIgnored")  # how those of events begin
PENDING = "hints are not what they should be: does `edge hints` run?"


@dataclass(frozen=True)
class Answers:
    """What a cluster's API answered about a service."""

    version: Version
    service: Mapping[str, Any]
    slices: Sequence[dict[str, Any]]
    nodes: Sequence[Node]
    events: Sequence[Mapping[str, Any]] = ()  # about it, the oldest first


def ask(client: Outside, namespace: str, name: str) -> Answers:
    """Return what a cluster's API says.

    Raises LookupError, with the kubeconfig, if it does not, or if there is no such service: then with those
    that there are.
    """
    version, group = raw(client, VERSION), raw(client, GROUP)
    try:
        kubernetes = found(version, group)
    except LookupError as error:
        raise LookupError(f"--kubeconfig {client.access}: {error.args[0]}") from None
    within = f"/namespaces/{quote(namespace, safe='')}"
    service = raw(client, f"/api/v1{within}/services/{quote(name, safe='')}", unless=(ABSENT,))
    if service is None:
        raise LookupError(_unknown(client, namespace, name))
    path, _, plural = kubernetes.slices.rpartition("/")
    slices = listed(client, f"{path}{within}/{plural}", labelSelector=f"{SERVICE_OF}={name}")
    about = f"involvedObject.kind=Service,involvedObject.name={name}"
    events = raw(client, f"/api/v1{within}/events", unless=(FORBIDDEN,), fieldSelector=about)
    return Answers(
        kubernetes.version,
        service,
        sorted(slices, key=lambda one: str(one["metadata"]["name"])),
        [node_of(one) for one in listed(client, "/api/v1/nodes")],
        sorted((events or {"items": []})["items"], key=_age),
    )


def report(answers: Answers, delays: Delays) -> Report:
    """Explain a service's hints; ``delays`` are those of which the publisher is told, too."""
    metadata, policies = answers.service["metadata"], policies_of(answers.service)
    asked = wish(answers.service, answers.version)
    slices: dict[str, list[Slice]] = {}
    for document in answers.slices:
        if one := known(document):
            read = slice_of(document) if asked.built_in else one.hinted
            slices.setdefault(one.kind, []).append(read)
    explained = {
        kind: explain(asked.mode, answers.nodes, those, delays, policies)
        for kind, those in sorted(slices.items())
    }
    notes = [*asked.said, *_notes(answers, explained, asked)]
    name = f"{metadata.get('namespace', 'default')}/{metadata['name']}"
    return Report(name, answers.version, asked, explained, notes)


def _notes(answers: Answers, explained: Mapping[str, Explanation], asked: Wish) -> Iterator[str]:
    others = [one["metadata"]["name"] for one in answers.slices if known(one) is None]
    if others:
        yield f"not made by the built-in controller, and so not counted or hinted: {', '.join(others)}"
    if not explained:
        yield "the built-in controller has made no EndpointSlice: has the service a selector?"
    if not asked.built_in and any(one.pending for one in explained.values()):
        yield PENDING
    yield from (f"edge services-proxy: {text}" for text in supported(answers.service, None).left)
    said = [one for one in answers.events if str(one.get("reason", "")).startswith(REASONS)]
    if said:
        yield f"its last event: {said[-1]['reason']}: {said[-1].get('message', '')}"


def _age(event: Mapping[str, Any]) -> tuple[str, int]:
    """Return what is larger of a later event: times are of whole seconds."""
    version = str(event["metadata"].get("resourceVersion", ""))
    return event.get("lastTimestamp") or "", int(version) if version.isdigit() else 0


def _unknown(client: Outside, namespace: str, name: str) -> str:
    """Say which services there are."""
    there = [
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in listed(client, "/api/v1/services")
    ]
    here = sorted(other for where, other in there if where == namespace)
    elsewhere = sorted(where for where, other in there if other == name)
    hint = f"; --namespace {elsewhere[0]} has one" if elsewhere else ""
    services = ", ".join(here) or "none"
    return (
        f"--kubeconfig {client.access}: no service {name!r} in namespace {namespace!r} "
        f"(services: {services}){hint}"
    )
