"""Misses and their answers; what is to change, by generation, as leases come, go, and come back otherwise."""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network

import pytest

from edge import netlink
from edge.overlay.answering import Answering, DeviceGoneError, Generation, Replica, corrections
from edge.overlay.entries import Forwarding, Held, Known, Neighbour, Remove, Route, Set, body_of
from edge.overlay.leases import Lease
from tests.unit.edge.overlay.kernels import (
    INDEX,
    NETWORK,
    OWN,
    MemoryKernel,
    attribute,
    l2_miss,
    l3_miss,
    lease,
    message,
    of_neighbour,
    refresh,
)

MISS, L3_MISS, AHEAD = Generation("miss", "miss"), Generation("ahead", "miss"), Generation("ahead", "ahead")
POD = IPv4Address("10.1.2.9")
HERE = Set(Neighbour(POD, lease(2).mac), lasting=False)
BEHIND = Set(Forwarding(lease(2).mac, lease(2).address))


class Case:
    """A resolver's decisions, on a kernel in memory."""

    def __init__(self, leases: Sequence[Lease] | None = (OWN, lease(2)), refresh: bool = False) -> None:
        self.kernel, self.log = MemoryKernel(), list[str]()
        replica = Replica(NETWORK, OWN)
        self.answering = Answering(self.kernel, replica, Generation(), refresh, self.log.append)
        if leases is not None:
            self.answering.learned(leases)


def test_a_missed_address_is_at_its_nodes_vtep() -> None:
    case = Case()
    case.answering.heard(l3_miss("10.1.2.9"))
    assert case.kernel.changes == [HERE]
    assert case.log[0].startswith("L3 miss: 10.1.2.9: at 0e:00:00:00:00:02, answered in ")


def test_a_missed_mac_is_behind_its_node() -> None:
    case = Case()
    case.answering.heard(l2_miss(lease(2).mac))
    assert case.kernel.changes == [BEHIND]
    assert case.log[0].startswith("L2 miss: 0e:00:00:00:00:02: behind 192.168.122.2, answered in ")


def test_several_misses_of_a_datagram_are_answered() -> None:
    case = Case()
    case.answering.heard(l3_miss("10.1.2.9") + l2_miss(lease(2).mac))
    assert case.kernel.changes == [HERE, BEHIND]


def test_what_is_not_known_is_not_answered_but_said() -> None:
    case = Case()
    case.answering.heard(l3_miss("10.1.7.1") + l2_miss("0e:00:00:00:00:07"))
    assert case.kernel.changes == []
    assert case.log == [
        "L3 miss: 10.1.7.1: in no node's subnet",
        "L2 miss: 0e:00:00:00:00:07: no node's VTEP",
    ]


def test_a_neighbour_to_be_confirmed_is_if_that_is_wanted() -> None:
    ignoring, answering = Case(), Case(refresh=True)
    for case in (ignoring, answering):
        case.answering.heard(refresh("10.1.2.9", lease(2).mac))
    assert ignoring.kernel.changes == []
    assert answering.kernel.changes == [HERE]


def test_the_echo_of_what_was_written_and_other_devices_are_ignored() -> None:
    case = Case()
    body = body_of(INDEX, Neighbour(POD, lease(2).mac), netlink.NUD_REACHABLE)
    case.answering.heard(message(netlink.RTM_NEWNEIGH, body))
    case.answering.heard(message(netlink.RTM_GETNEIGH, of_neighbour("10.1.2.9", index=INDEX + 1)))
    assert case.kernel.changes == []


def test_nothing_is_taken_away_before_it_is_known_what_there_is() -> None:
    case = Case(leases=None)
    case.kernel.now.forwarding["0e:00:00:00:00:44"] = IPv4Address("192.168.122.44")
    case.answering.correct()
    assert case.kernel.changes == []
    case.answering.learned([OWN])
    assert case.kernel.now.forwarding == {}


def test_the_same_leases_once_more_are_no_reason_to_look() -> None:
    case = Case()
    case.kernel.now.forwarding["0e:00:00:00:00:44"] = IPv4Address("192.168.122.44")
    case.answering.learned([OWN, lease(2)])
    assert case.kernel.changes == []


def test_what_cannot_be_written_is_amiss_until_it_can() -> None:
    case = Case()
    case.kernel.failing = errno.ENOBUFS
    case.answering.heard(l3_miss("10.1.2.9"))
    assert case.answering.amiss
    assert "cannot set neighbour 10.1.2.9" in case.log[-1]
    case.kernel.failing = 0
    case.answering.correct()
    assert not case.answering.amiss


@pytest.mark.parametrize(
    ("kind", "mac", "words"),
    [(netlink.RTM_DELLINK, OWN.mac, "gone"), (netlink.RTM_NEWLINK, "0e:00:00:00:00:55", "another MAC now")],
)
def test_without_its_device_it_ends(kind: int, mac: str, words: str) -> None:
    body = struct.pack("=BxHiII", 0, 1, INDEX, 0, 0) + attribute(3, b"flannel.1\0")
    body += attribute(1, bytes.fromhex(mac.replace(":", "")))
    with pytest.raises(DeviceGoneError, match=words):
        Case().answering.heard(message(kind, body))


def test_a_change_of_its_device_that_leaves_the_mac_is_none_of_its_business() -> None:
    body = struct.pack("=BxHiII", 0, 1, INDEX, 0, 0) + attribute(3, b"flannel.1\0")
    body += attribute(1, bytes.fromhex(OWN.mac.replace(":", "")))
    case = Case()
    case.answering.heard(message(netlink.RTM_NEWLINK, body))
    assert case.kernel.changes == []


def replica_of(*leases: Lease) -> Replica:
    replica = Replica(NETWORK, OWN)
    replica.replace(leases)
    return replica


def held(pods: dict[IPv4Address, Known] | None = None, forwarding: dict[str, str] | None = None) -> Held:
    return Held(pods or {}, {mac: IPv4Address(one) for mac, one in (forwarding or {}).items()}, {})


def test_by_miss_nothing_is_made_ahead() -> None:
    assert corrections(replica_of(lease(2), lease(3)), MISS, held()) == []


def test_with_layer_2_ahead_each_node_has_a_forwarding_entry() -> None:
    wanted = [
        Set(Forwarding(lease(2).mac, lease(2).address)),
        Set(Forwarding(lease(3).mac, lease(3).address)),
    ]
    assert corrections(replica_of(lease(2), lease(3)), L3_MISS, held()) == wanted


def test_with_all_ahead_each_node_has_a_route_a_neighbour_and_a_forwarding_entry() -> None:
    two = lease(2)
    assert corrections(replica_of(two), AHEAD, held()) == [
        Set(Forwarding(two.mac, two.address)),
        Set(Neighbour(two.vtep, two.mac)),
        Set(Route(two.subnet, two.vtep)),
    ]


@pytest.mark.parametrize("generation", [MISS, L3_MISS, AHEAD])
def test_what_is_right_stays(generation: Generation) -> None:
    kernel, replica = MemoryKernel(), replica_of(lease(2), lease(3))
    for change in corrections(replica, generation, kernel.held()):
        kernel.apply(change)
    assert corrections(replica, generation, kernel.held()) == []


@pytest.mark.parametrize("generation", [MISS, L3_MISS, AHEAD])
def test_of_a_node_that_is_gone_nothing_is_left(generation: Generation) -> None:
    kernel, replica = MemoryKernel(), replica_of(lease(2))
    for change in corrections(replica, generation, kernel.held()):
        kernel.apply(change)
    kernel.now.neighbours[POD] = Known(lease(2).mac, netlink.NUD_REACHABLE)
    kernel.now.forwarding[lease(2).mac] = lease(2).address
    for change in corrections(replica_of(), generation, kernel.held()):
        kernel.apply(change)
    assert kernel.held() == Held({}, {}, {})


def test_of_a_node_that_is_back_with_another_mac_the_entries_in_use_are_replaced() -> None:
    back = lease(2, mac="0e:00:00:00:00:aa")
    before = held({POD: Known(lease(2).mac, netlink.NUD_REACHABLE)}, {lease(2).mac: "192.168.122.2"})
    assert corrections(replica_of(back), MISS, before) == [
        Set(Forwarding(back.mac, back.address)),
        Set(Neighbour(POD, back.mac), lasting=False),
        Remove(Forwarding(lease(2).mac, lease(2).address)),
    ]


def test_of_a_node_that_is_back_with_another_address_the_forwarding_entry_is_replaced() -> None:
    back = lease(2, address="192.168.122.77")
    before = held({POD: Known(back.mac, netlink.NUD_STALE)}, {back.mac: "192.168.122.2"})
    assert corrections(replica_of(back), MISS, before) == [Set(Forwarding(back.mac, back.address))]


def test_an_address_that_was_asked_for_in_vain_is_answered_once_it_is_known() -> None:
    asked = held({POD: Known("", netlink.NUD_INCOMPLETE)})
    assert corrections(replica_of(), MISS, asked) == []
    assert corrections(replica_of(lease(2)), MISS, asked) == [
        Set(Neighbour(POD, lease(2).mac), lasting=False)
    ]


def test_an_address_that_was_given_up_is_asked_for_again_by_its_next_packet() -> None:
    assert corrections(replica_of(lease(2)), MISS, held({POD: Known("", netlink.NUD_FAILED)})) == []


def test_what_nobody_is_asked_about_is_left_alone() -> None:
    multicast = held({IPv4Address("224.0.0.22"): Known("01:00:5e:00:00:16", netlink.NUD_NOARP)})
    for generation in (MISS, L3_MISS, AHEAD):
        assert corrections(replica_of(), generation, multicast) == []


def test_pods_that_were_neighbours_are_behind_their_nodes_vtep_with_routes() -> None:
    before = held({POD: Known(lease(2).mac, netlink.NUD_REACHABLE)}, {lease(2).mac: "192.168.122.2"})
    assert corrections(replica_of(lease(2)), AHEAD, before) == [
        Set(Neighbour(lease(2).vtep, lease(2).mac)),
        Set(Route(lease(2).subnet, lease(2).vtep)),
        Remove(Neighbour(POD, lease(2).mac)),
    ]


def test_a_neighbour_that_would_expire_is_made_to_last_with_all_ahead() -> None:
    two = lease(2)
    before = Held(
        {two.vtep: Known(two.mac, netlink.NUD_REACHABLE)}, {two.mac: two.address}, {two.subnet: two.vtep}
    )
    assert corrections(replica_of(two), AHEAD, before) == [Set(Neighbour(two.vtep, two.mac))]


@pytest.fixture
def replica() -> Replica:
    return Replica(NETWORK, OWN)


def test_it_is_complete_once_it_was_told_even_of_nobody(replica: Replica) -> None:
    assert not replica.complete
    assert replica.replace([])
    assert replica.complete


def test_it_tells_whether_there_is_news(replica: Replica) -> None:
    replica.replace([lease(2)])
    assert not replica.replace([lease(2)])
    assert not replica.replace([OWN, lease(2)])
    assert replica.replace([lease(2), lease(3)])
    assert replica.replace([lease(2)])


def test_an_address_is_behind_the_smallest_subnet_that_holds_it(replica: Replica) -> None:
    wide = Lease(IPv4Network("10.1.0.0/17"), IPv4Address("192.168.122.9"), "0e:00:00:00:00:09")
    replica.replace([wide, lease(2)])
    assert replica.holding(IPv4Address("10.1.2.255")) == lease(2)
    assert replica.holding(IPv4Address("10.1.3.0")) == wide
    assert replica.holding(IPv4Address("10.1.128.1")) is None
    assert replica.holding(IPv4Address("10.2.2.1")) is None


def test_of_two_leases_of_a_vtep_the_last_says_where_it_is(replica: Replica) -> None:
    before, after = lease(2, "0e:00:00:00:00:99"), lease(3, "0e:00:00:00:00:99")
    replica.replace([before, after])
    assert replica.at("0e:00:00:00:00:99") == after
    replica.replace([after, before])
    assert replica.at("0e:00:00:00:00:99") == before
    replica.replace([after])
    assert replica.at("0e:00:00:00:00:99") == after


@pytest.mark.parametrize(
    "one",
    [
        OWN,
        lease(5, mac=OWN.mac),  # the node's own, of a subnet that it had before
        lease(5, address=str(OWN.address)),
        *(
            Lease(IPv4Network((OWN.subnet[at], length)), IPv4Address("192.168.122.5"), "0e:00:00:00:00:05")
            for at, length in ((0, 25), (128, 25), (5, 32))  # parts of its own subnet
        ),
        Lease(IPv4Network("10.2.5.0/24"), IPv4Address("192.168.122.5"), "0e:00:00:00:00:05"),
        Lease(IPv4Network("0.0.0.0/0"), IPv4Address("192.168.122.5"), "0e:00:00:00:00:05"),
    ],
)
def test_what_is_the_own_nodes_or_outside_the_overlay_is_not_anothers(replica: Replica, one: Lease) -> None:
    replica.replace([one, lease(2)])
    assert list(replica) == [lease(2)]
