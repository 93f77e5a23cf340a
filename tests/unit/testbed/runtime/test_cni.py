"""The runtime's side of CNI, against a node that records what it is asked to run."""

import json
from base64 import b64decode
from typing import Any

import pytest

from testbed.access.place import Result
from testbed.runtime.cni import Attachment, CniError, NetworkList, Runtime, cached, cached_name
from tests.doubles import RecordingNode, in_turn, shown

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
