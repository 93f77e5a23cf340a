"""What is taken away by its names alone, where no ledger tells of an attachment."""

from __future__ import annotations

import json
from typing import Any

import pytest
from concorde import tools
from concorde.node import remains

from tests.unit.plugin.node.kernels import NotingKernel, failure

SETS: dict[str, list[dict[str, Any]]] = {
    "ip": [
        {"map": {"name": "classes", "elem": [["172.16.1.2", "c0de:1f"], ["172.16.1.3", "c0de:20"]]}},
        {"set": {"name": "ways", "elem": [{"concat": ["cni-a", "172.16.1.2"]}]}},
        {"set": {"name": "hops", "elem": [{"concat": ["172.16.1.2", "10.0.0.1"]}]}},  # go of their own accord
        {"set": {"name": "tunnels", "elem": [8472]}},
        {"set": {"name": "empty"}},
        {"chain": {"name": "input"}},
    ],
    "bridge": [
        {
            "set": {
                "name": "dropped",
                "elem": [{"elem": {"val": "veth1", "counter": {"packets": 3}}}, "veth2"],
            }
        },
        {"set": {"name": "frames", "elem": [{"concat": ["veth1", "0a:58:ac:10:01:02", "172.16.1.2"]}]}},
    ],
}


class Listed:
    """A listing of one family that has ended."""

    def __init__(self, family: str) -> None:
        self._family = family

    def finish(self) -> str:
        if self._family == "netdev":
            raise failure("Error: nothing is known of it")
        if self._family not in SETS:
            raise failure("Error: No such file or directory")
        return json.dumps({"nftables": [{"metainfo": {}}, *SETS[self._family]]})


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> NotingKernel:
    monkeypatch.setattr(tools, "start", lambda *words: Listed(words[-2]))
    monkeypatch.setattr("concorde.node.observe.FAMILIES", ("ip", "ip6", "bridge"))
    noting = NotingKernel(monkeypatch)
    noting.answers["tc qdisc show"] = (
        "qdisc noqueue 0: dev lo root refcnt 2\n"
        "qdisc htb 1: dev eth1 root refcnt 2\n"
        "qdisc htb c0de: parent 1:1 dev eth2\n"
        "qdisc htb c0de: dev eth0 root refcnt 9 r2q 10 default 0xfffe\n"
    )
    noting.answers["tc class show dev eth0"] = (
        "class htb c0de:1f root leaf 1f: prio 0\nclass htb c0de:1 root\n"
    )
    return noting


def test_an_error_that_is_no_missing_table_is_one(
    noting: NotingKernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concorde.node.observe.FAMILIES", ("ip", "netdev"))
    with pytest.raises(tools.CommandError, match="nothing is known of it"):
        remains.elements()


def test_elements_are_written_as_nft_reads_them(noting: NotingKernel) -> None:
    assert [(one.family, one.name, one.text) for one in remains.elements()] == [
        ("ip", "classes", "172.16.1.2 : c0de:1f"),
        ("ip", "classes", "172.16.1.3 : c0de:20"),
        ("ip", "ways", '"cni-a" . 172.16.1.2'),
        ("ip", "tunnels", "8472"),
        ("bridge", "dropped", '"veth1"'),
        ("bridge", "dropped", '"veth2"'),
        ("bridge", "frames", '"veth1" . 0a:58:ac:10:01:02 . 172.16.1.2'),
    ]
    assert remains.minors(remains.elements()) == {0xAC100102: 0x1F, 0xAC100103: 0x20}


def test_without_nft_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_words: str) -> Listed:
        raise FileNotFoundError

    monkeypatch.setattr(tools, "start", missing)
    noting = NotingKernel(monkeypatch)
    remains.forget({"veth1"})
    assert (remains.elements(), noting.asked) == ([], [])


GONE = (
    "delete element ip concorde classes { 172.16.1.2 : c0de:1f }\n"
    'delete element ip concorde ways { "cni-a" . 172.16.1.2 }\n'
)
PORT = (
    'delete element bridge concorde dropped { "veth1" }\n'
    'delete element bridge concorde frames { "veth1" . 0a:58:ac:10:01:02 . 172.16.1.2 }\n'
)


def test_who_is_forgotten_by_its_port_loses_what_names_its_address_too(noting: NotingKernel) -> None:
    remains.forget({"veth1", "veth9"})
    assert [asked for asked in noting.asked if asked[0] == "batches"] == [
        ("batches", ("nft", GONE + PORT)),
        ("batches", ("tc", "class delete dev eth0 classid c0de:1f\n")),
    ]


def test_who_is_forgotten_by_an_address_alone_leaves_a_port_that_is_nobodys(noting: NotingKernel) -> None:
    remains.forget((), [0xAC100103])
    assert noting.asked == [
        ("batches", ("nft", "delete element ip concorde classes { 172.16.1.3 : c0de:20 }\n")),
        ("run", "tc", "qdisc", "show"),
        ("run", "tc", "class", "show", "dev", "eth0"),
        ("batches", ("tc", "")),  # that class is gone already
    ]


def test_without_a_tree_or_a_class_of_its_own_tc_is_not_changed(noting: NotingKernel) -> None:
    remains.forget({"veth2"})
    assert noting.asked == [("batches", ("nft", 'delete element bridge concorde dropped { "veth2" }\n'))]
    noting.asked.clear()
    noting.answers["tc qdisc show"] = "qdisc htb 1: dev eth0 root\nqdisc htb c0de: root\n"
    remains.forget({"veth1"})
    assert noting.asked[-1] == ("run", "tc", "qdisc", "show")
