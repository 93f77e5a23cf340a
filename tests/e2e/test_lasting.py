"""Pods that stay up in a cluster that exists, found again by name, and taken down."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]

from edge.addresses.kinds import KIND, OURS
from testbed import lasting
from testbed.access.local import ENVIRONMENT, Local
from testbed.clusters.kubeconfigs import NAMESPACE, Outside
from testbed.providers.helpers import LIFETIME_SECONDS, PersistedPods
from testbed.supplies import binaries
from tests.e2e.conftest import invoke
from tests.leftovers import added, host_state
from tests.paths import ROOT

KINDS = ROOT / "edge" / "deploy" / "addresses" / "kinds"
CLUSTER = "e2e-cluster"
NAME = "e2e-there"
SCENARIO = """
name: small
enforcement: none
nodes: {master-01: , worker-01: , worker-02: }
clusters:
  a: {master: master-01, workers: [worker-01, worker-02], pod_cidr: 172.16.0.0/16}
pods:
  A-1: {cluster: a, node: worker-01}
  A-2: {cluster: a, node: worker-02}
containers:
  container-1: {node: worker-01}
flows:
  - {from: A-1, to: A-2, duration: 4}
"""


class Cluster:
    """A cluster that looks to others as if it had been there all along, and what one knows of it here."""

    def __init__(self, directory: Path) -> None:
        self.scenario = directory / "small.yaml"
        self.kubeconfig = directory / "a.conf"
        self.state = directory / "state"
        self.kubeconfig.write_text(lasting.find(CLUSTER).kubeconfig("a"))
        kubectl = shutil.which("kubectl") or str(binaries.find().path("kubectl"))
        self.client = Outside("a", Local(), kubectl, str(self.kubeconfig))

    def invoke(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command, with a state directory of its own."""
        return invoke(*arguments, XDG_STATE_HOME=str(self.state))

    def remembered(self) -> list[Path]:
        """What is known here of clusters with testbeds."""
        return list(self.state.glob("concorde-testbed/clusters/*"))

    def has_namespace(self) -> bool:
        """Whether the cluster has the testbed's."""
        return NAMESPACE in self.client.run("get", "namespaces", "--output=name").stdout


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("cluster")
    scenario = directory / "small.yaml"
    scenario.write_text(SCENARIO)
    before = host_state()
    up = invoke("up", "--scenario", str(scenario), "--name", CLUSTER, "--orchestrator", "kubernetes")
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield Cluster(directory)
    finally:
        down = invoke("down", "--name", CLUSTER)
    assert down.returncode == 0, down.stderr
    assert added(before, host_state()) == {}


@pytest.fixture(scope="module")
def up(cluster: Cluster) -> Cluster:
    """The cluster with a testbed that stays up."""
    done = cluster.invoke(
        "up", "--kubeconfig", f"a={cluster.kubeconfig}", "--scenario", str(cluster.scenario), "--name", NAME
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "end by themselves at" in done.stdout
    return cluster


def test_its_pods_end_by_themselves_after_a_day(up: Cluster) -> None:
    pods = up.client.get("pods")["items"]
    assert {pod["metadata"]["name"] for pod in pods} == {
        "a-1", "a-2", "container-1", "node.worker-01", "node.worker-02"
    }  # fmt: skip
    assert {pod["spec"]["activeDeadlineSeconds"] for pod in pods} == {LIFETIME_SECONDS}
    ends = up.client.get("configmap", "testbed")["data"]["until"]
    left = datetime.fromisoformat(ends) - datetime.now().astimezone()
    assert LIFETIME_SECONDS - 3600 < left.total_seconds() < LIFETIME_SECONDS


def test_status_shows_it_beside_those_of_this_machine(up: Cluster) -> None:
    shown = up.invoke("status").stdout
    assert f"{NAME}: scenario small, enforcement none" in shown
    assert f"{CLUSTER}: scenario small" in shown
    (address,) = (
        pod["status"]["podIP"] for pod in up.client.get("pods")["items"] if pod["metadata"]["name"] == "a-1"
    )
    assert address in up.invoke("status", "--name", NAME).stdout


def test_commands_run_in_its_pods_and_on_its_nodes(up: Cluster) -> None:
    ran = up.invoke("exec", "A-1", "--name", NAME, "--", "sh", "-c", "ip -br address show eth0; exit 7")
    assert ran.returncode == 7, ran.stderr
    assert "172.16.1." in ran.stdout
    on_node = up.invoke("exec", "worker-02", "--name", NAME, "--", "cat", "/run/flannel/subnet-a.env")
    assert "FLANNEL_SUBNET=172.16.2.1/24" in on_node.stdout, on_node.stderr
    shell = up.invoke("ssh", "worker-01", "--name", NAME, "--", "ip", "-br", "address", "show", "cni-a")
    assert "172.16.1.1/24" in shell.stdout, shell.stderr
    assert up.invoke("kubeconfig", "a", "--name", NAME).stdout == up.kubeconfig.read_text()


def test_whoever_has_the_kubeconfig_can_enter_it(up: Cluster) -> None:
    elsewhere = invoke(
        "exec", "A-2", "--provider", f"existing:{up.kubeconfig}", "--", "ip", "-br", "address",
        XDG_STATE_HOME=str(up.state / "elsewhere"),
    )  # fmt: skip
    assert "172.16.2." in elsewhere.stdout, elsewhere.stderr


def test_a_context_is_way_enough_and_two_of_one_cluster_are_no_two(up: Cluster) -> None:
    config = yaml.safe_load(up.kubeconfig.read_text())
    (context,) = config["contexts"]
    config |= {"contexts": [context | {"name": name} for name in ("first", "second")], "current-context": ""}
    both = up.kubeconfig.with_name("both.conf")
    both.write_text(yaml.safe_dump(config))
    entered = invoke("exec", "A-2", "--provider", f"existing:{both}@second", "--", "ip", "-br", "address")
    assert "172.16.2." in entered.stdout, entered.stderr
    given = ["--kubeconfig", f"a={both}@first", "--kubeconfig", f"b={both}@second"]
    refused = invoke("bench", "--scenario", "contmec", *given, "--reports", str(up.state))
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "clusters.b: its kubeconfig leads to the same cluster as that of 'a'" in refused.stderr


def test_capture_is_the_nodes_own_in_the_pods_network(up: Cluster) -> None:
    asked = PersistedPods(NAME, {"a": up.client})
    where = asked.state().places["A-1"]
    entered = asked.command(where.network, ["ip", "-br", "address", "show", "eth0"])
    shown = subprocess.run(entered.argv, capture_output=True, text=True, check=True).stdout
    assert f"{where.address}/24" in shown
    if shutil.which("tcpdump", path=ENVIRONMENT["PATH"]) is None:
        missing = up.invoke("capture", "A-1", "--name", NAME)
        assert missing.returncode == 2
        assert "tcpdump is not installed on worker-01: apt-get install tcpdump" in missing.stderr
        return
    listed = up.invoke("capture", "A-1", "--name", NAME, "--", "--list-interfaces")
    assert "eth0" in listed.stdout, listed.stderr


def test_a_run_is_refused_with_what_is_there(up: Cluster) -> None:
    refused = up.invoke(
        "bench",
        "--kubeconfig",
        f"a={up.kubeconfig}",
        "--scenario",
        str(up.scenario),
        "--reports",
        str(up.state),
    )
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert f"testbed '{NAME}' of " in refused.stderr
    assert f"./invokew down --name {NAME}" in refused.stderr


def test_down_frees_the_cluster_and_leaves_nothing_here(up: Cluster) -> None:
    (file,) = up.remembered()
    assert json.loads(file.read_text()) == {"a": str(up.kubeconfig)}
    down = up.invoke("down", "--name", NAME)
    assert down.returncode == 0, down.stderr
    assert not up.has_namespace()
    assert up.remembered() == []
    assert f"no testbed '{NAME}' is up" in up.invoke("exec", "A-1", "--name", NAME, "--", "true").stderr


def test_addresses_are_shown_of_no_config_and_then_of_one(cluster: Cluster) -> None:
    shown = cluster.invoke("addresses", "--kubeconfig", str(cluster.kubeconfig))
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^worker-01 +no config +172\.16\.1\.0/24 ", shown.stdout, re.MULTILINE)
    assert "this cluster knows no ClusterCIDRConfig" in shown.stdout
    try:
        cluster.client.run("apply", f"--filename={KINDS}")
        cluster.client.run("wait", "--for=condition=Established", "crd", "--all")
        spec = {"ipv4": {"cidr": "172.16.0.0/20", "perNodeMaskSize": 24}}
        kind = {"apiVersion": OURS, "kind": KIND, "metadata": {"name": "all"}, "spec": spec}
        cluster.client.apply([kind])
        told = cluster.invoke("addresses", "--kubeconfig", str(cluster.kubeconfig), "--json")
        (found,) = json.loads(told.stdout)["clusters"]
        assert [(node["node"], node["config"], node["blocks"]) for node in found["nodes"]] == [
            ("worker-01", "all", ["172.16.1.0/24"]),
            ("worker-02", "all", ["172.16.2.0/24"]),
        ]
        assert found["notes"] == []
    finally:
        cluster.client.run("delete", "--ignore-not-found", f"--filename={KINDS}")


def test_what_a_cluster_no_longer_has_is_gone(cluster: Cluster) -> None:
    directory = cluster.state / "concorde-testbed" / "clusters"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{NAME}.json").write_text(json.dumps({"a": str(cluster.kubeconfig)}))
    assert NAME not in cluster.invoke("status").stdout
    assert cluster.remembered() == []
