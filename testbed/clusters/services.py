"""A scenario's services in a cluster that exists: objects of its API, for whoever serves services there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from edge.services.discovery import GROUP, VERSION, found
from testbed.clusters.kubeconfigs import NAMESPACE, Outside
from testbed.clusters.namespaces import LABEL
from testbed.clusters.questions import raw
from testbed.kubernetes import endpoints
from testbed.kubernetes.client import PodError
from testbed.kubernetes.manifests import endpoint_label, name_of
from testbed.runtime.services import manifest
from testbed.scenario.addressing import Addressing


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

    def lacking() -> Iterator[str]:
        slices = client.get("endpointslices")["items"]
        for name, one in own.items():
            wanted = [pods[pod] for pod in one.pods if pod in pods]
            there = endpoints.ready(slices, (NAMESPACE, name_of(name)))
            yield from endpoints.lacking(name_of(name), wanted, there)

    if words := endpoints.after(seconds, lacking):
        raise PodError(f"services of cluster {client.cluster}: {words[0]}")
