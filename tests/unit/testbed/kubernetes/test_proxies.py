"""Proxy pods as an API is given them, and what their node's containerd is told."""

from __future__ import annotations

import json

import pytest

from edge.devices import rendering
from edge.devices.rendering import FORWARD, NETWORKS, TO_DEVICE
from testbed import resources
from testbed.enforcements import registry
from testbed.kubernetes import manifests, proxies
from testbed.kubernetes.manifests import Manifest
from testbed.scenario import connections
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed

OTHER = (
    "clusters.b={master: master-01, workers: [worker-01, worker-02], pod_cidr: 172.20.0.0/16, "
    "flannel: {vni: 2}}",
    "connections.other={cluster: b, device: door, components: [lock], mode: relay}",
)
POD = "dop-cam-1"


@pytest.fixture
def addressing() -> Addressing:
    return addressed("examples/devices", "enforcement=node", *OTHER)


def made(addressing: Addressing, name: str = POD) -> Manifest:
    return proxies.pod(addressing, registry.of(addressing), name)


def test_a_proxy_is_where_the_scenario_says_and_what_the_operator_would_make(addressing: Addressing) -> None:
    pod = made(addressing)
    annotations = pod["metadata"]["annotations"]
    assert (pod["metadata"]["name"], annotations[NETWORKS]) == (POD, "plant")
    assert annotations[TO_DEVICE] == "20M"
    assert annotations["concorde.contmec.dev/egress-guarantee"] == "50M"
    assert [one["port"] for one in json.loads(annotations[FORWARD])][:3] == [8554, 5004, 8080]
    (term,) = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    assert term["matchFields"][0]["values"] == ["worker-02"]
    own = connections.connection_of(addressing.scenario, "cam")
    device = connections.device_of(addressing.scenario, "camera")
    settings = proxies.SETTINGS
    theirs, _ = rendering.rendered(own, device, "uid", settings)
    template = theirs["spec"]["template"]
    (container,) = template["spec"]["containers"]
    apart = {"affinity": pod["spec"]["affinity"], "containers": [{**container, "resources": {}}]}
    assert pod["spec"] == {**template["spec"], **apart}
    labels = template["metadata"]["labels"]
    del labels[rendering.REVISION]  # of a Deployment's pods among others
    assert labels.items() <= pod["metadata"]["labels"].items()


def test_its_service_finds_it(addressing: Addressing) -> None:
    labels = made(addressing)["metadata"]["labels"]
    assert manifests.endpoint_label("dop-cam").items() <= labels.items()
    assert manifests.endpoint_label("dop-other").items().isdisjoint(labels.items())


@pytest.mark.parametrize(("cluster", "segments"), [("a", ["172.30.16.0/24"]), ("b", ["172.30.17.0/24"])])
def test_only_gateways_of_a_cluster_lead_its_pods_into_segments(
    addressing: Addressing, cluster: str, segments: list[str]
) -> None:
    enforcement = registry.of(addressing)
    plain = proxies.network_list(enforcement, cluster, "worker-01")
    assert plain == enforcement.network_list(cluster, "worker-01")
    *others, last = proxies.network_list(enforcement, cluster, "worker-02").plugins
    assert others == list(enforcement.network_list(cluster, "worker-02").plugins)
    assert last["type"] == "concorde-networks"
    assert last["segments"] == segments
    ranges = [*addressing.pod_networks(cluster), addressing.service_range(cluster)]
    assert last["clusterRanges"] == list(map(str, ranges))


def test_its_plugins_are_there_once_whoever_keeps_promises(addressing: Addressing) -> None:
    assert proxies.plugins(registry.of(addressing)) == [resources.BUILT_PLUGIN]
    others = addressed("examples/devices", "enforcement=bandwidth", "connections.cam.guarantee={}")
    assert proxies.plugins(registry.of(others)) == [resources.BUILT_PLUGIN]
    assert proxies.plugins(registry.of(addressed("contmec", "enforcement=bandwidth"))) == []
