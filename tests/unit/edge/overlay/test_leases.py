"""flannel's records: what counts as one, and what is wrong with what does not."""

from __future__ import annotations

import json
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Any

import pytest

from edge.http import UnfitError
from edge.overlay import leases
from edge.overlay.leases import Lease
from tests.unit.edge.overlay.kernels import OWN, lease

# As it stands in the etcd of the first flannel's users.
VALUE = '{"PublicIP":"192.168.122.102","BackendType":"vxlan","BackendData":{"VtepMAC":"ee:c6:29:27:73:7a"}}'
LEASE = Lease(IPv4Network("10.1.65.0/24"), IPv4Address("192.168.122.102"), "ee:c6:29:27:73:7a")


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(VALUE), **fields})


def test_key_and_value_are_flannels() -> None:
    assert leases.key_of(LEASE.subnet) == "10.1.65.0-24"
    assert leases.text_of(LEASE) == VALUE


def test_key_and_value_are_read() -> None:
    assert leases.parse(leases.subnet_of("10.1.65.0-24"), VALUE) == LEASE


def test_what_a_later_flannel_says_besides_does_not_matter() -> None:
    data = {"VNI": 1, "VtepMAC": "EE:C6:29:27:73:7A"}
    assert leases.parse(LEASE.subnet, changed(BackendData=data, PublicIPv6=None)) == LEASE


@pytest.mark.parametrize(
    "key", ["", "10.1.65.0", "10.1.65.0-33", "10.1.65.1-24", "10.1.65.0-24x", "300.1.65.0-24", "10.1.65.0/24"]
)
def test_a_key_that_names_no_subnet_is_unfit(key: str) -> None:
    with pytest.raises(UnfitError):
        leases.subnet_of(key)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "not a JSON object"),
        ("{}", "backend"),
        (changed(BackendType="host-gw"), "'host-gw', not 'vxlan'"),
        (changed(PublicIP=1), "must be a string"),
        (changed(PublicIP="192.168.122"), "public address"),
        (changed(PublicIP="224.0.0.1"), "cannot be a node's"),
        (changed(PublicIP="0.0.0.0"), "cannot be a node's"),
        (changed(PublicIP="127.0.0.1"), "cannot be a node's"),
        (changed(BackendData=None), "MAC"),
        (changed(BackendData=[]), "MAC"),
        (changed(BackendData={"VtepMAC": 5}), "MAC"),
        (changed(BackendData={"VtepMAC": "ee:c6:29:27:73"}), "is not like"),
        (changed(BackendData={"VtepMAC": "01:c6:29:27:73:7a"}), "cannot be a device's"),
        (changed(BackendData={"VtepMAC": "00:00:00:00:00:00"}), "cannot be a device's"),
        (changed(BackendData="{"), "not valid JSON"),
    ],
)
def test_a_value_that_is_none_says_why(value: str, words: str) -> None:
    with pytest.raises(UnfitError, match=words):
        leases.parse(LEASE.subnet, value)


def test_each_lease_is_a_line_in_the_order_of_subnets(tmp_path: Path) -> None:
    file = tmp_path / "leases"
    leases.report(file, [lease(10), OWN, lease(2)])
    assert file.read_text(encoding="utf-8") == (
        "10.1.1.0/24 at 0e:00:00:00:00:01 behind 192.168.122.1\n"
        "10.1.2.0/24 at 0e:00:00:00:00:02 behind 192.168.122.2\n"
        "10.1.10.0/24 at 0e:00:00:00:00:0a behind 192.168.122.10\n"
    )
    assert list(tmp_path.iterdir()) == [file]
