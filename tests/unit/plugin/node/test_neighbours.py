from __future__ import annotations

import json

from concorde.node import neighbours

SHOWN = json.dumps(
    [
        {"family": "inet", "name": "arp_cache", "thresh1": 128, "refcnt": 1, "queue": 77},
        {"family": "inet", "name": "arp_cache", "dev": "*", "refcnt": 1},
        {"family": "inet", "name": "arp_cache", "dev": "lo", "queue": 101},
        {"family": "inet", "name": "arp_cache", "dev": "eth0", "queue": 3},
        {"family": "inet6", "name": "ndisc_cache", "dev": "eth0", "queue": 9},
        {"family": "inet6", "name": "ndisc_cache", "thresh1": 128, "refcnt": 1, "queue": 101},
    ]
)


def test_each_interface_has_its_own_queues() -> None:
    assert neighbours.read(SHOWN, "eth0") == {"arp_cache": 3, "ndisc_cache": 9}
    assert neighbours.read(SHOWN, "eth1") == neighbours.read("", "eth0") == {}


def test_only_what_was_shortened_is_made_as_it_was() -> None:
    assert neighbours.as_made(SHOWN, "eth0") == "ntable change name arp_cache dev eth0 queue 77\n"
