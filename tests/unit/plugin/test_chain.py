"""Which orders of a network's plugins are refused, and where the list is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concorde import chain
from concorde.cni import CniError
from concorde.configuration import Configuration

BRIDGE: dict[str, Any] = {"type": "bridge", "ipam": {"type": "host-local"}}
CONCORDE = {"type": "concorde"}
MAC = {"type": "tuning", "mac": "c2:b0:57:49:47:f1"}
OTHERS = [
    {"type": "portmap", "capabilities": {"portMappings": True}},
    {"type": "firewall"},
    {"type": "tuning", "sysctl": {"net.core.somaxconn": "500"}},
    {"type": "bandwidth", "capabilities": {"bandwidth": True}},
]


@pytest.mark.parametrize(
    "plugins",
    [
        [],
        [CONCORDE, *OTHERS],
        [BRIDGE, CONCORDE, *OTHERS],
        [BRIDGE, *OTHERS, CONCORDE],
        [BRIDGE, MAC, CONCORDE],
        [{"type": "calico", "ipam": {}}, CONCORDE],
        [{"type": "macvlan", "ipam": {}}],  # none of ours
        [{}, CONCORDE, {"type": 7, "ipam": {}}],
    ],
)
def test_orders_that_work_are_taken(plugins: list[dict[str, Any]]) -> None:
    assert chain.complaints(plugins) == []


@pytest.mark.parametrize(
    ("plugins", "place", "remedy"),
    [
        ([CONCORDE, BRIDGE], 0, "concorde stands before bridge, which makes the interface: put it behind"),
        ([CONCORDE, {"type": "flannel", "delegate": {}}], 0, "put it behind"),
        ([CONCORDE, {"type": "host-device"}], 0, "put it behind"),
        ([{"type": "macvlan", "ipam": {}}, CONCORDE], 0, "use bridge or ptp"),
        ([{"type": "ipvlan"}, *OTHERS, CONCORDE], 0, "use bridge or ptp"),
        ([BRIDGE, CONCORDE, MAC], 2, "put it before concorde"),
        ([BRIDGE, CONCORDE, {"type": "tuning", "capabilities": {"mac": True}}], 2, "put it before concorde"),
        ([CONCORDE, MAC], 1, "leave that out"),
        ([BRIDGE, CONCORDE, *OTHERS, CONCORDE], 6, "take one out"),
    ],
)
def test_others_are_refused_with_their_place_and_what_to_change(
    plugins: list[dict[str, Any]], place: int, remedy: str
) -> None:
    (found,) = chain.complaints(plugins)
    assert found.startswith(f"plugins[{place}]: ")
    assert found.endswith(remedy)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    files = {
        "00-other.conflist": {"name": "other", "plugins": [CONCORDE, BRIDGE]},
        "05-broken.conflist": "no object",
        "10-b.conflist": {"name": "b", "plugins": [BRIDGE, CONCORDE, MAC]},
        "10-c.conflist": {"name": "c", "plugins": [BRIDGE]},
        "20-b.conflist": {"name": "b", "plugins": [BRIDGE, CONCORDE]},
        "00-b.conflist.bak": {"name": "b", "plugins": [CONCORDE, BRIDGE]},
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "01-b.conflist").mkdir()
    return tmp_path


def test_the_list_is_the_runtime_s_first_of_the_network_s_name(directory: Path) -> None:
    assert chain.listed("b", str(directory)) == [BRIDGE, CONCORDE, MAC]
    assert chain.listed("c", str(directory)) == []
    assert chain.listed("d", str(directory)) == []
    assert chain.listed("b", str(directory / "missing")) == []


def test_a_refusal_names_the_place(directory: Path) -> None:
    document = {"name": "b", "confDir": str(directory)}
    with pytest.raises(CniError, match=r"^plugins\[2\]: tuning") as refused:
        chain.require(Configuration(document))
    assert refused.value.code == 7
    chain.require(Configuration({**document, "name": "c"}))


def test_the_directory_must_be_a_path() -> None:
    with pytest.raises(CniError, match="confDir"):
        Configuration({"name": "b", "confDir": "net.d"})
