from __future__ import annotations

import json
from typing import Any

import pytest
from concorde.cni import INVALID_CONFIGURATION, CniError
from concorde.networks import selection
from concorde.networks.selection import NETWORKS, Selection

PATH = f'runtimeConfig["io.kubernetes.cri.pod-annotations"]["{NETWORKS}"]'
WHOLE = [
    {"name": "a", "namespace": "n", "interface": "cam0", "ips": ["10.0.0.5/24"], "mac": "02:00:00:00:00:01"}
]


def selected(annotation: object) -> list[Selection]:
    return selection.selected(annotation, "default", "eth0")


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (None, []),
        ("", []),
        ("[]", []),
        ("a", [("default", "a", "net1")]),
        (" a , n/b@cam0,c@x ", [("default", "a", "net1"), ("n", "b", "cam0"), ("default", "c", "x")]),
        ('[{"name": "a"}, {"name": "a", "namespace": "n"}]', [("default", "a", "net1"), ("n", "a", "net2")]),
        (json.dumps(WHOLE), [("n", "a", "cam0")]),
    ],
)
def test_an_annotation_is_read_as_the_standard_says(annotation: object, expected: list[Any]) -> None:
    assert [(one.namespace, one.name, one.interface) for one in selected(annotation)] == expected


def test_what_is_asked_goes_on_by_capability() -> None:
    (one,) = selected(json.dumps(WHOLE))
    assert one.asked == {"ips": ["10.0.0.5/24"], "mac": "02:00:00:00:00:01"}


@pytest.mark.parametrize(
    ("annotation", "path"),
    [
        (7, ""),
        ("[{", ""),
        ('{"name": "a"}', ""),
        ("a,", "[1].name"),
        ("/a", "[0].namespace"),
        ("a/b/c", "[0].name"),
        ("a@", "[0].interface"),
        ("a@eth0", "[0].interface"),
        ("a@x,b@x", "[1].interface"),
        ("a@net2,b", "[1].interface"),
        ("..", "[0].name"),
        ("[7]", "[0]"),
        ('[{"name": 7}]', "[0].name"),
        ('[{"name": "a", "namespace": "../etc"}]', "[0].namespace"),
        ('[{"name": "a", "ips": []}]', "[0].ips"),
        ('[{"name": "a", "ips": ["10.0.0.5/24", "10.0.0.256"]}]', "[0].ips[1]"),
        ('[{"name": "a", "mac": "01:00:00:00:00:01"}]', "[0].mac"),
        ('[{"name": "a", "mac": "02:00"}]', "[0].mac"),
        ('[{"name": "a", "cni-args": []}]', "[0].cni-args"),
        ('[{"name": "a", "default-route": ["10.0.0.1"]}]', "[0].default-route"),
        (",".join("a" for _ in range(33)), ""),
    ],
)
def test_a_mistake_is_named_with_its_path(annotation: object, path: str) -> None:
    with pytest.raises(CniError) as raised:
        selected(annotation)
    assert raised.value.code == INVALID_CONFIGURATION
    assert raised.value.msg.startswith(f"{PATH}{path}: "), raised.value.msg
