"""The runtime's side of CNI, against a node that records what it is asked to run."""

import json
from base64 import b64decode
from typing import Any

import pytest

from testbed.access.place import Result
from testbed.runtime.cni import (
    RESULTS,
    Attached,
    Attachment,
    CniError,
    NetworkList,
    Runtime,
    attachments,
    cached,
    cached_name,
)
from tests.doubles import Asked, RecordingNode, in_turn, said, shown

NETWORK = NetworkList(
    "net", [{"type": "one", "capabilities": {"bandwidth": True, "other": False}}, {"type": "two"}]
)
ATTACHMENT = Attachment("c1", "/run/netns/p", capabilities={"bandwidth": {"EgressRate": 1}, "other": 2})


def answering(*results: Result) -> RecordingNode:
    return RecordingNode(answer=in_turn(results))


def calls(node: RecordingNode) -> list[tuple[str, dict[str, Any], dict[str, str]]]:
    """Return which plugins were called, with their configurations and environments."""
    return [(asked.argv[4], json.loads(asked.stdin), asked.env) for asked in node.asked]


def test_add_hands_each_plugin_the_result_of_the_one_before() -> None:
    node = answering(shown({"ips": [1]}), shown({"ips": [1], "more": 2}))
    assert Runtime(node, ["/bin"]).add(NETWORK, ATTACHMENT) == {"ips": [1], "more": 2}
    (first, one, env), (second, two, _) = calls(node)
    assert (first, second) == ("one", "two")
    assert one == {
        "type": "one",
        "name": "net",
        "cniVersion": "1.0.0",
        "runtimeConfig": {"bandwidth": {"EgressRate": 1}},
    }
    assert two == {"type": "two", "name": "net", "cniVersion": "1.0.0", "prevResult": {"ips": [1]}}
    assert env["CNI_COMMAND"] == "ADD"
    assert env["CNI_NETNS"] == "/run/netns/p"
    assert env["CNI_IFNAME"] == "eth0"


def test_delete_goes_backwards_with_the_final_result() -> None:
    node = answering(shown(None), shown(None))
    Runtime(node, ["/bin"]).delete(NETWORK, ATTACHMENT, {"ips": []})
    assert [name for name, _, _ in calls(node)] == ["two", "one"]
    assert all(stdin["prevResult"] == {"ips": []} for _, stdin, _ in calls(node))


def test_a_refusal_ends_the_chain_with_the_plugins_words() -> None:
    node = answering(Result(1, json.dumps({"code": 7, "msg": "no room", "details": "3 of 3 used"}), ""))
    with pytest.raises(CniError, match=r'plugin type="one" failed \(add\): no room: 3 of 3 used'):
        Runtime(node, ["/bin"]).add(NETWORK, ATTACHMENT)
    assert len(calls(node)) == 1


def test_a_crash_is_reported_with_what_it_said() -> None:
    node = answering(Result(127, "", "no plugin one in /bin\n"))
    with pytest.raises(CniError, match="no plugin one in /bin"):
        Runtime(node, ["/bin"]).add(NETWORK, ATTACHMENT)


def test_what_is_kept_of_an_attachment_is_what_libcni_keeps() -> None:
    info = json.loads(cached(NETWORK, ATTACHMENT, {"ips": []}))
    assert {key: info[key] for key in ("kind", "containerId", "ifName", "networkName", "result")} == {
        "kind": "cniCacheV1",
        "containerId": "c1",
        "ifName": "eth0",
        "networkName": "net",
        "result": {"ips": []},
    }
    assert json.loads(b64decode(info["config"]))["plugins"] == NETWORK.plugins
    assert info["capabilityArgs"] == ATTACHMENT.capabilities
    assert cached_name(NETWORK, ATTACHMENT) == "net-c1-eth0"


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
CLUSTER_NETWORK = NetworkList("cluster-a", [{"type": "concorde", "capabilities": {"bandwidth": True}}])


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
    assert Attached(cell, CACHED).complaint(CLUSTER_NETWORK, ["/opt/cni/bin"]) is None
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
    complaint = attached.complaint(CLUSTER_NETWORK, ["/opt/cni/bin"])
    assert complaint == 'plugin type="concorde" failed (check): no class 1:1 on eth0'


def test_a_pod_that_goes_while_it_is_looked_for_is_left_out() -> None:
    def answer(asked: Asked) -> Result:
        assert asked.argv[-1] == RESULTS
        return said(f"\n{json.dumps(CACHED)}\n")

    assert [one.cached for one in attachments(RecordingNode(answer=answer))] == [CACHED]
