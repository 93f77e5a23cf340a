"""An overlay by misses with real Kubernetes: what nodes tell each other is annotations of its Nodes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from testbed.scenario import load
from testbed.testbed import Testbed
from tests.e2e.conftest import SCENARIOS, brought_up, until

ANNOTATION = "flannel.alpha.coreos.com/"
DIRECTORY = "/run/kubernetes/a"


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    with brought_up(load(SCENARIOS / "contmec.yaml", ["clusters.a.backend=vxlan-miss"], scale=0.05)) as made:
        yield made


def written(testbed: Testbed) -> dict[str, dict[str, str]]:
    (client,) = [one for one in testbed.clients if one.cluster == "a"]
    nodes = {one["metadata"]["name"]: one["metadata"]["annotations"] for one in client.get("nodes")["items"]}
    return {
        node: {key.removeprefix(ANNOTATION): text for key, text in all_.items() if key.startswith(ANNOTATION)}
        for node, all_ in nodes.items()
    }


def vtep(testbed: Testbed, node: str) -> dict[str, Any]:
    found: list[dict[str, Any]]
    found = testbed.nodes[node].run(["ip", "-j", "link", "show", "dev", "flannel.1"]).json()
    return found[0]


def test_annotations_are_those_that_flannel_writes(testbed: Testbed) -> None:
    assert written(testbed)["worker-01"] == {
        "public-ip": "192.168.56.13",
        "backend-type": "vxlan",
        "backend-data": json.dumps({"VtepMAC": vtep(testbed, "worker-01")["address"]}),
        "kube-subnet-manager": "true",
    }
    assert set(written(testbed)) == {"master-01", "worker-01", "worker-02"}


def test_pods_reach_each_other_once_the_kernels_have_asked(testbed: Testbed) -> None:
    source, destination = testbed.pods["A-1"], testbed.pods["A-4"]
    source.run(["ping", "-c", "1", "-W", "10", "-w", "20", destination.address])
    known = testbed.nodes["worker-01"].run(["ip", "-j", "neigh", "show", destination.address]).json()
    assert [one["lladdr"] for one in known] == [vtep(testbed, "worker-02")["address"]]
    assert testbed.check() == []


def test_a_resolver_may_write_its_own_node_and_read_all(testbed: Testbed) -> None:
    (client,) = [one for one in testbed.clients if one.cluster == "a"]
    asked = {
        "list nodes": "yes",
        "watch nodes": "yes",
        "get nodes/worker-01": "no",
        "patch nodes/worker-01": "no",
        "patch nodes/worker-01 --subresource=status": "yes",
        "patch nodes/worker-02 --subresource=status": "no",
        "list pods": "no",
        "list secrets": "no",
    }
    told = {
        words: client.run("auth", "can-i", *words.split(), "--as=overlay:worker-01", check=False)
        for words in asked
    }
    assert {words: one.stdout.strip() for words, one in told.items()} == asked


def test_annotations_that_somebody_changed_are_put_right(testbed: Testbed) -> None:
    (client,) = [one for one in testbed.clients if one.cluster == "a"]
    before = written(testbed)["worker-02"]
    client.run("annotate", "node", "worker-02", "--overwrite", f"{ANNOTATION}public-ip=192.168.56.99")
    until(lambda: written(testbed)["worker-02"] == before)
    until(lambda: testbed.check() == [])
