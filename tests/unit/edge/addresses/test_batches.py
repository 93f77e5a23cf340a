"""Texts whose blocks are filled in; how entries follow each other is tested where studies do the same."""

from __future__ import annotations

from ipaddress import IPv4Network

import pytest

from edge.addresses.batches import LENGTH, SUBNET, difference, filled, placeholder

A, B = IPv4Network("10.1.0.0/29"), IPv4Network("10.2.0.0/24")
TEMPLATE = [
    ("", f"address add {placeholder('a', 0)}/32 dev x\n"),
    ("b", f"route add {placeholder('b', SUBNET)} via {placeholder('b', 0)} dev x\n"),
]


def test_blocks_their_lengths_and_addresses_are_filled_in() -> None:
    line = " ".join(placeholder("a", what) for what in (SUBNET, LENGTH, 0, 1, -2))
    assert filled([("", line)], {"a": A}) == "10.1.0.0/29 29 10.1.0.0 10.1.0.1 10.1.0.6"


def test_lines_of_nodes_without_a_block_are_left_out() -> None:
    assert filled(TEMPLATE, {"a": A}) == "address add 10.1.0.0/32 dev x\n"
    assert filled(TEMPLATE, {"a": A, "b": B}).splitlines()[1] == "route add 10.2.0.0/24 via 10.2.0.0 dev x"


def test_an_address_outside_of_a_block_and_an_unknown_block_are_errors() -> None:
    with pytest.raises(IndexError):
        filled([("", placeholder("a", 8))], {"a": A})
    with pytest.raises(KeyError):
        filled([("", placeholder("b", 0))], {"a": A})


def test_what_is_no_placeholder_stays() -> None:
    text = 'a "${HOME}" ${a} ${a x}'
    assert filled([("", text)], {"a": A}) == text


def test_a_device_goes_by_its_name() -> None:
    assert difference("link add x type dummy\nlink set x up\n", "") == "link del x\n"
