"""What the playbooks are told of a scenario."""

from __future__ import annotations

import json
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from testbed.kubernetes.addresses import told
from testbed.kubernetes.control_plane import endpoint
from testbed.kubernetes.worker import CONTAINERD_SOCKET
from testbed.providers.ssh.inventory import Machine
from testbed.provisioning import kubeadm, variables
from testbed.provisioning import services as provisioned
from testbed.provisioning.installation import IMAGE_DIGEST
from testbed.scenario import Scenario, ScenarioError, load
from testbed.scenario.addressing import Addressing
from testbed.supplies import addresses, images, names, services, versions
from testbed.supplies.bundle import Archive, Bundle, image_name
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
OLD = versions.parse("1.20.2")
SERVICES = IPv4Network("10.96.0.0/16")
BUNDLE = Bundle(
    Path("/bundle"),
    OLD,
    dict.fromkeys(
        (
            "bin/kubelet",
            "cni/loopback",
            "images/pause-1.tar",
            "images/kube-apiserver.tar",
            "images/services.tar",
            "images/names.tar",
            "images/addresses.tar",
        ),
        "1f",
    ),
    (
        Archive(images.PAUSE, "images/pause-1.tar", "sha256:1"),
        Archive(image_name("kube-apiserver", OLD), "images/kube-apiserver.tar", "sha256:2"),
        Archive(services.IMAGE, "images/services.tar", "sha256:4"),
        Archive(names.IMAGE, "images/names.tar", "sha256:5"),
        Archive(addresses.IMAGE, "images/addresses.tar", "sha256:3"),
    ),
)


def machines(scenario: Scenario) -> dict[str, Machine]:
    return {name: Machine(name, f"{name}.example", "alice", key=Path("/key")) for name in scenario.nodes}


def hosts(scenario: Scenario) -> dict[str, Any]:
    found: dict[str, Any] = variables.inventory(scenario, machines(scenario), BUNDLE)["all"]["hosts"]
    return found


def coming(cell: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Return the nodes of which a master tells its API, in groups that come one after another."""
    lists = [json.loads(one["manifests"])["items"] for one in cell["nodes"]]
    return [[item for item in items if item["kind"] == "Node"] for items in lists]


@pytest.fixture
def contmec() -> Scenario:
    return load(SCENARIOS / "contmec.yaml")


@pytest.fixture
def stations() -> Scenario:
    """Two clusters whose nodes have blocks of different sizes."""
    return load(
        SCENARIOS / "examples" / "stations-of-different-sizes.yaml", ["nodes.master-01={labels: {x: y}}"]
    )


def documents(text: str) -> dict[str, dict[str, Any]]:
    return {one["kind"]: one for one in map(json.loads, text.split("---\n"))}


def test_an_overlapped_worker_has_a_cell_for_each_cluster_and_nothing_of_one_is_the_others(
    contmec: Scenario,
) -> None:
    first, second = hosts(contmec)["worker-01"]["cells"]
    assert (first["cluster"], second["cluster"]) == ("a", "b")
    apart = ("bridge", "network", "vtep", "subnet_file", "subnet", "kubeadm", "plugin", "flannel", "master")
    assert [key for key in apart if first[key] == second[key]] == []
    (of_first, of_second) = json.loads(first["wishes"]), json.loads(second["wishes"])
    assert of_first["directory"] != of_second["directory"]
    assert of_first["cgroup"] != of_second["cgroup"]
    assert {"/var/lib/kubelet", "/var/log/pods", "/etc/kubernetes", "/run/containerd"} <= {*of_first["own"]}


def test_the_second_kubelet_of_a_worker_has_other_ports(contmec: Scenario) -> None:
    arguments = [
        json.loads(cell["kubeadm"])["nodeRegistration"]["kubeletExtraArgs"]
        for cell in hosts(contmec)["worker-01"]["cells"]
    ]
    assert arguments[0] == {"node-ip": "192.168.56.13"}
    assert arguments[1] == {"node-ip": "192.168.56.13", "port": "20250", "healthz-port": "20248"}


def test_only_masters_get_the_control_planes_images(contmec: Scenario) -> None:
    found = hosts(contmec)
    everywhere = ["bin/kubelet", "cni/loopback", "images/pause-1.tar"]
    assert found["master-01"]["files"] == [*everywhere, "images/kube-apiserver.tar"]
    assert found["worker-01"]["files"] == everywhere
    assert found["worker-01"]["sums"].splitlines()[0] == "1f  bin/kubelet"


def test_a_master_tells_its_api_the_scenarios_subnets_and_how_guarantees_are_kept(contmec: Scenario) -> None:
    (cell,) = hosts(contmec)["master-02"]["cells"]
    (nodes,) = coming(cell)
    assert [(node["metadata"]["name"], node["spec"]["podCIDR"]) for node in nodes] == [
        ("worker-01", "172.17.1.0/24"),
        ("worker-02", "172.17.2.0/24"),
    ]
    (configuration,) = [i for i in json.loads(cell["configuration"])["items"] if i["kind"] == "ConfigMap"]
    (plugin,) = json.loads(configuration["data"]["concorde.conflist"])["plugins"]
    assert (plugin["type"], plugin["enforcement"], plugin["bridge"]) == ("concorde", "pod", "cni-b")


def test_where_nodes_differ_in_size_each_master_tells_a_controller_of_its_own_and_nodes_come_without_blocks(
    stations: Scenario,
) -> None:
    found = hosts(stations)
    for master, cluster, entries in (("master-01", "a", 3), ("master-02", "b", 2)):
        (cell,) = found[master]["cells"]
        assert "images/addresses.tar" in found[master]["files"]
        assert [one["name"] for one in cell["images"]][-1] == addresses.IMAGE
        (nodes,) = coming(cell)
        assert [(one["metadata"]["name"], one["spec"]) for one in nodes] == [
            (name, {}) for name in stations.clusters[cluster].workers
        ]
        told = cell["addresses"]
        configs = json.loads(told["configs"])["items"]
        assert (
            [one["metadata"]["name"] for one in configs]
            == told["names"]
            == ["large", "small", "kiosk"][:entries]
        )
        assert told["blocks"][0] == f"{master} {Addressing(stations).pod_subnet(cluster, master)}"
    assert "images/addresses.tar" not in found["worker-01"]["files"]
    (cell,) = found["master-01"]["cells"]
    assert cell["addresses"]["blocks"] == [
        "master-01 172.16.0.0/24",
        "worker-01 172.16.1.0/24",
        "worker-02 172.16.32.0/27",
        "worker-03 172.16.40.0/29",
    ]
    known = json.loads(cell["as_node"])
    assert known["spec"] == {}
    assert known["metadata"]["labels"]["x"] == "y"


def test_the_controller_runs_beside_the_control_plane_and_is_told_where_that_is(stations: Scenario) -> None:
    (cell,) = hosts(stations)["master-02"]["cells"]
    made = json.loads(cell["addresses"]["controller"])["items"]
    assert {one["kind"] for one in made} > {"CustomResourceDefinition", "ClusterRole", "Deployment"}
    (deployment,) = [one for one in made if one["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 1
    pod = deployment["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["kubernetes.io/hostname"] == "master-02"
    (container,) = pod["containers"]
    assert container["image"] == addresses.IMAGE
    assert {one["name"]: one["value"] for one in container["env"]} == {
        "KUBERNETES_SERVICE_HOST": "192.168.58.12",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    args = container["args"]
    assert [one for one in args if "webhook=" in one] == ["--webhook=concorde-addresses"]
    assert [one for one in args if "reserved" in one or one == "--island"] == told(Addressing(stations), "b")
    assert "--reserved=10.97.0.0/16" in args


def test_where_a_cluster_has_services_every_node_has_their_image_and_the_master_their_proxies() -> None:
    zones = {"master-01": "n", "master-02": "s", "worker-01": "n", "worker-02": "s"}
    apart = [f"nodes.{at}={{zone: {zone}}}" for at, zone in zones.items()]
    told = ["zones={n: {delay: 0.001}, s: {delay: 0.002}}", *apart]
    scenario = load(SCENARIOS / "examples" / "services.yaml", told)
    found = hosts(scenario)
    for host in found.values():
        for cell in host["cells"]:
            assert {services.IMAGE, names.IMAGE} <= {one["name"] for one in cell["images"]}
    (cell,) = found["master-02"]["cells"]
    made = {one["kind"]: one for one in json.loads(cell["services"]["manifests"])["items"]}
    assert made["Service"]["spec"]["clusterIP"] == "10.97.0.10"
    assert [kind for kind in made if kind in ("Namespace", "ConfigMap", "DaemonSet")][1] == "ConfigMap"
    host, port = endpoint(Addressing(scenario), "b")
    assert made["ConfigMap"]["data"] == {
        "cluster": "b", "services": "10.97.0.0/16", "delays": "n:s=0.003",
        "api-host": host, "api-port": str(port),
    }  # fmt: skip
    assert cell["services"]["workloads"] == ["daemonset/proxy", "deployment/hints"]
    template = made["DaemonSet"]["spec"]["template"]
    proxy, answering = template["spec"]["containers"]
    assert (proxy["image"], answering["image"]) == (services.IMAGE, names.IMAGE)
    assert {"--listen-address=$(HOST)", "--port=10054", "--hostsdir=/names"} <= set(answering["args"])
    assert proxy["args"][-1] == "--names=/names"
    assert template["metadata"]["annotations"][IMAGE_DIGEST] == "sha256:4"


def test_without_who_answers_names_there_are_services() -> None:
    addressing = Addressing(load(SCENARIOS / "examples" / "services.yaml"))
    bundle = replace(BUNDLE, images=tuple(one for one in BUNDLE.images if one.name != names.IMAGE))
    assert [one.name for one in provisioned.images(bundle)] == [services.IMAGE]
    told = json.loads(provisioned.tell(addressing, "a", bundle)["manifests"])["items"]
    made = {one["kind"]: one for one in told}
    assert "Service" not in made
    assert len(made["DaemonSet"]["spec"]["template"]["spec"]["containers"]) == 1


def test_nodes_that_are_not_in_the_order_of_their_names_come_one_after_another(stations: Scenario) -> None:
    own = stations.clusters["a"].model_copy(update={"workers": ["worker-02", "worker-01", "worker-03"]})
    turned = stations.model_copy(update={"clusters": {**stations.clusters, "a": own}})
    (cell,) = hosts(turned)["master-01"]["cells"]
    names = [["worker-02"], ["worker-01", "worker-03"]]
    assert [one["names"] for one in cell["nodes"]] == names
    assert [[node["metadata"]["name"] for node in group] for group in coming(cell)] == names


def test_a_bundle_without_the_controllers_image_is_refused_where_it_is_needed(
    stations: Scenario, contmec: Scenario
) -> None:
    without = replace(BUNDLE, images=BUNDLE.images[:-1])
    variables.inventory(contmec, machines(contmec), without)
    with pytest.raises(LookupError, match=r"--from: /bundle has no image testbed.local/concorde-addresses"):
        variables.inventory(stations, machines(stations), without)


@pytest.mark.parametrize("version", ["1.20.2", "1.21.0"])
def test_ranges_of_two_families_are_refused_where_a_server_keeps_one(version: str) -> None:
    both = "pod_cidrs: [{name: all, cidr: 172.17.0.0/16, mask: 24, ipv6: {cidr: 'fd17::/112', mask: 120}}]"
    told = f"clusters.b={{master: master-02, workers: [worker-01, worker-02], flannel: {{vni: 2}}, {both}}}"
    scenario = load(SCENARIOS / "contmec.yaml", [told])
    faults = variables.unfit(scenario, versions.parse(version))
    assert ["IPv6DualStack" in one.message for one in faults] == [True] * (version == "1.20.2")


def test_ansible_gets_to_machines_as_everything_else_does(contmec: Scenario) -> None:
    reached = variables.connection(
        Machine("worker-01", "10.0.0.3", "alice", 2222, key=Path("/key"), known_hosts=Path("/known"))
    )
    assert (reached["ansible_host"], reached["ansible_port"]) == ("10.0.0.3", 2222)
    assert reached["ansible_ssh_private_key_file"] == "/key"
    options = reached["ansible_ssh_common_args"]
    assert "StrictHostKeyChecking=yes" in options
    assert "UserKnownHostsFile=/known" in options


@pytest.mark.parametrize("backend", ["host-gw", "bgp"])
def test_machines_are_joined_by_vxlan_alone(backend: str) -> None:
    scenario = load(SCENARIOS / "contmec.yaml", [f"clusters.b.backend={backend}"])
    words = rf"clusters\.b\.backend: the playbooks join machines by flannel's vxlan, not by {backend}"
    with pytest.raises(ScenarioError, match=words):
        hosts(scenario)


def test_plugins_that_no_playbook_brings_are_refused() -> None:
    said = "{name: own, plugins: /usr, conflist: {plugins: [{type: x}]}}"
    with pytest.raises(ScenarioError, match=r"enforcement\.plugins: the playbooks bring machines"):
        hosts(load(SCENARIOS / "contmec.yaml", [f"enforcement={said}"]))


@pytest.mark.parametrize(("version", "nodes"), [("1.25.16", []), ("1.26.0", ["worker-01", "worker-02"])])
def test_bandwidth_is_published_again_where_kubelets_take_it_out(version: str, nodes: list[str]) -> None:
    congested = load(SCENARIOS / "congested.yaml", ["enforcement=pod"])
    bundle = replace(BUNDLE, version=versions.parse(version))
    told = variables.inventory(congested, machines(congested), bundle)["all"]["hosts"]
    (master,) = told["master-01"]["cells"]
    assert [(one["cluster"], one["node"]) for one in master["publications"]] == [
        ("a", node) for node in nodes
    ]
    for one in master["publications"]:
        status = json.loads(one["patch"])["status"]
        assert status["capacity"] == status["allocatable"] == {"concorde.contmec.dev/egress": "9000000000"}


def test_one_master_of_two_clusters_is_refused(contmec: Scenario) -> None:
    both = contmec.clusters["b"].model_copy(update={"master": "master-01"})
    scenario = contmec.model_copy(update={"clusters": {**contmec.clusters, "b": both}})
    with pytest.raises(ScenarioError, match="master-01 is the master of cluster 'a' already"):
        hosts(scenario)


def test_a_machine_that_would_wait_for_its_block_is_refused() -> None:
    few = "pod_cidrs: [{name: all, cidr: 172.17.0.0/23, mask: 24}]"
    short = f"clusters.b={{master: master-02, workers: [worker-01, worker-02], flannel: {{vni: 2}}, {few}}}"
    elsewhere = ["nodes.worker-02={expect: unassigned}", "pods.B-2.node=worker-01"]
    with pytest.raises(ScenarioError, match=r"nodes.worker-02.expect: a machine has its block of"):
        hosts(load(SCENARIOS / "contmec.yaml", [short, *elsewhere]))


@pytest.mark.parametrize(
    ("version", "api"),
    [("1.20.2", "v1beta2"), ("1.22.0", "v1beta3"), ("1.30.9", "v1beta3"), ("1.31.0", "v1beta4")],
)
def test_kubeadm_is_told_in_words_its_version_knows(version: str, api: str) -> None:
    text = kubeadm.render_init(
        versions.parse(version), "a", "m", IPv4Address("10.0.0.1"), 6443, 10000, SERVICES
    )
    said = documents(text)
    assert said["InitConfiguration"]["apiVersion"] == said["ClusterConfiguration"]["apiVersion"]
    assert said["InitConfiguration"]["apiVersion"] == f"kubeadm.k8s.io/{api}"
    arguments = said["InitConfiguration"]["nodeRegistration"]["kubeletExtraArgs"]
    wanted = {"node-ip": "10.0.0.1", "port": "20250", "healthz-port": "20248"}
    if api == "v1beta4":
        assert {one["name"]: one["value"] for one in arguments} == wanted
        assert said["InitConfiguration"]["timeouts"] == kubeadm.PATIENCE
        assert said["ClusterConfiguration"]["encryptionAlgorithm"] == "ECDSA-P256"
        assert "featureGates" not in said["ClusterConfiguration"]
    else:
        assert arguments == wanted
        assert said["ClusterConfiguration"]["featureGates"] == {"PublicKeysECDSA": True}
        assert "encryptionAlgorithm" not in said["ClusterConfiguration"]
        assert "timeoutForControlPlane" in said["ClusterConfiguration"]["apiServer"]


@pytest.mark.parametrize(("version", "known"), [("1.30.9", False), ("1.31.0", True)])
def test_who_joins_is_patient_where_kubeadm_lets_it(version: str, known: bool) -> None:
    said = json.loads(kubeadm.render_join(versions.parse(version), "10.0.0.1:6443", "w", IPv4Address(9), 0))
    assert said.get("timeouts") == (kubeadm.PATIENCE if known else None)


@pytest.mark.parametrize("version", ["1.20.2", "1.24.9", "1.25.0"])
def test_a_scheduler_counts_disks_where_kubelets_do(version: str) -> None:
    """Else etcd's pod leaves less than none on a master, and no proxy is placed there any more."""
    text = kubeadm.render_init(versions.parse(version), "a", "m", IPv4Address(9), 6443, 0, SERVICES)
    said = documents(text)
    gate = "LocalStorageCapacityIsolation"
    by_kubelet = said["KubeletConfiguration"].get("featureGates", {}).get(gate)
    told = said["ClusterConfiguration"]["scheduler"]["extraArgs"].get("feature-gates")
    assert (by_kubelet, told) in [(False, f"{gate}=false"), (None, None)]
    assert (told is None) == (version == "1.25.0")


def test_a_node_may_be_silent_for_longer_than_it_is_between_two_signs_of_life() -> None:
    said = documents(kubeadm.render_init(OLD, "a", "master-01", IPv4Address("10.0.0.1"), 6443, 0, SERVICES))
    kubelet, manager = said["KubeletConfiguration"], said["ClusterConfiguration"]["controllerManager"]
    frequency = int(kubelet["nodeStatusUpdateFrequency"].removesuffix("s"))
    # A kubelet renews its lease after a quarter of it (kubelet.go, nodeLeaseRenewIntervalFraction).
    assert frequency <= kubelet["nodeLeaseDurationSeconds"] / 4
    silence = int(manager["extraArgs"]["node-monitor-grace-period"].removesuffix("s"))
    assert silence > kubelet["nodeLeaseDurationSeconds"]


def test_a_control_plane_takes_its_images_from_no_registry_and_gives_no_subnets() -> None:
    text = kubeadm.render_init(OLD, "a", "master-01", IPv4Address("10.0.0.1"), 6443, 0, SERVICES)
    said = documents(text)
    cluster = said["ClusterConfiguration"]
    assert cluster["imageRepository"] == "testbed.local"
    assert cluster["etcd"]["local"] == {"imageTag": "1", "extraArgs": kubeadm.SELDOM}
    assert cluster["controllerManager"]["extraArgs"]["allocate-node-cidrs"] == "false"
    assert cluster["networking"] == {"serviceSubnet": "10.96.0.0/16"}
    assert said["KubeletConfiguration"]["cgroupDriver"] == "cgroupfs"
    # kubeadm's own word for a socket is a path as long as Docker is what it expects.
    assert said["InitConfiguration"]["nodeRegistration"]["criSocket"] == CONTAINERD_SOCKET


@pytest.mark.parametrize("version", ["1.20.2", "1.21.14", "1.22.0", "1.34.0"])
def test_kubeadm_is_told_once_where_its_patches_are(version: str) -> None:
    """By its flag, which is gone, or by its configuration, which did not know it (kubernetes#103063)."""
    known = versions.parse(version)
    text = kubeadm.render_init(known, "a", "master-01", IPv4Address("10.0.0.1"), 6443, 0, SERVICES)
    initial = documents(text)["InitConfiguration"]
    where = "/etc/concorde-testbed/a/patches"
    if known.minor < 22:
        assert "patches" not in initial
        assert kubeadm.option(known, "a") == f"--experimental-patches={where}"
    else:
        assert initial["patches"] == {"directory": where}
        assert kubeadm.option(known, "a") == ""


def test_patches_are_named_as_kubeadm_looks_for_them_and_change_only_what_is_there() -> None:
    patches = kubeadm.render_patches()
    assert set(patches) == {
        f"{name}+strategic.json"
        for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
    }
    for file, text in patches.items():
        (container,) = json.loads(text)["spec"]["containers"]
        assert container["name"] == file.partition("+")[0]
        # A probe that has no way to ask would make the pod one that no kubelet starts.
        assert ("readinessProbe" in container) == (container["name"] == "kube-apiserver")
        # An overloaded one is not ended before a control plane may take to come up.
        live = container["livenessProbe"]
        assert live["periodSeconds"] * live["failureThreshold"] == kubeadm.UP_SECONDS
        assert live["timeoutSeconds"] == live["periodSeconds"]
        # Who asks an API has as much patience as a kubelet.
        told = {one["name"]: one["value"] for one in container.get("env", [])}
        assert told == ({} if container["name"] == "etcd" else kubeadm.PATIENT)


def test_who_joins_leaves_room_for_what_only_the_cluster_can_say() -> None:
    said = json.loads(kubeadm.render_join(versions.parse("1.31.0"), "10.0.0.1:6443", "w", IPv4Address(9), 0))
    assert said["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "10.0.0.1:6443",
        "token": kubeadm.TOKEN,
        "caCertHashes": [kubeadm.AUTHORITY],
    }
    assert said["nodeRegistration"]["criSocket"] == f"unix://{CONTAINERD_SOCKET}"
