"""The runtime's side of CNI, against a node that records what it is asked to run."""

import json
from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from testbed.access.place import Process, Result
from testbed.networks.cni import Attachment, CniError, NetworkList, Runtime, cached, cached_name


@dataclass
class RecordingNode:
    answers: list[Result]
    name: str = "node"
    cgroup: str = ""
    calls: list[tuple[str, dict[str, Any], dict[str, str]]] = field(default_factory=list)

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        env: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 60,
    ) -> Result:
        self.calls.append((argv[4], json.loads(stdin), dict(env or {})))
        return self.answers.pop(0)

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        raise NotImplementedError

    attach = start


NETWORK = NetworkList(
    "net", [{"type": "one", "capabilities": {"bandwidth": True, "other": False}}, {"type": "two"}]
)
ATTACHMENT = Attachment("c1", "/run/netns/p", capabilities={"bandwidth": {"EgressRate": 1}, "other": 2})


def result(answer: object, status: int = 0) -> Result:
    return Result(status, json.dumps(answer), "")


def test_add_hands_each_plugin_the_result_of_the_one_before() -> None:
    node = RecordingNode([result({"ips": [1]}), result({"ips": [1], "more": 2})])
    assert Runtime(node, ["/bin"]).add(NETWORK, ATTACHMENT) == {"ips": [1], "more": 2}
    (first, one, env), (second, two, _) = node.calls
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
    node = RecordingNode([result(None), result(None)])
    Runtime(node, ["/bin"]).delete(NETWORK, ATTACHMENT, {"ips": []})
    assert [name for name, _, _ in node.calls] == ["two", "one"]
    assert all(stdin["prevResult"] == {"ips": []} for _, stdin, _ in node.calls)


def test_a_refusal_ends_the_chain_with_the_plugins_words() -> None:
    node = RecordingNode([result({"code": 7, "msg": "no room", "details": "3 of 3 used"}, status=1)])
    with pytest.raises(CniError, match=r'plugin type="one" failed \(add\): no room: 3 of 3 used'):
        Runtime(node, ["/bin"]).add(NETWORK, ATTACHMENT)
    assert len(node.calls) == 1


def test_a_crash_is_reported_with_what_it_said() -> None:
    node = RecordingNode([Result(127, "", "no plugin one in /bin\n")])
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
