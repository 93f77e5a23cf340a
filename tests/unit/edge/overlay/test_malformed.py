"""Whatever comes that is not as it should be: nothing fails, and nothing is written to the kernel.

CONCORDE_OVERLAY_INPUTS says how many messages and values to try.
"""

from __future__ import annotations

import json
import random
import struct
from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from edge import netlink
from edge.http import AwayError, Json, UnfitError
from edge.overlay import leases
from edge.overlay.etcd import SUBNETS, Etcd
from tests import cases
from tests.unit.edge.overlay.kernels import (
    INDEX,
    NETWORK,
    OWN,
    attribute,
    l2_miss,
    l3_miss,
    lease,
    message,
    of_neighbour,
    refresh,
)
from tests.unit.edge.overlay.servers import Scripted, stored
from tests.unit.edge.overlay.test_answering import Case

pytestmark = pytest.mark.long

INPUTS = cases.count("CONCORDE_OVERLAY_INPUTS", 2000, 100_000)

Damage = Callable[[random.Random], bytes]


def sound(chance: random.Random) -> bytes:
    """A miss that would be answered, of node 2's pod or of its VTEP; or whether that is so still."""
    pod = f"10.1.2.{chance.randrange(256)}"
    made = (l3_miss(pod), l2_miss(lease(2).mac), refresh(pod, lease(2).mac))
    return chance.choice(made)


def cut(chance: random.Random) -> bytes:
    whole = sound(chance)
    return whole[: chance.randrange(len(whole))]


def cut_within_an_attribute(chance: random.Random) -> bytes:
    """The header says what is left; the last attribute is not whole."""
    body = sound(chance)[16:]
    last = 10 if body[-12:-8] == struct.pack("=HH", 10, 2) else 8  # bytes of it, without padding
    start = len(body) - (12 if last == 10 else 8)
    return message(netlink.RTM_GETNEIGH, body[: start + chance.randrange(1, last)])


def wrong_length_of_message(chance: random.Random) -> bytes:
    whole = sound(chance)
    wrong = chance.choice([chance.randrange(16), len(whole) + chance.randrange(1, 2**31)])
    return struct.pack("=I", wrong) + whole[4:]


def wrong_length_of_attribute(chance: random.Random) -> bytes:
    whole = sound(chance)
    wrong = chance.choice([chance.randrange(4), len(whole) - 28 + chance.randrange(1, 60000)])
    return whole[:28] + struct.pack("=H", wrong) + whole[30:]


def wrong_size_of_address(chance: random.Random) -> bytes:
    size = chance.choice([0, 1, 2, 3, 5, 8, 16, 20])
    mac = chance.choice(["", lease(2).mac])
    return message(netlink.RTM_GETNEIGH, of_neighbour(mac=mac) + attribute(1, chance.randbytes(size)))


def wrong_size_of_mac(chance: random.Random) -> bytes:
    size = chance.choice([0, 1, 5, 7, 8, 20, 32])
    address = chance.choice(["", "10.1.2.9"])
    return message(netlink.RTM_GETNEIGH, of_neighbour(address) + attribute(2, chance.randbytes(size)))


def wrong_family(chance: random.Random) -> bytes:
    family = chance.choice([0, 1, 10, 16, 28, 255])
    return message(netlink.RTM_GETNEIGH, of_neighbour("10.1.2.9", family=family))


def wrong_device(chance: random.Random) -> bytes:
    index = chance.choice([0, -1, INDEX + 1, 2**31 - 1])
    return message(netlink.RTM_GETNEIGH, of_neighbour("10.1.2.9", index=index))


def wrong_kind(chance: random.Random) -> bytes:
    kinds = [kind for kind in range(120) if kind != netlink.RTM_GETNEIGH]
    return message(chance.choice(kinds), sound(chance)[16:])


def neither_address_nor_mac(chance: random.Random) -> bytes:
    return message(
        netlink.RTM_GETNEIGH, of_neighbour() + attribute(99, chance.randbytes(chance.randrange(9)))
    )


def noise(chance: random.Random) -> bytes:
    return chance.randbytes(chance.randrange(300))


DAMAGES: tuple[Damage, ...] = (
    cut,
    cut_within_an_attribute,
    wrong_length_of_message,
    wrong_length_of_attribute,
    wrong_size_of_address,
    wrong_size_of_mac,
    wrong_family,
    wrong_device,
    wrong_kind,
    neither_address_nor_mac,
    noise,
)


def test_what_is_sound_is_answered() -> None:
    chance, case = random.Random(cases.seed()), Case(refresh=True)
    for _ in range(50):
        case.answering.heard(sound(chance))
    assert len(case.kernel.changes) == 50


def test_malformed_messages_change_nothing() -> None:
    chance, case = random.Random(cases.seed()), Case(refresh=True)
    for number in range(INPUTS):
        datagram = DAMAGES[number % len(DAMAGES)](chance)
        case.answering.heard(datagram)
        assert case.kernel.changes == [], datagram.hex()


def junk(chance: random.Random, depth: int = 0) -> Any:
    """Anything JSON can say."""
    plain = [None, True, False, -1, 0, 2**70, 1.5, "", "vxlan", "10.1.2.0/24", "192.168.122.2", "\0", "ée"]
    if depth > 3 or chance.random() < 0.6:
        return chance.choice(plain)
    if chance.random() < 0.5:
        return [junk(chance, depth + 1) for _ in range(chance.randrange(4))]
    names = ["PublicIP", "BackendType", "BackendData", "VtepMAC", "kv", ""]
    return {chance.choice(names): junk(chance, depth + 1) for _ in range(chance.randrange(4))}


def bad_value(chance: random.Random) -> str:
    """A value of a store that is no lease."""
    whole = leases.text_of(lease(2))
    kind = chance.randrange(7)
    if kind == 0:
        return whole[: chance.randrange(len(whole))]
    if kind == 1:
        return json.dumps(junk(chance))
    if kind == 2:
        return chance.choice("[{\"'") * chance.randrange(1, 5000)
    value = json.loads(whole)
    if kind == 3:
        del value[chance.choice(["PublicIP", "BackendType", "BackendData"])]
    elif kind == 4:
        value["BackendType"] = chance.choice(["", "VXLAN", "udp", "host-gw", None, 1])
    elif kind == 5:
        hexes = "".join(chance.choice("0123456789abcdefg:- ") for _ in range(chance.choice([0, 5, 16, 18])))
        value["BackendData"] = {"VtepMAC": chance.choice([hexes, None, 1, [], "ff:ff:ff:ff:ff:ff"])}
    else:
        numbers = [str(chance.randrange(256, 999)) for _ in range(chance.randrange(6))]
        value["PublicIP"] = chance.choice([".".join(numbers), "::1", "255.255.255.255", 1, None])
    return json.dumps(value)


def bad_key(chance: random.Random) -> str:
    address = ".".join(str(chance.randrange(300)) for _ in range(chance.choice([3, 4, 5])))
    made = f"{address}-{chance.choice(['', '24', '33', '-1', '24x', '²'])}"
    try:
        leases.subnet_of(made)
    except UnfitError:
        return made
    return f"{made}/"


def test_malformed_values_are_no_leases() -> None:
    chance = random.Random(cases.seed())
    for _ in range(INPUTS):
        with pytest.raises(UnfitError):
            leases.parse(lease(2).subnet, bad_value(chance))
        with pytest.raises(UnfitError):
            leases.subnet_of(bad_key(chance))


def test_malformed_values_in_a_store_change_nothing_in_the_kernel() -> None:
    """In lists and in what follows them, on the whole way from etcd's answers to the kernel's entries."""
    chance, case = random.Random(cases.seed()), Case(leases=None)
    complaints: list[str] = []
    server = Scripted()
    etcd = Etcd(server, OWN, NETWORK, 1, 60, complaints.append)
    for _ in range(max(1, INPUTS // 200)):
        pairs = [stored(f"{SUBNETS}10.1.{at}.0-24", bad_value(chance)) for at in range(2, 52)]
        pairs += [stored(f"{SUBNETS}{bad_key(chance)}", leases.text_of(lease(2))) for _ in range(50)]
        changed = [stored(f"{SUBNETS}10.1.2.0-24", bad_value(chance), revision=9) for _ in range(50)]
        changes: list[Json] = [{"kv": pair} for pair in changed]
        changes += [
            {"type": "PUT", "kv": {**stored(SUBNETS, "", revision=9), "value": "%%%"}} for _ in range(50)
        ]
        server.others, server.said = pairs, [{"result": {"events": changes}}]
        for known in etcd.follow():
            assert known == [OWN]
            case.answering.learned(known)
            case.answering.heard(l3_miss("10.1.2.9") + l2_miss(lease(2).mac))
    assert case.kernel.changes == []
    assert len(complaints) >= max(1, INPUTS // 200) * 200


def test_answers_that_are_none_of_etcds_are_a_store_that_is_away() -> None:
    chance = random.Random(cases.seed())
    for _ in range(INPUTS // 10):
        server = Scripted()
        server.instead = {"header": junk(chance), "kvs": junk(chance), "x": b64encode(b"x").decode()}
        with pytest.raises(AwayError):
            list(Etcd(server, OWN, NETWORK, 1, 60).follow())
