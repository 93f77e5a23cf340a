"""What is rendered for Kubernetes: manifests, configurations, command lines, certificates."""

from __future__ import annotations

import base64
import json
import tomllib

import pytest

from testbed.enforcements import registry
from testbed.enforcements.resource import RESOURCE
from testbed.kubernetes import manifests
from testbed.kubernetes.certificates import Subject, at_server, render_kubeconfig, render_request
from testbed.kubernetes.client import complaints
from testbed.kubernetes.control_plane import api_server_arguments, client_arguments, endpoint, etcd_arguments
from testbed.kubernetes.manifests import Manifest
from testbed.kubernetes.worker import kubelet_arguments, render_containerd, render_kubelet, render_network
from testbed.scenario import Scenario, load, ports
from testbed.scenario.addressing import Addressing
from testbed.supplies import versions
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
OLD, NEW = versions.parse("1.20.2"), versions.parse("1.30.0")


@pytest.fixture
def contmec() -> Scenario:
    return load(SCENARIOS / "contmec.yaml")


@pytest.fixture
def congested() -> Scenario:
    return load(SCENARIOS / "congested.yaml")


def pod(scenario: Scenario, name: str) -> Manifest:
    return manifests.pod(scenario, registry.of(Addressing(scenario)), name)


def node(scenario: Scenario, cluster: str, name: str) -> Manifest:
    addressing = Addressing(scenario)
    return manifests.node(addressing, registry.of(addressing), cluster, name)


def capacity(scenario: Scenario) -> int | None:
    return registry.of(Addressing(scenario)).capacity()


def test_a_pod_states_its_bandwidth_by_annotations_and_goes_through_the_scheduler(contmec: Scenario) -> None:
    made = pod(contmec, "A-1")
    assert made["metadata"]["name"] == "a-1"
    assert made["metadata"]["annotations"] == {"concorde.contmec.dev/egress-guarantee": "1G"}
    assert "nodeName" not in made["spec"]
    assert made["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "worker-01"}
    assert made["spec"]["containers"][0]["imagePullPolicy"] == "Never"
    assert "resources" not in made["spec"]["containers"][0]  # nobody knows how fast the link is


def test_for_the_reference_plugin_a_guarantee_is_written_as_a_limit(contmec: Scenario) -> None:
    scenario = contmec.model_copy(update={"enforcement": "bandwidth"})
    annotations = pod(scenario, "A-1")["metadata"]["annotations"]
    assert annotations == {"kubernetes.io/egress-bandwidth": "1G"}


def test_where_the_link_is_known_a_pod_takes_what_it_is_promised_of_it(congested: Scenario) -> None:
    container = pod(congested, "A-2")["spec"]["containers"][0]
    assert container["resources"] == {"limits": {RESOURCE: "3000000000"}}
    made = node(congested, "a", "worker-01")
    assert made["status"]["allocatable"][RESOURCE] == str(capacity(congested))


def test_a_node_comes_with_the_scenarios_subnet(contmec: Scenario) -> None:
    assert node(contmec, "b", "worker-02")["spec"]["podCIDR"] == "172.17.2.0/24"


def test_published_bandwidth_is_counted_as_guarantees_are(congested: Scenario) -> None:
    rate = congested.underlay.rate
    assert rate is not None
    layer2 = capacity(congested)
    payload = capacity(congested.model_copy(update={"count": "payload"}))
    limit = capacity(congested.model_copy(update={"enforcement": "pod"}))
    assert limit == rate
    assert layer2 == int(rate * 0.99 * 0.98 * 1464 / 1514)
    assert payload == int(rate * 0.99 * 0.98 * 1398 / 1514)


def test_clusters_with_masters_of_their_own_have_the_usual_port(contmec: Scenario) -> None:
    assert [endpoint(Addressing(contmec), name)[1] for name in contmec.clusters] == [6443, 6443]
    cluster = contmec.clusters["b"].model_copy(update={"master": "master-01"})
    shared = contmec.model_copy(update={"clusters": {**contmec.clusters, "b": cluster}})
    assert [endpoint(Addressing(shared), name) for name in shared.clusters] == [
        ("192.168.56.11", 6443),
        ("192.168.56.11", 6444),
    ]


def test_nothing_serves_that_need_not_and_no_flag_is_used_that_a_version_lacks() -> None:
    assert "--port=0" in client_arguments("kube-scheduler", OLD, "/run/kubernetes/a")
    assert "--port=0" not in client_arguments("kube-scheduler", NEW, "/run/kubernetes/a")
    manager = client_arguments("kube-controller-manager", OLD, "/run/kubernetes/a")
    assert "--allocate-node-cidrs=false" in manager
    assert "--secure-port=0" in manager
    assert "--container-runtime=remote" in kubelet_arguments(OLD, "/d", "worker-01", "192.168.56.13")
    assert "--container-runtime=remote" not in kubelet_arguments(NEW, "/d", "worker-01", "192.168.56.13")


def test_api_server_and_etcd_find_each_other() -> None:
    assert "--listen-client-urls=http://127.0.0.1:2379" in etcd_arguments("/data", 2379)
    arguments = api_server_arguments("/run/kubernetes/a", "192.168.56.11", 6443, 2379)
    assert "--etcd-servers=http://127.0.0.1:2379" in arguments
    assert "--authorization-mode=Node,RBAC" in arguments


def test_kubelets_of_one_worker_have_ports_of_their_own() -> None:
    first, second = (json.loads(render_kubelet(OLD, "/d", "192.168.56.13", offset)) for offset in (0, 10000))
    assert (first["port"], second["port"]) == (10250, 20250)
    assert (first["healthzPort"], second["healthzPort"]) == (10248, 20248)
    assert first["readOnlyPort"] == 0
    gates = {"DevicePlugins": False, "LocalStorageCapacityIsolation": False}
    assert first["featureGates"] == gates
    assert "localStorageCapacityIsolation" not in first
    new = json.loads(render_kubelet(NEW, "/d", "192.168.56.13", 0))
    assert "featureGates" not in new
    assert new["localStorageCapacityIsolation"] is False


def test_the_second_kubelet_of_a_node_has_control_traffic_too(congested: Scenario) -> None:
    assert ports.control(Addressing(congested), "master-01") == [22, 6443, 10250]
    (plugin,) = registry.of(Addressing(congested)).network_list("b", "worker-02").plugins
    assert plugin["controlPorts"] == [22, 6443, 10250, 20250]


def test_containerds_configuration_names_the_clusters_plugins_and_networks() -> None:
    configuration = tomllib.loads(
        render_containerd(
            "/run/kubernetes/a/cni/bin", "/run/kubernetes/a/cni/net.d", "/run/kubernetes/a/runc"
        )
    )
    cri = configuration["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["cni"] == {
        "bin_dir": "/run/kubernetes/a/cni/bin",
        "conf_dir": "/run/kubernetes/a/cni/net.d",
        "max_conf_num": 1,
    }
    assert cri["sandbox_image"] == "testbed.local/pause:1"


def test_a_runtime_reads_the_same_network_as_is_spoken_to_without_kubernetes(contmec: Scenario) -> None:
    network = registry.of(Addressing(contmec)).network_list("a", "worker-01")
    written = json.loads(render_network(network))
    assert written["cniVersion"] == "1.0.0"
    assert written["name"] == "cluster-a"
    assert written["plugins"] == network.plugins


def test_a_request_names_user_groups_and_addresses() -> None:
    text = render_request(Subject("system:node:w", ["system:nodes"], ["192.168.56.13", "w"]))
    assert "0.O = system:nodes\nCN = system:node:w\n" in text
    assert "subjectAltName = IP:192.168.56.13, DNS:w\n" in text
    assert "CA:FALSE" in text
    assert "CA:TRUE" in render_request(Subject("authority", authority=True))


def test_a_kubeconfig_has_all_it_needs_and_can_be_pointed_elsewhere() -> None:
    config = json.loads(render_kubeconfig("a", "https://192.168.56.11:6443", "AUTHORITY", "IDENTITY"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == b"AUTHORITY"
    assert base64.b64decode(user["client-key-data"]) == b"IDENTITY"
    moved = json.loads(at_server(json.dumps(config), "https://127.0.0.1:40000"))
    assert moved["clusters"][0]["cluster"]["server"] == "https://127.0.0.1:40000"
    assert moved["users"] == config["users"]


def _pod(name: str, ready: bool) -> dict[str, object]:
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": {"conditions": conditions}}


def _event(pod: str, at: str, reason: str, message: str, kind: str = "Warning") -> dict[str, object]:
    involved = {"uid": f"uid-{pod}"}
    return {
        "involvedObject": involved, "lastTimestamp": at, "type": kind, "reason": reason, "message": message,
    }  # fmt: skip


def test_the_last_warning_about_a_pod_that_is_not_ready_is_what_counts() -> None:
    events = [
        _event("a", "2026-01-01T00:00:02Z", "FailedCreatePodSandBox", "no room"),
        _event("a", "2026-01-01T00:00:01Z", "FailedScheduling", "not yet"),
        _event("a", "2026-01-01T00:00:03Z", "Scheduled", "placed", kind="Normal"),
        _event("b", "2026-01-01T00:00:03Z", "Unhealthy", "was so once"),
        _event("c", "2026-01-01T00:00:03Z", "FailedScheduling", "not asked for"),
    ]
    pods = [_pod("a", False), _pod("b", True), _pod("c", False)]
    assert complaints(pods, events, ["a", "b"]) == [("a", "FailedCreatePodSandBox", "no room")]
