"""What a configuration says of the node's tree, and what the kernel says where it says nothing."""

from __future__ import annotations

from typing import Any

import pytest
from concorde import links
from concorde.cni import INVALID_CONFIGURATION, CniError
from concorde.node import uplinks
from concorde.node.records import VXLAN_HEADERS
from concorde.node.settings import Settings

GIGA = 10**9


@pytest.fixture(autouse=True)
def node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "exists", lambda name: name in ("eth0", "eth1", "slow"))
    monkeypatch.setattr(uplinks, "of_default_route", lambda: "eth0")
    monkeypatch.setattr(uplinks, "mtu", lambda name: 1500)
    monkeypatch.setattr(uplinks, "speed", lambda name: {"eth0": 10 * GIGA, "eth1": GIGA}.get(name))


def tree(**keys: Any) -> dict[str, Any]:
    return vars(Settings(keys).tree)


def test_what_is_not_said_the_kernel_tells() -> None:
    said = Settings({})
    assert (said.take_over, said.encapsulation) == (False, VXLAN_HEADERS)
    assert vars(said.tree) == {
        "uplink": "eth0", "capacity": 10 * GIGA, "reserve": 200_000_000, "ports": (22, 6443, 10250),
        "overhead": 24, "segment": 0, "direction": "egress", "fabric": None, "peers": {},
    }  # fmt: skip
    assert tree(uplink="eth1")["capacity"] == GIGA


def test_what_is_said_counts() -> None:
    said = Settings({"takeOver": True, "encapsulation": 0, "uplink": "slow", "capacity": "1G"})
    assert (said.take_over, said.encapsulation, said.tree.uplink) == (True, 0, "slow")
    assert Settings({"encapsulation": 200}).encapsulation == 200
    assert [tree(frameOverhead=bytes)["overhead"] for bytes in (0, 38)] == [0, 38]
    assert tree(segment=True)["segment"] == 1518
    assert tree(controlPorts=[])["ports"] == ()
    assert tree(controlPorts=[443, 22, 443, 1, 65535])["ports"] == (1, 22, 443, 65535)
    assert len(tree(controlPorts=list(range(1, 16)))["ports"]) == 15


@pytest.mark.parametrize(
    ("keys", "capacity", "reserve"),
    [
        ({"capacity": "1000000007"}, 1_000_000_000, 20_000_000),
        ({"capacity": "1000000009"}, 1_000_000_008, 20_000_008),  # whole bytes: down, and up
        ({"capacity": "1G", "reserve": 0}, GIGA, 0),
        ({"capacity": "1G", "reserve": 0.5}, GIGA, 500_000_000),
        ({"capacity": "1001", "reserve": 0.5}, 1000, 504),
    ],
)
def test_rates_are_whole_bytes_and_the_reserve_is_rounded_up(
    keys: dict[str, Any], capacity: int, reserve: int
) -> None:
    found = tree(**keys)
    assert (found["capacity"], found["reserve"]) == (capacity, reserve)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"takeOver": "yes"}, "takeOver: 'yes' is neither true nor false"),
        ({"takeOver": 1}, "takeOver: 1 is neither true nor false"),
        ({"encapsulation": 201}, "encapsulation"),
        ({"encapsulation": -1}, "encapsulation"),
        ({"frameOverhead": 201}, "frameOverhead"),
        ({"segment": "yes"}, "segment: 'yes' is neither true nor false"),
        ({"uplink": "a b"}, "uplink: 'a b' is not an interface name"),
        ({"uplink": "eth9"}, "uplink: this node has no interface eth9"),
        ({"uplink": "slow"}, "capacity: missing, and the kernel does not report the speed of slow"),
        ({"capacity": "fast"}, "capacity: 'fast' is not a quantity"),
        ({"reserve": 0.51}, "reserve: 0.51 is not a share from 0 to 0.5"),
        ({"reserve": -0.1}, "reserve: -0.1 is not a share"),
        ({"reserve": True}, "is not a share"),
        ({"reserve": "0.1"}, "is not a share"),
        ({"controlPorts": 22}, "controlPorts: 22 is not a list of at most 15 ports"),
        ({"controlPorts": list(range(1, 17))}, "is not a list of at most 15 ports"),
        *(({"controlPorts": [port]}, "is not a TCP port") for port in (0, 65536, True, "22")),
    ],
)
def test_a_value_that_is_wrong_is_named(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(CniError) as caught:
        Settings(keys)
    assert caught.value.code == INVALID_CONFIGURATION
    assert words in caught.value.msg


def test_a_node_without_a_default_route_has_to_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uplinks, "of_default_route", lambda: None)
    with pytest.raises(CniError, match="uplink: missing, and this node has no default route"):
        Settings({})
    assert tree(uplink="eth1")["uplink"] == "eth1"


def test_no_frame_is_larger_than_a_turn_of_best_effort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uplinks, "mtu", lambda name: 9000)
    assert Settings({"uplink": "eth0", "capacity": "1M"}).tree.capacity == 1_000_000
    monkeypatch.setattr(uplinks, "mtu", lambda name: 65_000)
    assert Settings({"uplink": "eth0", "capacity": "3G"}).tree.capacity == 3 * GIGA
    with pytest.raises(CniError, match="uplink: the capacity of eth0 is too small for frames of"):
        Settings({"uplink": "eth0", "capacity": "1G"})
