"""Services of two overlapped clusters on real Kubernetes: its objects, its slices, our proxies and hints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testbed.access.components import Component
from testbed.kubernetes.client import Client
from testbed.orchestrators.own import KubernetesOrchestrator
from testbed.runtime import names
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests import answered
from tests.e2e import served
from tests.e2e.conftest import until

# Prints what an API says of itself; the address, and who vouches for it.
ASK = """
import json, ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
with urllib.request.urlopen(f"https://{sys.argv[1]}/version", timeout=20, context=context) as answer:
    print(answer.read().decode())
"""


@pytest.fixture
def a(pair: Testbed) -> Client:
    return next(client for client in pair.clients if client.cluster == "a")


def proxy(pair: Testbed, node: str) -> Component:
    """Return cluster a's proxy on a node."""
    assert isinstance(pair.orchestrator, KubernetesOrchestrator)
    proxies = [one for one in pair.orchestrator.components if one.name == "services' proxy of cluster a"]
    return next(one for one in proxies if one.place.name == node)


def test_all_connections_are_answered_by_each_endpoint_as_often(pair: Testbed, tmp_path: Path) -> None:
    """How many there are, CONCORDE_CONNECTIONS says; also by UDP, and of whom asks itself."""
    assert pair.check() == []
    asked = [one for one in pair.scenario.requests if one.label != "ask"]
    found = answered.seen(pair, asked, tmp_path / "first")
    if answered.plausibility([found[name] for name in served.EVEN]) <= 0.01:
        found = answered.seen(pair, asked, tmp_path / "again")
    even = [found[name] for name in served.EVEN]
    assert answered.plausibility(even) > 0.01, found
    assert min(map(min, (one.values() for one in even))) > 0
    assert {len([pod for pod in found["by UDP"].values() if pod])} == {3}
    chosen = {name: {pod for pod, count in found[name].items() if count} for name in served.CHOSEN}
    assert {name: len(pods) for name, pods in chosen.items()} == served.CHOSEN
    assert chosen["here"] == {"A-2"}  # which is on worker-01, as who asks
    assert chosen["home"] == {"B-1"}
    print(json.dumps(found))  # noqa: T201 - numbers of a run that somebody has asked for


def test_apis_know_nodes_by_their_zones_and_processors(pair: Testbed, a: Client) -> None:
    nodes = {one["metadata"]["name"]: one for one in a.get("nodes")["items"]}
    cpus = [nodes[name]["status"]["allocatable"]["cpu"] for name in ("worker-01", "worker-02")]
    milli = [int(one[:-1]) if one.endswith("m") else 1000 * int(one) for one in cpus]
    assert milli[0] == 3 * milli[1]
    (hinted,) = a.get("endpointslices", "--selector=kubernetes.io/service-name=near")["items"]
    zones = json.loads(hinted["metadata"]["annotations"]["concorde.contmec.dev/zone-hints"])
    assert sorted(zones.values()) == [["left"], ["left"], ["right"]]
    events = a.get("events", "--field-selector=involvedObject.kind=Service,involvedObject.name=near")["items"]
    assert "TopologyAwareHintsEnabled" in {one["reason"] for one in events}


@pytest.mark.parametrize(("pod", "address"), [("A-1", "10.96.0.1"), ("B-2", "10.97.0.1")])
def test_pods_reach_their_own_api_at_its_service(pair: Testbed, pod: str, address: str) -> None:
    cluster = pair.scenario.pods[pod].cluster
    authority = f"/run/kubernetes/{cluster}/services-proxy/authority.crt"
    told = pair.networks[pod].run(["/usr/bin/python3", "-IS", "-c", ASK, address, authority]).json()
    assert told["gitVersion"] == "v1.20.2"


def asked(pair: Testbed, pod: str, name: str) -> str:
    """Return what a pod is told of a name; nothing if there is no such name."""
    done = pair.pods[pod].run(["getent", "hosts", name], check=False)
    assert done.status in (0, 2), done.stderr
    return " ".join(done.stdout.split())


def test_pods_find_services_of_their_cluster_by_name(pair: Testbed, a: Client) -> None:
    if lacking := list(packages.missing(names.PACKAGE)):
        pytest.skip(lacking[0])
    written = pair.pods["A-1"].run(["cat", "/etc/resolv.conf"]).stdout
    assert written == names.resolv_conf(pair.addressing, "a")
    web = "near.default.svc.cluster.local"
    assert asked(pair, "A-1", "near") == f"{pair.addressing.service('near')} {web}"
    assert asked(pair, "B-1", web) == ""
    # On one worker, one name of two clusters.
    for pod, address in (("A-1", "10.96.0.1"), ("B-1", "10.97.0.1")):
        assert asked(pair, pod, "kubernetes") == f"{address} kubernetes.default.svc.cluster.local"
    passing = {"metadata": {"name": "passing", "namespace": "default"}, "spec": {"ports": [{"port": 80}]}}
    a.apply([{"apiVersion": "v1", "kind": "Service", **passing}])
    until(lambda: asked(pair, "A-1", "passing") != "")
    a.run("delete", "service", "passing")
    until(lambda: asked(pair, "A-1", "passing") == "")


def test_a_pod_that_goes_is_no_endpoint_and_one_that_comes_is(pair: Testbed) -> None:
    """Of which rules a node has, and which it should, ``check`` tells."""
    gone = pair.pods["A-3"].address
    pair.remove("A-3")
    until(lambda: pair.check() == [], lambda: "\n".join(pair.check()))
    listed = pair.nodes["worker-01"].run(["nft", "list", "map", "ip", "services-a", "endpoints"]).stdout
    assert gone not in listed
    pair.add("A-3")
    until(lambda: pair.check() == [], lambda: "\n".join(pair.check()))
    listed = pair.nodes["worker-01"].run(["nft", "list", "map", "ip", "services-a", "endpoints"]).stdout
    assert pair.pods["A-3"].address in listed


def test_a_proxy_that_ends_is_a_fault_and_the_next_goes_on_with_its_rules(pair: Testbed) -> None:
    node, one = pair.nodes["worker-01"], proxy(pair, "worker-01")
    one.kill()
    node.run(["nft", "delete", "table", "ip", "services-a"])
    faults = pair.check()
    assert faults[0].startswith("services' proxy of cluster a on worker-01 ended with 137: ")
    one.start()
    until(lambda: pair.check() == [], lambda: "\n".join(pair.check()))
