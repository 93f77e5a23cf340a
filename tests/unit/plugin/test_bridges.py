"""Which bridges and ports are ours, by what `ip` tells of them, and which pods live by what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from concorde import addresses, attached, bridges, names, routing, rtnetlink
from concorde.bridges import Port
from concorde.cni import DAMAGED, INVALID_CONFIGURATION, CniError
from concorde.configuration import Configuration
from concorde.leases import Lease, Link, Terms
from concorde.node.ledger import Ledger

from tests.unit.plugin.node.kernels import Cables, NotingKernel

SUBNET = addresses.parse_subnet("172.16.1.0/24")
ADDRESS = SUBNET.network + 2
NONE = Terms("none", None, None, None, None)


def veth(container: str) -> str:
    return names.host_veth("net", container, "eth0")


def link(container: str, address: int = ADDRESS, bridge: str = "cni-a") -> Link:
    return Link("eth0", 1450, address, SUBNET, bridge, veth(container))


def shown(container: str, address: int = ADDRESS, **keys: Any) -> dict[str, Any]:
    mac = addresses.host_mac(address)
    return {"ifname": veth(container), "address": mac, "master": "cni-a", "mtu": 1450, **keys}


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> NotingKernel:
    return NotingKernel(monkeypatch)


def there_are(noting: NotingKernel, *found: dict[str, Any]) -> None:
    noting.answers["ip -j -d link show type veth"] = json.dumps(found)


def test_ports_are_known_by_their_names_and_tell_their_addresses(noting: NotingKernel) -> None:
    unmarked = {**shown("b"), "address": "0a:00:00:00:00:01", "master": "br0"}
    there_are(noting, {}, {"ifname": "veth0"}, shown("a"), unmarked, {"ifname": veth("c")})
    assert [vars(port) for port in bridges.ports().values()] == [
        {"name": veth("a"), "address": ADDRESS, "bridge": "cni-a", "mtu": 1450},
        {"name": veth("b"), "address": None, "bridge": "br0", "mtu": 1450},
        {"name": veth("c"), "address": None, "bridge": "", "mtu": 0},
    ]


@pytest.mark.parametrize(
    ("kind", "found", "refused"),
    [
        (None, [shown("x")], None),
        ("dummy", [], INVALID_CONFIGURATION),
        ("", [], INVALID_CONFIGURATION),
        ("bridge", [], None),
        ("bridge", [shown("x", master="br0")], None),
        ("bridge", [shown("x")], DAMAGED),
    ],
)
def test_a_bridge_with_pods_of_which_nobody_knows_is_not_taken(
    kind: str | None,
    found: list[dict[str, Any]],
    refused: int | None,
    noting: NotingKernel,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = Configuration({"name": "net", "bridge": "cni-a", "stateDir": str(tmp_path)})
    monkeypatch.setattr(rtnetlink, "link_kind", lambda name: kind)
    there_are(noting, *found)
    book = Ledger(network.node_directory)
    if refused is None:
        bridges.require_ours(network, SUBNET, book)
        return
    with pytest.raises(CniError) as caught:
        bridges.require_ours(network, SUBNET, book)
    assert caught.value.code == refused
    assert ("has no record of 1 pods on cni-a (172.16.1.2)" in caught.value.msg) == (refused == DAMAGED)


def test_of_a_bridge_with_pods_nothing_is_asked_and_of_another_subnet_who_is_unknown(
    noting: NotingKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = Configuration({"name": "net", "bridge": "cni-a", "stateDir": str(tmp_path)})
    monkeypatch.setattr(rtnetlink, "link_kind", lambda name: pytest.fail("asked"))
    book = Ledger(network.node_directory)
    with book:
        book.next_address("net", SUBNET)
        book.add("net", Lease("a", "eth0", NONE, link("a")))
    bridges.require_ours(network, SUBNET, book)
    assert noting.asked == []
    other = addresses.parse_subnet("172.16.2.0/24")
    there_are(noting, shown("a"))
    bridges.require_ours(network, other, book)
    there_are(noting, shown("a"), *(shown(name, ADDRESS + 1 + number) for number, name in enumerate("bcde")))
    with pytest.raises(CniError, match=r"4 pods on cni-a \(172\.16\.1\.3, 172\.16\.1\.4, 172\.16\.1\.5\)"):
        bridges.require_ours(network, other, book)


@pytest.mark.parametrize(
    ("kind", "alias", "mac", "ours"),
    [
        ("bridge", "concorde", "", True),
        ("bridge", "", addresses.pod_mac(SUBNET.gateway), True),
        ("bridge", "", addresses.pod_mac(SUBNET.gateway + 1), False),
        ("bridge", "another", "", False),
        ("dummy", "concorde", addresses.pod_mac(SUBNET.gateway), False),
    ],
)
def test_a_bridge_of_ours_has_our_mark_or_the_address_that_follows_from_its_own(
    kind: str, alias: str, mac: str, ours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rtnetlink, "identity", lambda _name: (kind, alias, mac))
    monkeypatch.setattr(rtnetlink, "index_of", lambda *_: 2)
    own = [(2, SUBNET.gateway + 9), (2, SUBNET.gateway), (3, SUBNET.gateway + 1)]
    monkeypatch.setattr(routing, "addresses", lambda: [routing.Address(*one, 24) for one in own])
    assert bridges.is_marked("cni-a") is ours


# Who lives.


class Kept:
    """What a runtime's cache tells of an attachment."""

    def __init__(
        self,
        container: str = "a",
        follows: bool = False,
        addresses: tuple[str, ...] = (),
        netns: str = "",
        **keys: Any,
    ) -> None:
        self.netns = netns
        self.container, self.interface, self.pod, self.follows = container, "eth0", "default/a", follows
        self.addresses = addresses
        self.document = {
            "name": "net",
            "enforcement": "none",
            **({} if follows else {"subnet": "172.16.1.0/24"}),
            **keys,
        }


def port(container: str = "a", address: int | None = ADDRESS, bridge: str = "cni-a") -> dict[str, Port]:
    return {veth(container): Port(veth(container), address, bridge, 1400)}


def lives(kept: Kept, ports: dict[str, Port]) -> attached.Attached | None:
    return attached.of_cache("net", kept, ports)  # type: ignore[arg-type]


def test_who_has_a_port_lives_with_the_address_that_the_port_tells() -> None:
    assert lives(Kept(), {}) is None
    assert lives(Kept("b"), port("a")) is None
    for told in ((), ("nonsense", "172.16.1.9/24")):
        found = lives(Kept(addresses=told), port())
        assert found is not None
        assert found.lease.link is not None
        assert vars(found.lease.link) | {"subnet": ""} == vars(link("a")) | {"mtu": 1400, "subnet": ""}
        assert str(found.lease.link.subnet) == "172.16.1.0/24"
        assert (found.key, found.who) == (("net", "a", "eth0"), "net default/a")
    found = lives(Kept(addresses=("fd00::1/64", "172.16.1.2/16")), port(bridge=""))
    assert found is not None
    assert found.lease.link is not None
    assert str(found.lease.link.subnet) == "172.16.0.0/16"
    assert found.lease.link.bridge == names.default_bridge("net")


def test_a_port_that_tells_no_address_is_an_error() -> None:
    with pytest.raises(CniError, match="does not tell the pod's address"):
        lives(Kept(), port(address=None))


@pytest.mark.parametrize(
    ("ends", "mac", "netns", "there"),
    [
        (["br0", "veth7", "ifb1"], "", "", True),
        (["ifb1", "veth7"], "aa:bb:cc:00:00:01", "", True),
        (["br0", "veth7"], "aa:bb:cc:00:00:02", "", False),  # another pod has the name by now
        (["br0", "gone"], "", "", False),
        (["ifb1"], "", "", False),
        (["gone"], "", "/run/netns/5", True),
        (["gone"], "", "/run/netns/6", False),
        ([], "", "", True),
    ],
)
def test_who_follows_another_plugin_lives_as_long_as_the_nodes_end_leads_to_it(
    ends: list[str], mac: str, netns: str, there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    cables = Cables(monkeypatch)
    cables.add(3, "br0", kind="bridge")
    cables.add(4, "ifb1", kind="ifb")
    cables.pair(7, "veth7", 5, "aa:bb:cc:00:00:01", master=3)
    inside = [{"name": "eth0", "sandbox": "/somewhere", **({"mac": mac} if mac else {})}]
    told = {"interfaces": [*({"name": end} for end in ends), *inside]}
    found = lives(Kept(follows=True, prevResult=told, netns=netns), {})
    assert (found is not None) is there
    assert found is None or (found.lease.link, found.lease.terms.enforcement) == (None, "none")
    assert found is None or found.found is None or not ends or found.found.host_interface == "br0"


@pytest.mark.parametrize(
    ("of", "ports", "lives"),
    [
        (None, {}, True),
        (link("a"), port(), True),
        (link("a"), port(address=None), True),
        (link("a"), port(address=ADDRESS + 1), False),
        (link("a"), port("b"), False),
        (link("a"), {}, False),
    ],
)
def test_a_row_is_believed_as_far_as_the_kernel_has_it(
    of: Link | None, ports: dict[str, Port], lives: bool
) -> None:
    found = attached.of_row("net", Lease("a", "eth0", NONE, of), ports)
    assert (found is not None) is lives
    assert found is None or (found.configuration, found.who) == (None, "net a")


def test_whose_port_is_nobodys_is_known_by_the_bridge_and_the_subnet() -> None:
    alive = [
        attached.Attached("net", Lease("a", "eth0", NONE, link("a")), None),
        attached.Attached("net", Lease("b", "eth0", NONE, None), None),
    ]
    ports = {
        **port("a"), **port("c", ADDRESS + 1), **port("d", ADDRESS + 2, "br0"), **port("e", None),
        **port("f", SUBNET.broadcast + 1), **port("g", SUBNET.broadcast),
    }  # fmt: skip
    found = attached.nobodys(alive, ports)
    assert [(one.host_veth, one.address, one.mtu, one.bridge, str(one.subnet)) for one in found] == [
        (veth("c"), ADDRESS + 1, 1400, "cni-a", "172.16.1.0/24"),
        (veth("g"), SUBNET.broadcast, 1400, "cni-a", "172.16.1.0/24"),
    ]
    assert attached.nobodys([], ports) == []
