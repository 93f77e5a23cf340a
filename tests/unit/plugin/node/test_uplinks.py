from __future__ import annotations

import ctypes
import fcntl
import io
import json
import struct

import pytest
from concorde import rtnetlink
from concorde.node import uplinks


def test_the_default_route_with_the_least_metric_counts() -> None:
    lines = [
        "eth1\t00000000\t0101A8C0\t0003\t0\t0\t200\t00000000\t0\t0\t0",
        "eth0\t00000000\t0102A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0",
        "eth2\t0000A8C0\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0",
    ]
    assert uplinks.default_device(lines) == "eth0"
    assert uplinks.default_device(lines[2:]) is None


@pytest.mark.parametrize(
    "line",
    [
        "eth0\t00000000\t0102A8C0\t0002\t0\t0\t0\t00000000\t0\t0\t0",  # not up
        "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0\t000000FF\t0\t0\t0",
        "eth0\t0000000A\t0102A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0",
        "eth0\t00000000\t0102A8C0\t0003\t0\t0\t0",
    ],
)
def test_what_is_no_default_route_does_not_count(line: str) -> None:
    assert uplinks.default_device([line]) is None


@pytest.mark.parametrize(
    ("low", "high", "speed"),
    [
        (10_000, 0, 10**10),
        (34464, 1, 10**11),  # 100,000 Mbit/s
        (0, 0, None),
        (0xFFFF, 0, None),
        (0xFFFF, 0xFFFF, None),
        (1, 0xFFFF, (0xFFFF << 16 | 1) * 10**6),
    ],
)
def test_a_drivers_speed_is_where_ethtool_has_it(
    low: int, high: int, speed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, bytes]] = []

    def ioctl(descriptor: int, number: int, request: bytes) -> None:
        name, pointer = struct.unpack_from("16sP", request)
        command = memoryview((ctypes.c_ubyte * 44).from_address(pointer)).cast("B")
        asked.append((number, name.rstrip(b"\0")))
        assert bytes(command) == struct.pack("I", 1) + bytes(40)  # ETHTOOL_GSET
        command[12:14], command[28:30] = struct.pack("=H", low), struct.pack("=H", high)

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    assert uplinks.speed("no-such-device") == speed
    assert asked == [(0x8946, b"no-such-device")]


@pytest.mark.parametrize(
    ("kinds", "told", "speed"),
    [
        ({"eth0": ""}, 10_000, 10**10),
        ({"eth0": "veth"}, 10_000, None),
        ({"eth0": "tun"}, 10, None),
        ({"eth0": "tun"}, 10_000, None),
        ({"eth0": "tun"}, 1_000, 10**9),  # somebody set that
        ({"br0": "bridge", "eth0": ""}, 10_000, 10**10),
        ({"br0": "bridge", "eth0": "vlan", "veth0": "veth"}, 10_000, None),
    ],
)
def test_a_speed_that_a_driver_makes_up_is_none(
    kinds: dict[str, str], told: int, speed: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each device lies on the next."""
    names = list(kinds)
    monkeypatch.setattr(uplinks, "_driver_speed", lambda name: told)
    monkeypatch.setattr(rtnetlink, "link_kind", kinds.get)
    monkeypatch.setattr(rtnetlink, "beneath", lambda name: names[names.index(name) + 1 :][:1])
    assert uplinks.speed(names[0]) == speed


def test_a_device_that_tells_none_has_no_speed() -> None:
    assert uplinks.speed("lo") is None
    assert uplinks.speed("no-such-device") is None


def test_the_default_route_is_the_kernels_to_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    route = "Iface\tDestination\neth7\t00000000\t0\t0001\t0\t0\t5\t00000000\t0\t0\t0\n"
    monkeypatch.setattr("builtins.open", lambda file: io.StringIO(route))
    assert uplinks.of_default_route() == "eth7"


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
    assert uplinks.waiting(SHOWN, "eth0") == {"arp_cache": 3, "ndisc_cache": 9}
    assert uplinks.waiting(SHOWN, "eth1") == uplinks.waiting("", "eth0") == {}


def test_only_what_was_shortened_is_made_as_it_was() -> None:
    assert uplinks.as_made(SHOWN, "eth0") == "ntable change name arp_cache dev eth0 queue 77\n"


def test_what_ip_prints_of_vteps_is_read() -> None:
    shown = '[{},{"ifname":"flannel.1","gso_max_segs":65535},{"ifname":"vx","gso_max_segs":1}]'
    assert uplinks.segments(shown) == {"flannel.1": 65535, "vx": 1}
    assert uplinks.segments("") == {}
    assert uplinks.take_apart("flannel.1") == "link set dev flannel.1 gso_max_segs 1\n"
