from __future__ import annotations

import json
from pathlib import Path

import pytest
from concorde.cni import CniError
from concorde.networks import gateways, translation
from concorde.networks.translation import FORWARD

PATH = f'runtimeConfig["io.kubernetes.cri.pod-annotations"]["{FORWARD}"]'
DECLARED = [{"protocol": "TCP", "port": 80, "address": "10.0.0.9", "targetPort": 8080}]
BRIDGE = {"type": "bridge", "name": "b", "bridge": "eb", "isGateway": True}
RESULT = {"ips": [{"address": "10.10.0.2/24"}, {"address": "fd00::2/64"}]}
RECORD = {
    "host": ["cni-a"],
    "cluster": ["172.16.0.0/16"],
    "segments": [],
    "forward": DECLARED,
    "networks": [{"interface": "net1", "plugins": [BRIDGE], "results": [RESULT]}],
}


def test_what_is_left_out_is_tcp_and_the_same_port() -> None:
    (one,) = translation.forwards('[{"port": 80, "address": "10.0.0.9"}]')
    assert one.document == {"protocol": "TCP", "port": 80, "address": "10.0.0.9", "targetPort": 80}
    assert translation.forwards(None) == translation.forwards("[]") == []


@pytest.mark.parametrize(
    ("given", "path"),
    [
        (7, ": "),
        ("[", ": is not valid JSON"),
        ("{}", ": "),
        ("[7]", "[0]: "),
        ('[{"port": 0, "address": "10.0.0.9"}]', "[0].port: "),
        ('[{"port": 65536, "address": "10.0.0.9"}]', "[0].port: "),
        ('[{"port": true, "address": "10.0.0.9"}]', "[0].port: "),
        ('[{"port": 80, "address": "10.0.0"}]', "[0].address: "),
        ('[{"port": 80}]', "[0].address: "),
        ('[{"port": 80, "address": "10.0.0.9", "targetPort": "80"}]', "[0].targetPort: "),
        ('[{"port": 80, "address": "10.0.0.9", "protocol": "SCTP"}]', "[0].protocol: "),
        ('[{"port": 80, "address": "10.0.0.9", "rate": 1}]', "[0].rate: is not supported"),
        (json.dumps(DECLARED * 2), "[1].port: TCP port 80 is given twice"),
    ],
)
def test_a_mistake_is_named_with_its_path(given: object, path: str) -> None:
    with pytest.raises(CniError) as raised:
        translation.forwards(given)
    assert raised.value.msg.startswith(PATH + path), raised.value.msg


def test_the_node_is_open_for_those_attached_alone() -> None:
    text = gateways.table([RECORD])
    assert 'elements = { "eb" };' in text
    assert '"eb" . 10.10.0.2 . 10.0.0.9 . tcp . 8080' in text
    assert "set attached { type ifname . ipv4_addr; }" in text  # no more than what is declared
    relay = {**RECORD, "forward": [], "segments": ["10.0.0.0/24"]}
    assert '"eb" . 10.10.0.2 };' in gateways.table([relay])
    assert gateways.table([{**relay, "reach": DECLARED}]) == gateways.table([{**relay, "forward": DECLARED}])


@pytest.mark.parametrize(
    ("plugin", "named"),
    [
        ({"type": "bridge", "isDefaultGateway": True}, '"cni0"'),
        ({"type": "concorde", "name": "x"}, '"cni-x"'),
        ({"type": "bridge", "bridge": "eb"}, None),
        ({"type": "bridge", "bridge": "cni-a", "isGateway": True}, None),
        ({"type": "macvlan"}, None),
    ],
)
def test_a_network_that_no_gateway_has_closes_nothing(plugin: dict[str, object], named: str | None) -> None:
    network = {"interface": "net1", "plugins": [plugin], "results": [RESULT]}
    text = gateways.table([{**RECORD, "forward": [], "networks": [network]}])
    assert (named or "delete table") in text
    assert ("chain forward" in text) == (named is not None)


def test_a_list_is_named_within_its_namespace_alone() -> None:
    assert translation.kept_at("@cam", "/run/forwards", "default") == "/run/forwards/default/cam.json"
    assert translation.kept_at("[]", "/run/forwards", "default") == ""
    for bad in ("@", "@../cam", "@a/b"):
        with pytest.raises(CniError) as raised:
            translation.kept_at(bad, "/run/forwards", "default")
        assert raised.value.msg.startswith(f"{PATH}: ")


def test_a_kept_list_is_there_and_has_something(tmp_path: Path) -> None:
    file = tmp_path / "cam.json"
    for content, code in ((None, 11), ("[]", 7), ("{", 7)):
        if content is not None:
            file.write_text(content)
        with pytest.raises(CniError) as raised:
            translation.kept(str(file))
        assert raised.value.code == code
    file.write_text(json.dumps(DECLARED))
    assert [one.document for one in translation.kept(str(file))] == DECLARED
