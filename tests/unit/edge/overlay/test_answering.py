"""Misses and their answers, and what is no reason to write anything."""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from ipaddress import IPv4Address

import pytest

from edge import netlink
from edge.overlay.answering import Answering, DeviceGoneError
from edge.overlay.corrections import Generation, Replica
from edge.overlay.entries import Forwarding, Neighbour, Set, body_of
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
