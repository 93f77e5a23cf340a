"""What is understood of a runtime's cache."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from concorde import cache
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.examples import json_values

PLUGIN = {"type": "concorde", "bridge": "cni-a", "capabilities": {"bandwidth": True, "other": False}}


def kept(plugins: list[Any], **keys: Any) -> bytes:
    network = {"cniVersion": "1.0.0", "name": "net", "plugins": plugins}
    whole = {
        "kind": "cniCacheV1",
        "containerId": "c1",
        "ifName": "eth0",
        "networkName": "net",
        "config": b64encode(json.dumps(network).encode()).decode(),
        "cniArgs": [["K8S_POD_NAMESPACE", "default"], ["K8S_POD_NAME", "a"]],
        "capabilityArgs": {"bandwidth": {"egressRate": 5}, "other": 1, "undeclared": 2},
        "result": {"ips": [{"address": "10.0.0.2/24"}]},
    }
    return json.dumps({**whole, **keys}).encode()


def test_the_plugin_is_given_what_the_runtime_gave_it() -> None:
    (one,) = cache.attachments(kept([PLUGIN]), "path")
    assert one.document == {
        "type": "concorde",
        "bridge": "cni-a",
        "cniVersion": "1.0.0",
        "name": "net",
        "runtimeConfig": {"bandwidth": {"egressRate": 5}},
    }
    assert (one.container, one.interface, one.pod, one.follows) == ("c1", "eth0", "default/a", False)
    assert one.addresses == ["10.0.0.2/24"]


def test_in_a_chain_it_follows_the_result() -> None:
    (one,) = cache.attachments(kept([{"type": "ptp"}, PLUGIN]), "path")
    assert one.follows
    assert one.document["prevResult"] == {"ips": [{"address": "10.0.0.2/24"}]}


def test_what_is_another_plugins_is_left_out() -> None:
    assert cache.attachments(kept([{"type": "ptp"}]), "path") == []
    assert cache.attachments(kept([PLUGIN], kind="other"), "path") == []


@pytest.mark.parametrize("keys", [{"config": "?"}, {"containerId": "a b"}, {"config": None}, {"ifName": "/"}])
def test_what_is_malformed_is_told_by_its_path(tmp_path: Path, keys: dict[str, Any]) -> None:
    (tmp_path / "net-c1-eth0").write_bytes(kept([PLUGIN], **keys))
    (tmp_path / "net-c2-eth0").write_bytes(kept([PLUGIN]))
    found, faults = cache.read([str(tmp_path), str(tmp_path / "gone")])
    assert len(found) == 1
    assert [str(tmp_path) in fault for fault in faults] == [True, True]


@given(st.binary(max_size=50) | json_values.map(lambda value: json.dumps(value).encode()))
def test_nothing_in_a_cache_is_a_bug(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    directory = tmp_path_factory.mktemp("cache")
    (directory / "one").write_bytes(content)
    (directory / "two").write_bytes(kept([PLUGIN], config=b64encode(content).decode()))
    cache.read([str(directory)])


def test_a_record_of_further_interfaces_tells_what_this_plugin_attached() -> None:
    end = {"name": "net1", "sandbox": "/run/netns/x"}
    answer = {"interfaces": [end], "ips": [{"address": "10.10.0.2/24"}]}
    ours = {"type": "concorde", "name": "plant"}
    networks: list[dict[str, Any]] = [
        {"interface": "net1", "plugins": [{"type": "bridge"}, ours], "results": [answer, answer]},
        {"interface": "net2", "plugins": [ours], "results": []},  # its ADD did not end
    ]
    record = {"container": "A-1", "interface": "eth0", "pod": "default/a", "networks": networks}
    (kept,) = cache.attachments(json.dumps(record).encode(), "file")
    assert vars(kept) == {
        "document": {**ours, "prevResult": answer},
        "follows": True,
        "container": "A-1",
        "interface": "net1",
        "pod": "default/a",
        "addresses": ["10.10.0.2/24"],
        "path": "file",
        "netns": "/run/netns/x",
        "uid": "",
        "is_further": True,
    }
