"""Two real clusters whose nodes are the same two workers."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.generators import exchanger_of
from bench.measurement import transfers
from bench.measurement.plan import plan
from testbed.access.components import Component
from testbed.access.place import CommandError, in_parallel
from testbed.kubernetes import manifests
from testbed.kubernetes.client import Client
from testbed.kubernetes.manifests import Manifest
from testbed.orchestrators.own import KubernetesOrchestrator
from testbed.scenario import Pod, Scenario
from testbed.testbed import Testbed
from tests import cases
from tests.e2e.conftest import PATIENCE_SECONDS, ledger, until

CHURNED = cases.count("CONCORDE_CHURNED_PODS", 20, 50)  # in each cluster
REPLACED = len(range(0, CHURNED, 5))  # of them


@pytest.fixture
def a(pair: Testbed) -> Client:
    return next(client for client in pair.clients if client.cluster == "a")


@pytest.fixture
def b(pair: Testbed) -> Client:
    return next(client for client in pair.clients if client.cluster == "b")


def component(pair: Testbed, name: str) -> Component:
    orchestrator = pair.orchestrator
    assert isinstance(orchestrator, KubernetesOrchestrator)
    return next(one for one in orchestrator.components if one.name == name)


def with_pods(scenario: Scenario, pods: dict[str, Pod]) -> Scenario:
    return scenario.model_copy(update={"pods": {**scenario.pods, **pods}})


def render(pair: Testbed, name: str, pod: Pod) -> Manifest:
    return manifests.pod(with_pods(pair.scenario, {name: pod}), pair.enforcement, name)


def unlimited(manifest: Manifest) -> Manifest:
    """Return a pod's manifest that hides from the scheduler what the pod will take."""
    manifest["spec"]["containers"][0].pop("resources", None)
    return manifest


def events(client: Client, pod: str) -> str:
    found = client.get("events", f"--field-selector=involvedObject.name={pod}")["items"]
    return "\n".join(event["message"] for event in found)


def phase(client: Client, pod: str) -> str:
    status: str = client.get("pod", pod)["status"]["phase"]
    return status


def delete(client: Client, *pods: str) -> None:
    """Ask for pods' end. They give way at once, but stay in the API until kubelets clear sandboxes away.

    These do so once a minute (pkg/kubelet/kubelet.go, ContainerGCPeriod), and few need to wait for that.
    """
    client.run("delete", "pod", *pods, "--wait=false", "--ignore-not-found", timeout=PATIENCE_SECONDS)


def pods(pair: Testbed) -> list[Manifest]:
    """Return what both APIs know."""
    return [pod for client in pair.clients for pod in client.get("pods")["items"]]


def stays(pod: Manifest) -> bool:
    """Whether nobody has deleted it."""
    return "deletionTimestamp" not in pod["metadata"]


def test_both_apis_have_the_same_workers_with_the_scenarios_subnets(pair: Testbed) -> None:
    for client in pair.clients:
        nodes = {node["metadata"]["name"]: node for node in client.get("nodes")["items"]}
        nodes.pop(pair.scenario.clusters[client.cluster].master, None)  # flanneld needs it too
        assert set(nodes) == {"worker-01", "worker-02"}
        for name, node in nodes.items():
            assert node["spec"]["podCIDR"] == str(pair.addressing.pod_subnet(client.cluster, name))
            assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.20.2"
            assert int(node["status"]["allocatable"]["concorde.contmec.dev/egress"]) > 900_000_000


def test_every_pod_has_the_address_that_its_api_tells(pair: Testbed, a: Client, b: Client) -> None:
    for name, pod in pair.pods.items():
        client = a if pair.scenario.pods[name].cluster == "a" else b
        assert client.get("pod", name.lower())["status"]["podIP"] == pod.address
        assert pod.address in pod.run(["ip", "-br", "address", "show", "eth0"]).stdout


def test_pods_of_a_cluster_reach_each_other_across_the_workers(pair: Testbed) -> None:
    for source, destination in (("A-1", "A-4"), ("B-1", "B-2")):
        pair.pods[source].run(["ping", "-c", "1", "-W", "5", pair.pods[destination].address])


def test_requests_are_timed_in_the_pods_networks(pair: Testbed, tmp_path: Path) -> None:
    """By the node's Python: the pods' image has none."""
    (requests,) = [one for one in pair.scenario.requests if one.destination in pair.pods]
    done = transfers.run(plan(pair, [requests], 0.1), tmp_path, lambda _seconds, _rates: None)
    transfer = done.transfers[requests.label]
    assert transfer.error is None
    file = tmp_path / f"{transfer.slug}.sender.csv.gz"
    exchanges = exchanger_of(pair.scenario, requests).read_exchanges(file, requests.count)
    assert {one.status for one in exchanges} == {"answered"}


def test_the_ledgers_are_what_the_manifests_promise(pair: Testbed) -> None:
    promised = {entry["pod"]: entry["guarantee"] for entry in guaranteed(pair, "worker-01")}
    assert promised == {"default/a-1": 50_000_000, "default/a-2": 150_000_000, "default/b-1": 200_000_000}
    assert guaranteed(pair, "worker-02") == []
    assert pair.check() == []


def guaranteed(pair: Testbed, worker: str) -> list[dict[str, Any]]:
    return [entry for entry in ledger(pair.nodes[worker]) if entry["guarantee"]]


def test_containers_are_beside_kubernetes(pair: Testbed, a: Client) -> None:
    assert sorted(pair.containers) == ["container-1", "container-2"]
    container = pair.containers["container-1"]
    assert container.address in container.run(["ip", "-br", "address"]).stdout
    assert container.run(["sh", "-c", "exit 7"], check=False).status == 7
    assert "container" not in a.run("get", "pods", "--all-namespaces").stdout
    listed = component(pair, "containerd of cluster a").place.run(["ctr", "namespaces", "list", "--quiet"])
    assert sorted(listed.stdout.split()) == ["beside-kubernetes", "k8s.io"]


def test_many_pods_come_and_go_in_each_cluster_while_components_are_killed(
    pair: Testbed, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """In the end ledger, addresses and classes are what the two APIs say, and no pod is stuck."""
    api_server = component(pair, "kube-apiserver of cluster a")
    containerd = next(
        one
        for one in pair.orchestrator.components  # type: ignore[union-attr]
        if one.name == "containerd of cluster b" and one.place.name == "worker-02"
    )
    with ThreadPoolExecutor() as pool:
        churning = [pool.submit(create, pair, client) for client in pair.clients]
        until(lambda: created(pair) > len(pair.scenario.pods) + 3)
        for one in (api_server, containerd):
            one.kill()
            one.start()
        address = "https://192.168.56.11:6443/readyz"
        api_server.wait_until_it_answers(address, PATIENCE_SECONDS)
        for one in churning:
            one.result()
    took = until(lambda: not differences(pair), lambda: "\n".join(differences(pair)))
    record_testsuite_property("agreed_after_s", round(took, 1))  # the goal: within a minute
    assert len([pod for pod in pods(pair) if stays(pod)]) == len(pair.scenario.pods) + 2 * CHURNED
    in_parallel(lambda client: delete(client, *churned(client.cluster)), pair.clients)
    until(lambda: not differences(pair), lambda: "\n".join(differences(pair)))
    until(lambda: pair.check() == [], lambda: "\n".join(pair.check()))


def churned(cluster: str) -> dict[str, Pod]:
    return {
        f"churned-{number}": Pod(
            cluster=cluster, node=f"worker-0{number % 2 + 1}", guarantee=1_000_000 * (1 + number % 3)
        )
        for number in range(CHURNED + REPLACED)
    }


def create(pair: Testbed, client: Client) -> None:
    """Create pods in a cluster, delete every fifth while they are coming, and create others instead."""
    wanted = churned(client.cluster)
    scenario = with_pods(pair.scenario, wanted)
    rendered = [manifests.pod(scenario, pair.enforcement, name) for name in wanted]
    middle = CHURNED // 2
    for half in (range(middle), range(middle, CHURNED)):
        insist(partial(client.apply, [rendered[number] for number in half]))
        unwanted = [rendered[number]["metadata"]["name"] for number in half if number % 5 == 0]
        insist(partial(delete, client, *unwanted))
    insist(partial(client.apply, rendered[CHURNED:]))


def insist(action: Callable[[], object]) -> None:
    """Do something that an API server may be away for."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            action()
            return
        except CommandError:
            assert time.monotonic() < deadline


def created(pair: Testbed) -> int:
    return sum(len(ledger(node)) for name, node in pair.nodes.items() if name.startswith("worker"))


def differences(pair: Testbed) -> list[str]:
    """Return, in words, in what the workers are not what the two APIs say."""
    found: list[str] = []
    told: dict[str, set[tuple[str, str, str]]] = {"worker-01": set(), "worker-02": set()}
    for client in pair.clients:
        for pod in filter(stays, client.get("pods")["items"]):
            name, status = pod["metadata"]["name"], pod["status"]
            if status["phase"] != "Running" or "podIP" not in status:
                found.append(f"{client.cluster} {name}: {status['phase']}")
                continue
            told[pod["spec"]["nodeName"]].add((f"cluster-{client.cluster}", name, status["podIP"]))
    for worker, expected in told.items():
        node = pair.nodes[worker]
        entries = ledger(node)
        has = {(e["network"], e["pod"].removeprefix("default/"), e["address"]) for e in entries}
        found += [
            f"{worker}: {'not ' if one in expected else ''}in the ledger: {one}" for one in has ^ expected
        ]
        classes = node.run(["tc", "class", "show", "dev", "eth0"]).stdout.count("parent c0de:1 ")
        promised = sum(1 for entry in entries if entry["guarantee"])
        if classes != promised + 2:  # and those of the reserve and of best effort
            found.append(f"{worker}: {classes} classes for {promised} promises")
        elements = node.run(["nft", "list", "map", "ip", "concorde", "promises"]).stdout.count(" : c0de:")
        if elements != promised:
            found.append(f"{worker}: {elements} elements for {promised} promises")
    return found


@pytest.mark.parametrize("place", ["A-1", "container-1"])
def test_what_is_killed_ends_in_its_container_too(pair: Testbed, tmp_path: Path, place: str) -> None:
    out = tmp_path / "out"
    words = ["sh", "-c", "echo begun; exec sleep 987654"]
    process = pair.place(place).start(words, stdout=out, stderr=tmp_path / "err")
    until(lambda: "begun" in out.read_text())
    assert len(sleeping()) == 1
    process.kill()
    until(lambda: sleeping() == [])


def sleeping() -> list[str]:
    """Return the processes of that command, wherever on this machine."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (directory / "cmdline").read_bytes() == b"sleep\0987654\0":
                found.append(directory.name)
    return found


def test_a_pod_that_no_longer_fits_waits_and_says_why_until_there_is_room(
    pair: Testbed, a: Client, b: Client
) -> None:
    """Cluster b takes what is left of worker-01; its scheduler cannot know, but the ledger does."""
    large = unlimited(render(pair, "large", Pod(cluster="b", node="worker-01", guarantee=500_000_000)))
    late = unlimited(render(pair, "late", Pod(cluster="a", node="worker-01", guarantee=100_000_000)))
    b.apply([large])
    b.wait_until_ready(["large"], PATIENCE_SECONDS)
    a.apply([late])
    until(lambda: "no room for a guarantee of 100 Mbit/s on eth0" in events(a, "late"))
    words = events(a, "late")
    assert "are free; held by" in words
    assert "cluster-b 723" in words or "cluster-b" in words
    assert "cluster-b default/large 517" in words
    assert phase(a, "late") == "Pending"
    assert "default/late" not in {entry["pod"] for entry in ledger(pair.nodes["worker-01"])}
    delete(b, "large")
    until(lambda: phase(a, "late") == "Running", lambda: events(a, "late"))
    delete(a, "late")


def test_a_pod_that_asks_for_more_than_any_node_has_is_not_placed(pair: Testbed, a: Client) -> None:
    a.apply([render(pair, "huge", Pod(cluster="a", node="worker-01", guarantee=2_000_000_000))])
    until(lambda: "Insufficient concorde.contmec.dev/egress" in events(a, "huge"))
    assert "nodeName" not in a.get("pod", "huge")["spec"]
    delete(a, "huge")


def test_a_component_that_ends_is_a_fault_with_its_name(pair: Testbed) -> None:
    scheduler = component(pair, "kube-scheduler of cluster b")
    scheduler.kill()
    (fault,) = pair.check()
    assert fault.startswith("kube-scheduler of cluster b on master-02 ended with 137: ")
    scheduler.start()
    assert pair.check() == []


def test_no_pod_that_was_deleted_is_stuck(pair: Testbed) -> None:
    """The last of these tests: kubelets clear away once a minute what all of them have left."""
    until(lambda: len(pods(pair)) == len(pair.scenario.pods))
