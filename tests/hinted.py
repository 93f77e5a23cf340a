"""Services, slices and nodes as an API says them, for tests of hints: zones are letters, one an endpoint."""

from __future__ import annotations

from typing import Any

from edge.services.annotations import AWARE_HINTS, OURS, ZONE_HINTS
from edge.services.catalogue import SERVICE_OF
from edge.services.endpoints import ZONE_LABEL
from edge.services.publication import BUILT_IN, MANAGED_BY

Document = dict[str, Any]


def service(name: str = "web", *, auto: str = "", ours: str = "", **spec: Any) -> Document:
    """Return a Service that asks for hints by upstream's annotation, or by ours."""
    annotations = {key: value for key, value in ((AWARE_HINTS, auto), (OURS, ours)) if value}
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"ports": ports, **spec}}


def endpoints(zones: str, first: int = 1, v1: bool = False) -> list[Document]:
    """Return endpoints of these zones, one a letter, addresses counted from 10.0.0.``first``.

    One of a capital letter is not ready.
    """
    found = []
    for number, zone in enumerate(zones, first):
        where = {"zone": zone.lower()} if v1 else {"topology": {ZONE_LABEL: zone.lower()}}
        found.append({"addresses": [f"10.0.0.{number}"], "conditions": {"ready": zone.islower()}, **where})
    return found


def endpoint_slice(
    name: str, zones: str, first: int = 1, *, of: str = "web", made_by: str = BUILT_IN, v1: bool = False
) -> Document:
    """Return a slice of a service."""
    labels = {SERVICE_OF: of, MANAGED_BY: made_by}
    version = "v1" if v1 else "v1beta1"
    return {
        "apiVersion": f"discovery.k8s.io/{version}",
        "kind": "EndpointSlice",
        "metadata": {"name": name, "labels": labels},
        "addressType": "IPv4",
        "endpoints": endpoints(zones, first, v1),
        "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
    }


def node(name: str, zone: str, cpu: int | str = 4, ready: bool = True) -> Document:
    """Return a Node with so many processors."""
    return {
        "metadata": {"name": name, "labels": {ZONE_LABEL: zone}},
        "status": {
            "allocatable": {"cpu": str(cpu)},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def text_of(document: Document) -> str | None:
    """Return a slice's annotation."""
    found: str | None = (document["metadata"].get("annotations") or {}).get(ZONE_HINTS)
    return found
