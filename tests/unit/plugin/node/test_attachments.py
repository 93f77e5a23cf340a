"""What becomes of an attachment in the ledger and the kernel, and of both when something fails."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from concorde import addresses, names
from concorde.cni import CHECK_FAILED, INVALID_CONFIGURATION, NO_BANDWIDTH, NOT_AVAILABLE, CniError
from concorde.configuration import Configuration
from concorde.leases import Lease, Link, Terms
from concorde.locks import NodeLock
from concorde.node import attachments, htb, kernel
from concorde.node.differences import Difference
from concorde.node.ledger import Ledger
from concorde.node.records import Entry, Tree, uplink_rate
from concorde.node.settings import Settings

from tests.unit.plugin.node.examples import GIGA, MAC, TREE, entry
from tests.unit.plugin.node.kernels import Cables, NotingKernel, failure

SUBNET = addresses.parse_subnet("172.16.1.0/24")
OTHER_MAC = "aa:bb:cc:00:11:22"
NONE = Terms("none", None, None, None, None)
MADE = Link("eth0", 1450, SUBNET.network + 2, SUBNET, "cni-a", names.host_veth("cluster-a", "A-1", "eth0"))


@pytest.fixture
def noting(monkeypatch: pytest.MonkeyPatch) -> NotingKernel:
    return NotingKernel(monkeypatch)


@pytest.fixture
def directory(tmp_path: Path) -> str:
    return str(tmp_path / "node")


def settings(tree: Tree = TREE, take_over: bool = False) -> Settings:
    one = Settings.__new__(Settings)
    one.take_over, one.encapsulation, one.tree = take_over, 50, tree
    return one


def configuration(state: Path = Path("/run/concorde"), **keys: Any) -> Configuration:
    return Configuration({"name": "cluster-a", "stateDir": str(state), **keys})


def lease(
    guarantee: int | None = None,
    ceiling: int | None = None,
    link: Link | None = MADE,
    answers: int | None = None,
) -> Lease:
    return Lease("A-1", "eth0", Terms("node", guarantee, ceiling, None, None, answers), link, "default/a")


def entered(directory: str) -> list[str]:
    return [one.container for one in Ledger(directory).entries()]


# What an entry says.


def test_an_entry_of_an_interface_that_we_made_says_what_its_lease_does() -> None:
    one = attachments.entry_of(configuration(), lease(), None)
    assert vars(one) == {
        **vars(entry(rate=0, port=MADE.host_veth, pod="default/a", uplink="")), "ceil": 0, "minor": None,
    }  # fmt: skip
    assert one.is_ours
    assert attachments.entry_of(configuration(), lease(), settings()).ceil == TREE.capacity


@pytest.mark.parametrize(
    ("guarantee", "ceiling", "count", "ceil"),
    [
        (GIGA, None, "layer2", TREE.capacity),
        (GIGA, 2 * GIGA, "layer2", uplink_rate(2 * GIGA, "layer2", 1450, 50)),
        (GIGA, 2 * GIGA, "payload", uplink_rate(2 * GIGA, "payload", 1450, 50)),
        (GIGA, 20 * GIGA, "layer2", TREE.capacity),
    ],
)
def test_a_promise_takes_more_on_the_uplink_and_is_never_more_than_its_ceiling(
    guarantee: int, ceiling: int | None, count: str, ceil: int
) -> None:
    one = attachments.entry_of(configuration(count=count), lease(guarantee, ceiling), settings())
    assert (one.guarantee, one.ceil) == (guarantee, ceil)
    assert one.rate == uplink_rate(guarantee, count, 1450, 50)
    small = settings(Tree("eth0", GIGA // 2, 0, ()))
    assert attachments.entry_of(configuration(), lease(GIGA), small).ceil == uplink_rate(
        GIGA, "layer2", 1450, 50
    )


def test_answers_take_their_room_with_the_guarantee_or_alone() -> None:
    takes = uplink_rate(700_000, "layer2", 1450, 50)
    one = attachments.entry_of(configuration(), lease(answers=700_000), settings())
    assert (one.guarantee, one.answers, one.rate, one.ceil) == (None, 700_000, takes, TREE.capacity)
    one = attachments.entry_of(configuration(), lease(GIGA, answers=700_000), settings())
    assert one.rate == uplink_rate(GIGA, "layer2", 1450, 50) + takes
    assert attachments.entry_of(configuration(), lease(answers=700_000), None).rate == 0


def previous(
    *ips: object, mac: str = "AA:BB:CC:00:11:22", ends: tuple[str, ...] = ("br0", "veth7")
) -> dict[str, Any]:
    inside = [
        {"name": "eth1", "mac": "00:00:00:00:00:01", "sandbox": "/n"},
        {"name": "eth0", "mac": mac, "sandbox": "/n"},
    ]
    return {"interfaces": [*({"name": end} for end in ends), *inside], "ips": [{"address": ip} for ip in ips]}


@pytest.fixture
def cables(monkeypatch: pytest.MonkeyPatch) -> Cables:
    found = Cables(monkeypatch)
    found.add(3, "br0", kind="bridge")
    found.add(4, "bwp1", kind="ifb")
    found.add(5, "ovs-system", kind="openvswitch")
    found.add(6, "blue", kind="vrf")
    return found


def test_of_an_interface_that_others_made_kernel_and_result_tell(cables: Cables) -> None:
    cables.pair(7, "veth7", 8, OTHER_MAC, master=3)
    told = previous("fd00::0:1/64", "10.1.0.5/24", "10.1.0.6/24")
    for netns in ("/run/netns/8", "/run/netns/gone", ""):
        one = attachments.entry_of(configuration(prevResult=told), lease(link=None), None, netns)
        assert (one.address, one.others) == (addresses.parse("10.1.0.5"), "fd00::1 10.1.0.6")
        assert (one.host_interface, one.port, one.mac, one.is_ours) == ("br0", "veth7", OTHER_MAC, False)
        assert (one.link, one.host_mac, one.number) == (7, "host 7", 8)
        known = (2, "inode of /run/netns/8") if netns == "/run/netns/8" else (0, "")
        assert (one.inside, one.namespace) == known


@pytest.mark.parametrize(
    ("master", "host_interface", "port"),
    [(0, "cali1", ""), (3, "br0", "cali1"), (5, "cali1", ""), (6, "cali1", "")],
)
@pytest.mark.parametrize("ends", [("br0", "cali1", "bwp1"), ("bwp1",), ()])
def test_an_ends_place_in_the_result_says_nothing(
    ends: tuple[str, ...], master: int, host_interface: str, port: str, cables: Cables
) -> None:
    cables.pair(9, "cali1", 8, OTHER_MAC, master=master)
    told = configuration(prevResult=previous("10.1.0.5/24", ends=ends))
    one = attachments.entry_of(told, lease(link=None), None, "/run/netns/8")
    assert (one.host_interface, one.port, one.end) == (host_interface, port, "cali1")
    if master == 5:
        with pytest.raises(CniError, match=r"not ovs-system \(openvswitch\)"):
            attachments.entry_of(told, lease(GIGA, link=None), settings(), "/run/netns/8")
    else:
        assert attachments.entry_of(told, lease(GIGA, link=None), settings(), "/run/netns/8").rate > GIGA


@pytest.mark.parametrize("kind", ["macvlan", "vlan", "dummy"])
def test_what_has_no_end_on_the_node_leads_to_no_device_of_the_nodes(kind: str, cables: Cables) -> None:
    cables.numbers["/run/netns/8"] = 8
    cables.add(2, "eth0", at=8, kind=kind, mac=MAC, peer=3, number=99)
    told = configuration(prevResult=previous("10.1.0.5/24", mac="", ends=("br0",)))
    one = attachments.entry_of(told, lease(link=None), None, "/run/netns/8")
    assert (one.host_interface, one.port, one.mac, one.link) == ("", "", MAC, 0)


def test_an_end_within_a_third_namespace_is_not_the_nodes_link_of_that_number(cables: Cables) -> None:
    cables.pair(9, "cali1", 8, OTHER_MAC)
    cables.numbers["/run/netns/7"] = 7
    cables.add(2, "eth0", at=7, kind="veth", mac=MAC, peer=9, number=3)
    told = configuration(prevResult=previous("10.1.0.5/24", mac=""))
    one = attachments.entry_of(told, lease(link=None), None, "/run/netns/7")
    assert (one.host_interface, one.mac) == ("", MAC)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (previous("10.1.0.256/24"), "prevResult.ips"),
        (previous("fd00:::1/64"), "prevResult.ips"),
        (previous("10.1.0.5/24", mac="aa:bb:cc:00:11"), "is not a hardware address"),
        (previous("10.1.0.5/24", mac="aa:bb:cc:00:11:2g"), "is not a hardware address"),
        (previous("10.1.0.5/24", mac="aa:bb:cc:00:11:222"), "is not a hardware address"),
        (previous(), "a guarantee needs an IPv4 address"),
        (previous("fd00::1/64"), "a guarantee needs an IPv4 address"),
        (previous("10.1.0.5/24", ends=()), "a guarantee needs an IPv4 address and the node's end"),
    ],
)
def test_a_result_of_which_no_entry_can_be_made_is_refused(told: dict[str, Any], words: str) -> None:
    with pytest.raises(CniError, match=words) as caught:
        attachments.entry_of(configuration(prevResult=told), lease(GIGA, link=None), settings())
    assert caught.value.code == INVALID_CONFIGURATION


# Who comes.


def enter(directory: str, one: Entry, of: Settings | None) -> None:
    lock = NodeLock(directory)
    attachments.enter(Ledger(directory), one, of, lock)


def kinds(noting: NotingKernel) -> list[str]:
    return [asked[0] for asked in noting.asked]


def test_the_first_promise_plants_the_tree_and_the_next_adds_its_class(
    noting: NotingKernel, directory: str
) -> None:
    noting.has_uplink("default")
    enter(directory, entry(), settings())
    (tree,) = [
        text for asked in noting.asked for tool, text in asked[1:] if asked[0] == "batches" and tool == "tc"
    ]
    assert htb.plant(TREE, GIGA, fair=False) in tree
    assert Ledger(directory).trees() == [TREE]
    noting.asked.clear()
    enter(directory, entry("A-2", address=0xAC100103, port="veth2"), settings())
    assert kinds(noting) == ["set", "close", "batches"]
    assert htb.class_line("add", TREE, 0x11, GIGA, 9 * GIGA) in noting.asked[-1][1][1]
    assert entered(directory) == ["A-1", "A-2"]


def test_what_does_not_fit_touches_nothing(noting: NotingKernel, directory: str) -> None:
    with pytest.raises(CniError) as caught:
        enter(directory, entry(rate=9 * GIGA), settings())
    assert (caught.value.code, noting.asked, entered(directory)) == (NO_BANDWIDTH, [], [])


def test_what_is_in_the_way_is_repaired_and_the_attachment_stays(
    noting: NotingKernel, directory: str
) -> None:
    noting.failing["set",] = OSError(errno.ENOENT, "no table")
    noting.state.ports = {"veth1"}
    enter(directory, entry(rate=0), None)
    assert kinds(noting) == ["set", "batches", "close"]
    assert "add table bridge concorde" in noting.asked[1][2][1]
    assert entered(directory) == ["A-1"]


def test_what_cannot_be_repaired_leaves_nothing(noting: NotingKernel, directory: str) -> None:
    enter(directory, entry(rate=0), None)
    noting.failing = {
        ("set",): OSError(errno.ENOENT, "no table"),
        ("close",): OSError(errno.EPERM, "not allowed"),
    }
    noting.state.ports, noting.state.elements = {"veth2"}, {("bridge", "guarded", '"veth2"')}
    noting.asked.clear()
    with pytest.raises(OSError, match="not allowed"):
        enter(directory, entry("A-2", rate=0, address=0xAC100103, port="veth2"), None)
    tool, text = noting.asked[-1][2]
    assert (tool, text) == ("nft", 'delete element bridge concorde guarded { "veth2" }\n')
    assert entered(directory) == ["A-1"]


def test_somebody_elses_uplink_is_left_as_it_is(noting: NotingKernel, directory: str) -> None:
    noting.has_uplink("tbf 1:")
    with pytest.raises(CniError, match="somebody else configured eth0"):
        enter(directory, entry(), settings())
    assert (noting.asked, entered(directory), Ledger(directory).trees()) == ([], [], [])
    enter(directory, entry(), settings(take_over=True))
    assert entered(directory) == ["A-1"]


def test_a_node_that_gets_another_uplink_loses_the_tree_of_the_former(
    noting: NotingKernel, directory: str
) -> None:
    book = Ledger(directory) if Path(directory).exists() else None
    assert book is None
    with NodeLock(directory):
        pass
    Ledger(directory).replace_tree(None, Tree("eth9", GIGA, 0, ()))
    noting.has_uplink("default")
    enter(directory, entry(), settings())
    assert noting.asked[0] == ("batch", "tc", "qdisc delete dev eth9 root handle c0de:\n")
    assert Ledger(directory).trees() == [TREE]


# Who goes.


@pytest.fixture
def two(noting: NotingKernel, tmp_path: Path) -> Configuration:
    network = configuration(tmp_path)
    noting.has_uplink("default")
    enter(network.node_directory, entry(), settings())
    enter(network.node_directory, entry("A-2", 2 * GIGA, address=0xAC100103, port="veth2"), settings())
    noting.asked.clear()
    return network


def test_who_goes_leaves_the_kernel_and_then_the_ledger(noting: NotingKernel, two: Configuration) -> None:
    attachments.withdraw(Ledger(two.node_directory), two, "nobody", "eth0")
    assert noting.asked == []
    attachments.withdraw(Ledger(two.node_directory), two, "A-1", "eth0")
    assert htb.change_rest(TREE, htb.default_rate(TREE, 2 * GIGA)) in noting.asked[-1][1][1]
    assert entered(two.node_directory) == ["A-2"]


def test_who_goes_from_a_kernel_that_lacks_something_is_cleared_away(
    noting: NotingKernel, two: Configuration
) -> None:
    noting.failing["set",] = OSError(errno.ENOENT, "no element")
    noting.has_uplink("ours", dict.fromkeys((0x10, htb.DEFAULT), ("",) * 5))
    attachments.withdraw(Ledger(two.node_directory), two, "A-1", "eth0")
    assert noting.asked[-1][1][1] == htb.delete_class(TREE, 0x10) + htb.change_rest(
        TREE, htb.default_rate(TREE, 2 * GIGA), [htb.DEFAULT]
    )
    assert entered(two.node_directory) == ["A-2"]


@pytest.mark.parametrize(
    ("told", "ends", "known"),
    [
        (None, {MADE.host_veth}, ()),
        (previous("10.1.0.5/24"), {MADE.host_veth, "veth7"}, (addresses.parse("10.1.0.5"),)),
        (previous("10.1.0.5/24", mac=MAC), {MADE.host_veth}, ()),  # another pod has veth7 by now
        (previous("10.1.0.5/24", ends=("veth8",)), {MADE.host_veth, "veth8"}, (addresses.parse("10.1.0.5"),)),
        (previous("nonsense", ends=()), {MADE.host_veth}, ()),
    ],
)
def test_without_a_ledger_who_goes_is_known_by_its_names(
    told: object,
    ends: set[str],
    known: tuple[int, ...],
    cables: Cables,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from concorde.node import remains

    cables.pair(7, "veth7", 8, OTHER_MAC, master=3)
    asked: list[Any] = []
    monkeypatch.setattr(remains, "forget", lambda *arguments: asked.append(arguments))
    attachments.withdraw(
        None, configuration(tmp_path, **({"prevResult": told} if told else {})), "A-1", "eth0"
    )
    assert asked == [(ends, known)]


# Who asks.


def found_by(monkeypatch: pytest.MonkeyPatch, noting: NotingKernel, *found: Difference) -> None:
    monkeypatch.setattr(kernel, "compare", lambda _tree, _entries: (noting.state, list(found)))


def refused(call: Any, code: int) -> str:
    with pytest.raises(CniError) as caught:
        call()
    assert caught.value.code == code
    return caught.value.msg


def test_a_check_compares_the_ledger_with_what_is_configured(
    noting: NotingKernel, two: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = two.node_directory
    found_by(monkeypatch, noting)
    attachments.check(entry(pod="another name", minor=0x77), settings(), there)
    assert ("set", "add", [("ip", "vteps", '"of eth0"')]) in noting.asked
    unknown = entry("A-3", address=0xAC100104, port="veth3")
    assert "has no entry for cluster-a A-3" in refused(
        lambda: attachments.check(unknown, None, there), CHECK_FAILED
    )
    other = settings(Tree("eth0", 8 * GIGA, 0, ()))
    assert "8000000000" in refused(lambda: attachments.check(entry(), other, there), CHECK_FAILED)
    changed = entry(mac="0a:58:ac:10:01:03")
    assert "expected" in refused(lambda: attachments.check(changed, settings(), there), CHECK_FAILED)


def test_a_check_tells_what_is_the_attachments_or_everybodys_and_does_harm(
    noting: NotingKernel, two: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, others = entry().key, ("cluster-a", "A-2", "eth0")
    found_by(
        monkeypatch, noting, Difference("another's", key=others), Difference("harmless", key=mine, waits=True)
    )
    attachments.check(entry(), settings(), two.node_directory)
    for key in (mine, None):
        found_by(monkeypatch, noting, Difference("another's", key=others), Difference("a class", key=key))
        assert (
            refused(lambda: attachments.check(entry(), settings(), two.node_directory), CHECK_FAILED)
            == "a class"
        )


def test_a_promise_can_be_kept_before_the_first_one(noting: NotingKernel, tmp_path: Path) -> None:
    noting.has_uplink("default")
    network = configuration(tmp_path)
    attachments.status(network, settings())
    attachments.status(network, None)
    noting.has_uplink("tbf 1:")
    assert "somebody else" in refused(lambda: attachments.status(network, settings()), NOT_AVAILABLE)
    attachments.status(network, settings(take_over=True))
    attachments.status(network, None)


def test_what_is_wrong_with_a_node_that_has_promises_is_counted(
    noting: NotingKernel, two: Configuration, monkeypatch: pytest.MonkeyPatch
) -> None:
    noting.has_uplink("ours")
    found_by(
        monkeypatch, noting, Difference("a class"), Difference("harmless", waits=True), Difference("a set")
    )
    said = refused(lambda: attachments.status(two, settings()), NOT_AVAILABLE)
    assert said == "a class (differences: 2)"
    attachments.status(two, settings(), beforehand=True)
    found_by(monkeypatch, noting, Difference("harmless", waits=True))
    attachments.status(two, settings())
    # What another network relies on cannot be changed, and what may change is the next ADD's to plant.
    other = settings(Tree("eth0", 8 * GIGA, 0, ()))
    foreign = Configuration({"name": "cluster-b", "stateDir": two.state})
    assert refused(lambda: attachments.status(foreign, other), NOT_AVAILABLE)
    found_by(monkeypatch, noting, Difference("a class"))
    attachments.status(two, other)


def test_a_failure_of_a_command_is_told_by_its_first_line() -> None:
    assert str(failure("Error: no such thing\nand more\n")) == "tc : Error: no such thing"
