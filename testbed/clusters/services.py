"""A scenario's services in a cluster that exists: objects of its API, for whoever serves services there."""

from __future__ import annotations

import time
from collections.abc import Mapping

from edge.services.discovery import GROUP, VERSION, found
from edge.services.endpoints import ready_ones, slice_of
from edge.services.publication import known
from testbed.clusters.kubeconfigs import NAMESPACE, Outside
from testbed.clusters.namespaces import LABEL
from testbed.clusters.questions import raw
from testbed.kubernetes.client import PodError
from testbed.kubernetes.manifests import endpoint_label, name_of
from testbed.runtime.services import manifest
from testbed.scenario.addressing import Addressing

AGAIN_SECONDS = 0.2


def serve(addressing: Addressing, client: Outside, pods: Mapping[str, str], seconds: float) -> None:
    """Make a cluster's services, and wait until it knows these pods, by name their addresses, as endpoints.

    Raises CommandError for what the API refuses, such as an address that is not of its range, PodError if it
    takes longer.
    """
    services = addressing.scenario.services
    own = {name: one for name, one in services.items() if one.cluster == client.cluster}
    if not own:
        return
    version = found(raw(client, VERSION), raw(client, GROUP)).version
    made = [manifest(addressing, name, version, endpoint_label(name)) for name in own]
    for one in made:
        one["metadata"] |= {"namespace": NAMESPACE, "labels": LABEL}
    client.apply(made)
    wanted = {(name_of(name), pods[pod]) for name, one in own.items() for pod in one.pods if pod in pods}
    deadline = time.monotonic() + seconds
    while lacking := wanted - _endpoints(client):
        if time.monotonic() > deadline:
            (name, address), *_ = sorted(lacking)
            raise PodError(f"cluster {client.cluster}: service {name} lacks endpoint {address}")
        time.sleep(AGAIN_SECONDS)


def _endpoints(client: Outside) -> set[tuple[str, str]]:
    """Return the ready endpoints of each service, by name and address."""
    slices = client.get("endpointslices")["items"]
    of = ((each.of[1], slice_of(one)) for one in slices if (each := known(one)))
    return {(name, end.address) for name, each in of for end in ready_ones([each])}
