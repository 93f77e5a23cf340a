from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from concorde import addresses
from concorde.cni import ALREADY_ATTACHED, NO_FREE_ADDRESS, CniError
from concorde.leases import Lease, Link, Terms, lease_of
from concorde.node.ledger import Ledger
from hypothesis import given
from hypothesis import strategies as st

NET = "net"
SUBNET = addresses.parse_subnet("172.16.1.0/29")
POD = Terms("pod", 10**9, 2 * 10**9, 10**9, 10 << 20)


def attach(book: Ledger, name: str, subnet: addresses.Subnet = SUBNET) -> str:
    with book:
        address = book.next_address(NET, subnet)
        book.add(NET, Lease(name, "eth0", POD, Link("eth0", 1450, address, subnet, "cni-a", f"veth-{name}")))
    return addresses.dotted(address)


def drop(book: Ledger, name: str) -> None:
    with book:
        book.drop((NET, name, "eth0"))


def test_the_first_pod_gets_the_second_usable_address(tmp_path: Path) -> None:
    assert attach(Ledger(str(tmp_path)), "a") == "172.16.1.2"


def test_a_freed_address_is_not_given_out_at_once(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    attach(book, "a")
    drop(book, "a")
    assert attach(book, "a") == "172.16.1.3"


def test_a_full_subnet_is_an_error_until_an_address_is_free(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    given_out = [attach(book, name) for name in "abcde"]
    assert given_out == [f"172.16.1.{n}" for n in (2, 3, 4, 5, 6)]
    assert book.free_addresses(SUBNET) == 0
    with pytest.raises(CniError, match=r"all 5 addresses of subnet 172\.16\.1\.0/29") as caught:
        attach(book, "f")
    assert caught.value.code == NO_FREE_ADDRESS
    drop(book, "c")
    assert attach(book, "f") == "172.16.1.4"


def test_a_second_lease_for_an_attachment_is_refused_and_takes_no_address(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    attach(book, "a")
    with pytest.raises(CniError) as caught:
        attach(book, "a")
    assert caught.value.code == ALREADY_ATTACHED
    assert attach(book, "b") == "172.16.1.3"


def test_a_lease_is_read_back_whole(tmp_path: Path) -> None:
    attach(Ledger(str(tmp_path)), "a")
    lease = Ledger(str(tmp_path)).lease((NET, "a", "eth0"))
    assert lease is not None
    assert lease.link is not None
    assert vars(lease.terms) == vars(POD)
    assert (str(lease.link.subnet), lease.link.bridge, lease.link.mtu) == (str(SUBNET), "cni-a", 1450)


def test_a_chained_lease_holds_no_address(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    for name in "ab":
        with book:
            book.add(NET, Lease(name, "eth0", POD, None))
    assert [lease.link for lease in book.leases().values()] == [None, None]


def test_a_new_subnet_starts_at_its_own_beginning(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path))
    attach(book, "a")
    assert attach(book, "b", addresses.parse_subnet("172.16.9.0/24")) == "172.16.9.2"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 7)), max_size=40))
def test_no_two_leases_ever_share_an_address(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, int]]
) -> None:
    book = Ledger(str(tmp_path_factory.mktemp("book")))
    held: dict[int, str] = {}
    for adding, pod in steps:
        if not adding:
            drop(book, str(pod))
            held.pop(pod, None)
        elif pod not in held and len(held) < SUBNET.size:
            address = attach(book, str(pod))
            assert address not in held.values()
            held[pod] = address
    assert len(book.leases()) == len(held) == SUBNET.size - book.free_addresses(SUBNET)


ROW: dict[str, Any] = {
    "network": NET, "container": "a", "interface": "eth0", "enforcement": "pod", "guarantee": 1,
    "ceiling": 2, "rate": 3, "burst": 4, "answers": 5, "mtu": 1450, "address": SUBNET.network + 2,
    "subnet": str(SUBNET), "bridge": "cni-a", "host_veth": "veth1", "ingress": 6,
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [
        {"container": "a b"}, {"interface": "a/b"}, {"enforcement": "other"}, {"guarantee": "1"},
        {"ceiling": 1.5}, {"rate": b"1"}, {"burst": ""}, {"answers": "5"}, {"ingress": "6"},
        {"bridge": "a/b"}, {"host_veth": ""}, {"mtu": None}, {"address": -1}, {"address": 1 << 32},
        {"subnet": "172.16.1.1/29"}, {"subnet": None}, {"bridge": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_row_that_no_add_wrote_is_none(changed: dict[str, Any]) -> None:
    assert vars(lease_of(tuple(ROW.values())).terms)["rate"] == 3
    with pytest.raises((AttributeError, TypeError, ValueError)):
        lease_of(tuple({**ROW, **changed}.values()))


def test_a_row_says_what_a_lease_holds_and_the_least_and_last_address_are_some() -> None:
    lease = lease_of(tuple(ROW.values()))
    assert lease.link is not None
    promised = {"guarantee": 1, "ceiling": 2, "answers": 5, "ingress": 6}
    assert vars(lease.terms) == {"enforcement": "pod", **promised, "rate": 3, "burst": 4}
    assert (lease.link.mtu, lease.link.bridge, lease.link.host_veth) == (1450, "cni-a", "veth1")
    for address in (0, (1 << 32) - 1):
        found = lease_of(tuple({**ROW, "address": address}.values())).link
        assert found is not None
        assert found.address == address
    without = {**ROW, "address": None, "mtu": None, "subnet": None, "bridge": None, "host_veth": None}
    assert lease_of(tuple(without.values())).link is None
