from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concorde.cni import INVALID_CONFIGURATION, TRY_AGAIN, CniError
from concorde.networks import definitions
from concorde.networks.selection import Selection
from concorde.networks.settings import Settings

CAPABILITY = "io.kubernetes.cri.pod-annotations"


class Node:
    """Where definitions and the runtime's lists are."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        (directory / "default").mkdir()
        self.file = directory / "default" / "a.json"
        self.settings = Settings({"name": "x", "definitionsDir": str(directory), "confDir": str(directory)})

    def plugins(
        self, config: object, given: dict[str, Any] | None = None, **asked: object
    ) -> list[dict[str, Any]]:
        text = config if isinstance(config, str) else json.dumps(config)
        self.file.write_text(json.dumps({"spec": {"config": text}}))
        return self.asked(given, **asked)

    def asked(self, given: dict[str, Any] | None = None, **asked: object) -> list[dict[str, Any]]:
        one = Selection("networks[0]", "default", "a", "net1")
        one.asked = asked
        return definitions.plugins(one, self.settings, "1.0.0", given or {})


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_single_plugin_and_a_list(node: Node) -> None:
    one = {"type": "bridge", "cniVersion": "0.3.1", "name": "b"}
    assert node.plugins(one) == [one]
    listed = {"cniVersion": "0.4.0", "plugins": [{"type": "bridge"}, {"type": "tuning"}]}
    whole = {"cniVersion": "0.4.0", "name": "a"}
    assert node.plugins(listed) == [{"type": "bridge", **whole}, {"type": "tuning", **whole}]


def test_an_empty_configuration_is_a_file_of_that_name(node: Node) -> None:
    (node.directory / "10-other.conf").write_text('{"name": "other", "type": "x"}')
    (node.directory / "20-a.conflist").write_text('{"name": "a", "plugins": [{"type": "y"}]}')
    assert [one["type"] for one in node.plugins("")] == ["y"]


def test_a_capability_goes_to_who_declares_it(node: Node) -> None:
    plugins = [
        {"type": "bridge", "capabilities": {"ips": True}},
        {"type": "tuning", "capabilities": {"mac": True}},
    ]
    first, second = node.plugins({"plugins": plugins}, ips=["10.0.0.5/24"], mac="02:00:00:00:00:01")
    assert first["runtimeConfig"] == {"ips": ["10.0.0.5/24"]}
    assert second["runtimeConfig"] == {"mac": "02:00:00:00:00:01"}


def test_annotations_of_ours_are_for_the_interface_that_they_name(node: Node) -> None:
    ours = {"type": "concorde", "capabilities": {CAPABILITY: True}}
    name = "concorde.contmec.dev/egress-guarantee"
    (one,) = node.plugins(ours, {name: "1G", f"{name}.net1": "20M", f"{name}.net2": "60M", "other": "x"})
    assert one["runtimeConfig"] == {CAPABILITY: {name: "20M", "other": "x"}}


def test_one_that_is_missing_may_come(node: Node) -> None:
    with pytest.raises(
        CniError, match=r"networks\[0\]: there is no NetworkAttachmentDefinition default/a"
    ) as raised:
        node.asked()
    assert raised.value.code == TRY_AGAIN


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ("{", "spec.config: is not valid JSON"),
        ("[]", "spec.config: "),
        ({}, "spec.config.type: "),
        ({"type": "../../bin/sh"}, "spec.config.type: "),
        ({"type": "concorde-networks"}, "spec.config.type: "),
        ({"type": "x", "cniVersion": "9"}, "spec.config.cniVersion: "),
        ({"type": "x", "name": "/"}, "spec.config.name: "),
        ({"plugins": []}, "spec.config.plugins: "),
        ({"plugins": [{"type": "x"}, 7]}, "spec.config.plugins[1]: "),
        ({"plugins": [{"type": "x"}, {"type": 7}]}, "spec.config.plugins[1].type: "),
        ("", "spec.config: is empty, and no file"),
    ],
)
def test_a_mistake_is_named_with_its_path(node: Node, config: object, path: str) -> None:
    with pytest.raises(CniError) as raised:
        node.plugins(config)
    assert raised.value.code == INVALID_CONFIGURATION
    assert raised.value.msg.startswith(f"{node.file}: {path}"), raised.value.msg


def test_a_capability_that_nobody_declares_is_refused_where_it_was_asked(node: Node) -> None:
    with pytest.raises(CniError, match=r"^networks\[0\].mac: no plugin of .* declares this capability"):
        node.plugins({"type": "bridge", "capabilities": {"ips": True}}, mac="02:00:00:00:00:01")


def test_a_promise_is_refused_where_nobody_would_keep_it(node: Node) -> None:
    given = {"concorde.contmec.dev/egress-guarantee.net1": "1M"}
    ours: dict[str, Any] = {"type": "concorde", "capabilities": {CAPABILITY: True}}
    for config in ({"type": "bridge", "capabilities": {CAPABILITY: True}}, {"type": "concorde"}):
        with pytest.raises(CniError, match=r"egress-guarantee\.net1.*nobody would keep it") as caught:
            node.plugins(config, given)
        assert caught.value.code == INVALID_CONFIGURATION
    (_, last) = node.plugins({"plugins": [{"type": "bridge"}, ours]}, given)
    assert last["runtimeConfig"] == {CAPABILITY: {"concorde.contmec.dev/egress-guarantee": "1M"}}
    assert node.plugins({"type": "bridge"}, {"concorde.contmec.dev/egress-guarantee.net2": "1M"})
