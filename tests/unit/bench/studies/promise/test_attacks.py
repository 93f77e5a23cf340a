"""Attacks are data: what each sends, and whom it reaches."""

from __future__ import annotations

import socket
from dataclasses import replace

import pytest
from concorde.node.shares import NEIGHBOURS

from bench.studies.promise.attacks import ATTACKS, SAMPLE, Attack, Scene, Tunnel, possible, sample
from bench.studies.promise.frames import checksum, ethernet, ipv4, octets

NODE, OTHER_NODE = "192.168.9.1", "192.168.9.2"
SCENE = Scene(
    own=("0a:58:ac:10:01:03", "172.16.1.3"),
    neighbour=("0a:58:ac:10:01:02", "172.16.1.2"),
    gateway=("0a:58:ac:10:01:01", "172.16.1.1"),
    remote="172.16.2.2",
    nobody_here=["172.16.1.200"],
    nobody_beyond=["172.16.2.200", "192.168.9.200"],
    on_link=[f"192.168.{number >> 8}.{number & 255}" for number in range(1000)],
    node_beyond=OTHER_NODE,
    tunnel=Tunnel(8472, 1, ("0e:00:00:00:00:01", NODE), ("0e:00:00:00:00:02", OTHER_NODE)),
)


def named(name: str) -> Attack:
    return next(attack for attack in ATTACKS if attack.name == name)


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_every_attack_says_what_it_does_and_has_frames(attack: Attack) -> None:
    frames = attack.frames(SCENE)
    assert frames
    assert all(14 <= len(frame) <= 1514 for frame in frames)
    assert attack.frames.__doc__


def test_attacks_have_names_of_their_own() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_what_reaches_nobody_else_goes_to_the_kits_own_pods_and_the_nodes() -> None:
    """By hardware address to the gateway, the neighbour, or LLDP's, which no bridge forwards."""
    known_ends = {octets(end[0]) for end in (SCENE.gateway, SCENE.neighbour)}
    known_ends.add(octets("01:80:c2:00:00:0e"))
    ends = SCENE.remote, SCENE.gateway[1], SCENE.neighbour[1], NODE, OTHER_NODE
    targets = {socket.inet_aton(address) for address in ends}
    for attack in possible(SCENE, only_own=True):
        for frame in attack.frames(SCENE):
            assert frame[:6] in known_ends, attack.name
            if frame[12:14] == b"\x08\x00":
                assert frame[30:34] in targets, attack.name


def test_where_others_are_those_attacks_are_left_out_that_reach_them() -> None:
    names = {attack.name for attack in possible(SCENE, only_own=True)}
    assert names.isdisjoint({"broadcast", "questions", "unreachable", "nobody-here", "control-port"})
    assert names.isdisjoint({"next-hops", "first-fragments", "connections"})  # they fill others' tables
    assert names >= {"acknowledgements", "smallest"}
    assert {attack.name for attack in possible(SCENE, only_own=False)} == {a.name for a in ATTACKS}


def test_a_connection_is_asked_for_as_the_rfcs_have_it() -> None:
    (frame,) = named("control-port").frames(SCENE)
    segment, ends = frame[34:], frame[26:34]
    assert frame[23] == socket.IPPROTO_TCP
    assert segment[2:4] == (22).to_bytes(2)
    assert segment[13] == 0x02
    assert checksum(ends + bytes([0, 6]) + len(segment).to_bytes(2) + segment) == 0
    nowhere = possible(replace(SCENE, node_beyond=""), only_own=False)
    assert named("control-port") not in nowhere


def test_an_error_is_about_what_was_sent_to_somebody_else() -> None:
    frames = named("complaints").frames(SCENE)
    assert len(frames) == 4
    for frame in frames:
        error = frame[34:]
        assert error[:2] == bytes([3, 4])
        assert checksum(error) == 0
        assert error[8 + 12 : 8 + 16] == frame[30:34]  # who is told has sent it
        assert error[8 + 16 : 8 + 20] in {socket.inet_aton(a) for a in (SCENE.remote, OTHER_NODE)}


def test_without_a_tunnel_nothing_is_sent_into_one() -> None:
    routed = replace(SCENE, tunnel=None)
    left = possible(routed, only_own=False)
    assert not [attack for attack in left if attack.needs_tunnel]
    assert all(attack.frames(routed) for attack in left)


def test_a_packet_is_as_the_rfcs_have_it() -> None:
    packet = ipv4("10.0.0.1", "10.0.0.2", b"abcd")
    assert packet[0] == 0x45
    assert int.from_bytes(packet[2:4]) == len(packet) == 24
    assert checksum(packet[:20]) == 0
    assert ethernet("02:00:00:00:00:01", "02:00:00:00:00:02", 0x0800, b"")[12:] == b"\x08\x00"


def test_a_neighbours_packet_in_the_tunnel_comes_from_the_other_vtep() -> None:
    whole, first, second = named("to-own-vtep").frames(SCENE)
    assert whole[30:34] == socket.inet_aton(NODE)
    assert whole[36:38] == (8472).to_bytes(2)
    inner = whole[14 + 20 + 8 + 8 :]
    assert inner[:12] == octets("0e:00:00:00:00:01") + octets("0e:00:00:00:00:02")
    assert inner[26:30] == socket.inet_aton(SCENE.neighbour[1])
    assert first[34:] + second[34:] == whole[34:]


def test_of_the_table_of_neighbours_that_all_networks_of_a_machine_have_less_than_half_is_taken() -> None:
    hops = {frame[30:34] for frame in named("next-hops").frames(SCENE)}
    assert NEIGHBOURS < len(hops) < 1024 / 2
    assert hops <= {socket.inet_aton(address) for address in SCENE.on_link}


def test_beginnings_are_each_of_another_packet_and_fill_the_nodes_room_for_them() -> None:
    sent = named("first-fragments").frames(SCENE)
    assert len({frame[18:20] for frame in sent}) == len(sent)
    assert {frame[20:22] for frame in sent} == {b"\x20\x00"}  # more follow; the first
    assert {frame[30:34] for frame in sent} == {socket.inet_aton(SCENE.gateway[1])}
    lengths = [len(frame) - 34 for frame in sent]
    assert not any(length % 8 for length in lengths)
    assert min(lengths) == 8
    large = [length for length in lengths if length > 500]
    assert 2504 * len(large) > 4 << 20  # what each takes of ipfrag_high_thresh


def test_segments_are_as_the_rfcs_have_them_and_each_connection_has_its_port() -> None:
    asked, answers = (named(name).frames(SCENE) for name in ("connections", "acknowledgements"))
    for frames, flags in ((asked, 0x02), (answers, 0x10)):
        frame = frames[0]
        assert frame[47] == flags
        assert frame[30:34] == socket.inet_aton(SCENE.remote)
        whole = checksum(frame[26:34] + bytes([0, 6]) + len(frame[34:]).to_bytes(2) + frame[34:]) == 0
        assert whole == (frames is asked)  # nobody answers the others
    assert {len(frame) for frame in answers} == {54}
    ports = {frame[34:36] for frame in asked}
    assert len(ports) == len(asked) <= 65_536 / 2


def test_the_smallest_frame_has_nothing_but_headers() -> None:
    (frame,) = named("smallest").frames(SCENE)
    assert len(frame) == 42
    assert frame[30:34] == socket.inet_aton(SCENE.remote)


def test_a_sample_has_a_most_and_as_many_turns_as_it_takes_have_all() -> None:
    for count in (0, 1, SAMPLE, SAMPLE + 1, 5 * SAMPLE):
        attacks = [replace(named("smallest"), name=str(at)) for at in range(count)]
        turns = -(-count // SAMPLE)
        for day in (738_000, 738_001):
            tried = [attack for turn in range(turns) for attack in sample(attacks, day + turn)]
            assert sorted(one.name for one in tried) == sorted(one.name for one in attacks)
            assert len(sample(attacks, day)) <= SAMPLE


def test_another_days_sample_has_other_attacks() -> None:
    assert not {one.name for one in sample(ATTACKS, 0)} & {one.name for one in sample(ATTACKS, 1)}
