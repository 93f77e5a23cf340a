"""Machines as they are found before a run."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network

from testbed.providers.ssh.plan import Interface, MachineState

UPLINK = Interface("ens5", 1500, (IPv4Address("192.168.56.13"),))


EMPTY = MachineState(
    (UPLINK,), (IPv4Network("192.168.56.0/24"),), frozenset(), False, frozenset(), {}, frozenset(), "0"
)
