"""Nodes of different sizes on real Kubernetes: the scenario's blocks, and a worker that waits for one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from ipaddress import IPv4Address, IPv4Network
from typing import Any

import pytest

from testbed.access.place import Place
from testbed.kubernetes import manifests
from testbed.kubernetes.client import Client, is_ready
from testbed.scenario import Pod, Scenario, blocks
from testbed.testbed import Testbed
from tests.e2e.conftest import PATIENCE_SECONDS, brought_up, until

pytestmark = pytest.mark.alone  # one of them judges a time, and they share a cluster
READY_SECONDS = 10.0  # from the config that a worker waited for until the worker is ready
KIOSK = {"name": "kiosk", "cidr": "172.16.40.0/26", "mask": 29, "nodes": {"size": "kiosk"}}


BACKENDS = ("vxlan", "vxlan-miss", "host-gw", "bgp")  # that this machine runs


def scenario(*more: dict[str, Any], backend: str = "vxlan", **waits: str) -> Scenario:
    """Return a cluster with a /24 and a /27, and a worker for which there may be a range."""
    large = {"name": "large", "cidr": "172.16.0.0/23", "mask": 24}
    small = {"name": "small", "cidr": "172.16.32.0/24", "mask": 27, "nodes": {"size": "small"}}
    return Scenario.model_validate(
        {
            "name": "blocks",
            "nodes": {
                "master-01": None,
                # Not in the order of their names, in which a controller would take them that comes later.
                "worker-03": None,
                "worker-02": {"labels": {"size": "small"}},
                "worker-01": {"labels": {"size": "kiosk"}, **waits},
            },
            "clusters": {
                "a": {
                    "master": "master-01",
                    "workers": ["worker-03", "worker-02", "worker-01"],
                    "backend": backend,
                    "pod_cidrs": [large, small, *more],
                }
            },
            "enforcement": "pod",
            "pods": {
                "A-1": {"cluster": "a", "node": "worker-03", "guarantee": "10M"},
                "A-2": {"cluster": "a", "node": "worker-02"},
            },
            "flows": [{"from": "A-1", "to": "A-2"}],
        }
    )


@pytest.fixture(scope="module")
def sizes() -> Iterator[Testbed]:
    with brought_up(scenario(expect="unassigned")) as testbed:
        yield testbed


def nodes(client: Client) -> dict[str, Any]:
    return {node["metadata"]["name"]: node for node in client.get("nodes")["items"]}


def test_nodes_have_the_scenarios_blocks_and_who_has_none_waits_and_is_told_why(sizes: Testbed) -> None:
    (client,) = sizes.clients
    found = nodes(client)
    given = {name: node["spec"].get("podCIDR") for name, node in found.items()}
    said = {name: str(block) for name, block in sizes.addressing.blocks("a").given.items()}
    assert given == {**said, "worker-01": None}
    assert said == {
        "master-01": "172.16.0.0/24",
        "worker-03": "172.16.1.0/24",
        "worker-02": "172.16.32.0/27",
    }
    assert [name for name in found if is_ready(found[name])] == ["worker-02", "worker-03"]
    (waits,) = [one for one in found["worker-01"]["status"]["conditions"] if one["type"] == "Ready"]
    assert "cni" in waits["message"]
    events = client.get("events", "--all-namespaces", "--field-selector=involvedObject.name=worker-01")
    assert [one["reason"] for one in events["items"]].count("CIDRNotAvailable") == 1
    sizes.pods["A-1"].run(["ping", "-c", "1", "-W", "5", sizes.pods["A-2"].address])
    assert sizes.check() == []


def test_a_config_that_somebody_makes_there_and_nobody_can_use_is_refused(sizes: Testbed) -> None:
    (client,) = sizes.clients
    (entry,) = [one for one in scenario(KIOSK).clusters["a"].pod_cidrs or () if one.name == "kiosk"]
    bad = blocks.manifest(entry)
    bad["spec"]["ipv4"]["perNodeMaskSize"] = 25
    told = client.run("create", "--filename=-", stdin=json.dumps(bad), check=False).stderr
    assert "spec.ipv4.perNodeMaskSize: Invalid value: 25: must be an integer from 26" in told


def wait_for_its_block(up: Testbed) -> float:
    """Make the range that a worker waits for; return how long it then takes to be ready, in seconds."""
    (client,) = up.clients
    (entry,) = [one for one in scenario(KIOSK).clusters["a"].pod_cidrs or () if one.name == "kiosk"]
    begin = time.monotonic()
    client.apply([blocks.manifest(entry)])
    client.run("wait", "--for=condition=Ready", "--timeout=120s", "node/worker-01")
    return time.monotonic() - begin


def reach_each_other(up: Testbed) -> None:
    """Start a pod on the worker that waited, and see that it reaches the others' and is reached."""
    (client,) = up.clients
    probe = Pod(cluster="a", node="worker-01")
    manifest = manifests.pod(
        scenario().model_copy(update={"pods": {"probe": probe}}), up.enforcement, "probe"
    )
    client.start_pod(manifest, PATIENCE_SECONDS)
    address = client.get("pod", "probe")["status"]["podIP"]
    assert IPv4Address(address) in IPv4Network("172.16.40.0/29")
    for name in ("A-1", "A-2"):
        both = {name.lower(): address, "probe": up.pods[name].address}
        for pod, destination in both.items():
            ping = [*client.execution(pod), "ping", "-c", "1", "-W", "1", destination]
            until(partial(succeeds, client.place, ping))  # BIRDs take a moment to tell each other


def succeeds(place: Place, argv: list[str]) -> bool:
    return place.run(argv, check=False).status == 0


def test_who_waited_is_ready_soon_after_the_config_and_its_pods_are_reached(sizes: Testbed) -> None:
    assert wait_for_its_block(sizes) < READY_SECONDS
    (client,) = sizes.clients
    assert nodes(client)["worker-01"]["spec"]["podCIDR"] == "172.16.40.0/29"
    reach_each_other(sizes)
    assert sizes.check() == []


@pytest.mark.long(one_in=0)  # each boots a cluster
@pytest.mark.parametrize("backend", [name for name in BACKENDS if name != "vxlan"])
def test_who_waited_is_reached_by_every_backend(backend: str) -> None:
    with brought_up(scenario(backend=backend, expect="unassigned")) as up:
        assert wait_for_its_block(up) < READY_SECONDS
        reach_each_other(up)
        assert up.check() == []
