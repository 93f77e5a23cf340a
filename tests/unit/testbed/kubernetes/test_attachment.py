"""What libcni keeps of a pod's attachment, read from a node."""

from __future__ import annotations

import json
from typing import Any

import pytest

from testbed.access.place import Result
from testbed.kubernetes.attachment import Attached, read_results
from testbed.kubernetes.worker import RESULTS
from testbed.runtime.cni import NetworkList
from tests.doubles import Asked, RecordingNode, said, shown

CACHED: dict[str, Any] = {
    "containerId": "0123",
    "ifName": "eth0",
    "networkName": "cluster-a",
    "cniArgs": [["IgnoreUnknown", "1"], ["K8S_POD_NAME", "a-1"]],
    "capabilityArgs": {"bandwidth": {"EgressRate": 1}},
    "result": {
        "interfaces": [
            {"name": "cni-a"},
            {"name": "veth1"},
            {"name": "eth0", "sandbox": "/var/run/netns/cni-1"},
        ],
        "ips": [{"address": "172.16.1.2/24", "interface": 2}],
    },
}
NETWORK = NetworkList("cluster-a", [{"type": "concorde", "capabilities": {"bandwidth": True}}])


@pytest.fixture
def cell() -> RecordingNode:
    return RecordingNode()


def test_what_is_kept_says_where_a_pod_is(cell: RecordingNode) -> None:
    attached = Attached(cell, CACHED)
    assert attached.address == "172.16.1.2"
    assert attached.namespace == "/var/run/netns/cni-1"
    assert attached.host_interface == "veth1"
    assert attached.arguments == {"IgnoreUnknown": "1", "K8S_POD_NAME": "a-1"}


def test_the_plugin_checks_a_pod_as_it_was_attached(cell: RecordingNode) -> None:
    assert Attached(cell, CACHED).complaint(NETWORK, ["/opt/cni/bin"]) is None
    (asked,) = cell.asked
    assert asked.env["CNI_COMMAND"] == "CHECK"
    assert asked.env["CNI_CONTAINERID"] == "0123"
    assert asked.env["CNI_NETNS"] == "/var/run/netns/cni-1"
    assert asked.env["CNI_ARGS"] == "IgnoreUnknown=1;K8S_POD_NAME=a-1"
    configuration = json.loads(asked.stdin)
    assert configuration["prevResult"] == CACHED["result"]
    assert configuration["runtimeConfig"] == {"bandwidth": {"EgressRate": 1}}


def test_what_the_plugin_finds_wrong_is_said() -> None:
    refusal = Result(1, json.dumps({"code": 106, "msg": "no class 1:1 on eth0"}), "")
    attached = Attached(RecordingNode(answer=lambda _: refusal), CACHED)
    complaint = attached.complaint(NETWORK, ["/opt/cni/bin"])
    assert complaint == 'plugin type="concorde" failed (check): no class 1:1 on eth0'


def test_a_pod_that_goes_while_it_is_looked_for_is_left_out() -> None:
    files = [f"{RESULTS}/cluster-a-{number}-eth0" for number in range(2)]

    def answer(asked: Asked) -> Result:
        match asked.argv:
            case ["find", directory, *_]:
                assert directory == RESULTS
                return said("\n".join(files))
            case ["cat", file] if file == files[1]:
                return shown(CACHED)
        return Result(1, "", "No such file or directory")

    assert list(read_results(RecordingNode(answer=answer))) == [CACHED]
