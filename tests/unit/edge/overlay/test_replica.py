"""What a node knows of the others, and what it does not take for another node's."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

import pytest

from edge.overlay.leases import Lease
from edge.overlay.replica import Replica
from tests.unit.edge.overlay.kernels import NETWORK, OWN, lease


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
