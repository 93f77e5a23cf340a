"""What an API is told of a scenario's services, and what serves them beside it."""

from __future__ import annotations

from typing import cast

import pytest

from edge.services import proxy, publisher
from testbed.access.place import Node
from testbed.enforcements import registry
from testbed.kubernetes import manifests
from testbed.kubernetes.client import Client
from testbed.kubernetes.services import ClusterServices
from testbed.scenario.addressing import Addressing
from testbed.supplies import versions
from tests.doubles import RecordingNode
from tests.unit.testbed.builders import addressed


@pytest.fixture
def addressing() -> Addressing:
    zones = ["zones={left: {delay: 0.001}, right: {delay: 0.002}}"]
    zones += [f"nodes.{name}={{zone: left}}" for name in ("master-01", "master-02", "worker-01")]
    more = ["services.near={cluster: a, pods: [A-4, A-3], hints: nearest, policy: Local}"]
    return addressed("examples/services", *zones, "nodes.worker-02={zone: right}", *more)


def services(addressing: Addressing, version: str = "1.20.2") -> ClusterServices:
    nodes = {name: cast(Node, RecordingNode(name)) for name in addressing.scenario.nodes}
    client = Client("a", nodes["master-01"], "kubectl", "admin.conf")
    return ClusterServices(addressing, "a", nodes, client, versions.parse(version))


def test_pods_have_the_labels_by_which_services_find_them(addressing: Addressing) -> None:
    told = [one for one in services(addressing).manifests if one["kind"] == "Service"]
    made = {one["metadata"]["name"]: one for one in told if one["metadata"]["namespace"] == "default"}
    assert set(made) == {"web", "near"}
    assert made["near"]["spec"]["clusterIP"] == str(addressing.service("near"))
    wanted = {name: set(one["spec"]["selector"].items()) for name, one in made.items()}
    enforcement = registry.of(addressing)
    for name, pod in addressing.scenario.pods.items():
        labels = set(manifests.pod(addressing.scenario, enforcement, name)["metadata"]["labels"].items())
        found = {service for service, selector in wanted.items() if selector <= labels}
        assert found == {service for service in made if name in addressing.scenario.services[service].pods}, (
            pod
        )


def test_what_an_api_has_no_field_for_is_an_annotation(addressing: Addressing) -> None:
    old, new = (
        next(one for one in services(addressing, version).manifests if one["metadata"]["name"] == "near")
        for version in ("1.20.2", "1.30.0")
    )
    ours = "concorde.contmec.dev/"
    assert old["metadata"]["annotations"] == {
        f"{ours}hints": "nearest",
        f"{ours}internal-traffic-policy": "Local",
    }
    assert new["metadata"]["annotations"] == {f"{ours}hints": "nearest"}
    assert new["spec"]["internalTrafficPolicy"] == "Local"


def test_each_node_has_a_proxy_and_the_master_who_publishes_hints(addressing: Addressing) -> None:
    """And both take what they are told."""
    *proxies, published = services(addressing).components
    assert [one.place.name for one in (*proxies, published)] == [
        "master-01",
        "worker-01",
        "worker-02",
        "master-01",
    ]
    for one in proxies:
        told = proxy.parse(one.argv[one.argv.index("services-proxy") + 1 :])
        assert (told.cluster, told.node, str(told.services)) == ("a", one.place.name, "10.96.0.0/16")
        assert told.access.url == "https://192.168.56.11:6443"
    options = publisher.parse(published.argv[published.argv.index("hints") + 1 :])
    assert options.delays == {("left", "right"): 0.003}
