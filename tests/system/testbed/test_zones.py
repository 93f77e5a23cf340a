"""Zones for real: what the kernel has of them, how long packets take, and what the relay makes of attacks."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from testbed.access.place import Node, Place
from testbed.assembly import assemble
from testbed.links import relay as relay_program
from testbed.links import trunks
from testbed.links.trunks import Counted, Delayed
from testbed.scenario import load
from testbed.scenario.model import Scenario, Zone
from testbed.testbed import Testbed
from tests import cases
from tests.paths import ROOT
from tests.system.testbed import round_trips
from tests.waiting import PATIENCE

STATIONS = ROOT / "scenarios" / "examples" / "two-stations.yaml"
PYTHON = ["/usr/bin/python3", "-I", "-S"]
ECHO = [*PYTHON, str(round_trips.__file__)]
PORT = 7000
GAP = 0.01  # between two round trips, seconds
DELAY = 0.005


def stations(*overrides: str) -> Scenario:
    """Two stations of which one trunk takes time, and as many nodes as it takes to see that."""
    return load(STATIONS, [f"zones.south.delay={DELAY}", "zones.north.delay=0", *overrides])


@pytest.fixture(scope="module")
def apart() -> Iterator[Testbed]:
    with brought_up(stations()) as testbed:
        yield testbed


def brought_up(scenario: Scenario) -> AbstractContextManager[Testbed]:
    return assemble(scenario, "netns", "cni").running()


@contextmanager
def answering(node: Node, address: str, directory: Path) -> Iterator[None]:
    """Let a node send back what it gets, until the end of the block."""
    said = directory / "answering"
    server = node.start([*ECHO, "answer", address, str(PORT)], stdout=said, stderr=directory / "errors")
    try:
        deadline = time.monotonic() + PATIENCE
        while not said.read_text():
            assert server.wait(timeout=0.01) is None, (directory / "errors").read_text()
            assert time.monotonic() < deadline
        yield
    finally:
        server.kill()


def round_trips_of(source: Node, address: str, count: int) -> list[float]:
    asked = source.run([*ECHO, "ask", address, str(PORT), str(count), str(GAP)])
    took: list[float | None] = json.loads(asked.stdout)
    assert None not in took
    return [seconds for seconds in took if seconds is not None]


def counted(testbed: Testbed) -> dict[bool, Counted]:
    """Return what the one trunk that takes time has counted since this was asked last, by direction."""
    told = [one for trunk in testbed.provider.trunks for one in trunk.delayed()]
    assert {(one.zone, one.means, one.delay_s) for one in told} == {("south", told[0].means, DELAY)}
    return {one.out: count(one) for one in told}


def count(one: Delayed) -> Counted:
    if one.counted is None:
        pytest.skip("netem makes the delay here, and counts nothing")
    return one.counted


def passed(testbed: Testbed, device: str) -> tuple[int, int]:
    """Return the bytes that an interface between the nodes has received and sent."""
    (link,) = switch(testbed).run(["ip", "-j", "-s", "link", "show", "dev", device]).json()
    return link["stats64"]["rx"]["bytes"], link["stats64"]["tx"]["bytes"]


def sent_by(testbed: Testbed, node: str) -> int:
    """Return the bytes that a node has sent to others."""
    (link,) = testbed.nodes[node].run(["ip", "-j", "-s", "link", "show", "dev", "eth0"]).json()
    sent: int = link["stats64"]["tx"]["bytes"]
    return sent


def switch(testbed: Testbed) -> Place:
    (place,) = testbed.provider.hops
    return place


def relay(testbed: Testbed) -> int:
    """Return the process id of the relay, in the sandbox."""
    return int(switch(testbed).run(["cat", "/run/testbed/relays/trunk1/pid"]).stdout)


def memory(testbed: Testbed) -> int:
    """Return what the relay has of memory, bytes."""
    status = switch(testbed).run(["cat", f"/proc/{relay(testbed)}/status"]).stdout
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    assert found
    return int(found[1]) * 1024


def test_each_zone_has_a_switch_and_a_trunk_to_the_core(apart: Testbed) -> None:
    links = switch(apart).run(["ip", "-j", "link"]).json()
    plugged = {link["ifname"]: link["master"] for link in links if "master" in link}
    assert plugged == {
        "trunk0": "zone0",
        "trunk0-core": "switch",
        "trunk1": "zone1",
        "trunk1-core": "switch",
        **dict.fromkeys(("port0", "port1", "port2"), "zone0"),
        "port3": "zone1",
    }
    assert all("UP" in link["flags"] for link in links if link["ifname"] in plugged)


def test_links_and_trunks_have_their_rates(apart: Testbed) -> None:
    qdiscs = switch(apart).run(["tc", "-j", "qdisc"]).json()
    rates = {one["dev"]: one["options"]["rate"] * 8 for one in qdiscs if one["kind"] == "tbf"}
    assert rates["port3"] == rates["port3-in"] == 4 * 10**8
    assert rates["port1"] == rates["trunk0"] == rates["trunk0-core"] == 10**9
    assert rates["trunk1"] == rates["trunk1-core"] == 5 * 10**8


@pytest.mark.alone
def test_a_trunk_takes_its_time_each_way_and_within_a_zone_there_is_none(
    apart: Testbed, tmp_path: Path
) -> None:
    far, near = (str(apart.addressing.address(name)) for name in ("worker-03", "worker-02"))
    with answering(apart.nodes["worker-03"], far, tmp_path):
        round_trips_of(apart.nodes["worker-01"], far, 5)  # who has which address

        def judge(factor: int) -> None:
            counted(apart)
            took = round_trips_of(apart.nodes["worker-01"], far, 20 * factor)
            # Never less than what was asked for; how much more depends on what else this machine does.
            assert min(took) >= 2 * DELAY - 0.0005
            assert statistics.median(took) < 2 * DELAY + 0.01
            for one in counted(apart).values():
                # Who has which address is asked again now and then.
                assert 20 * factor <= one.frames <= 30 * factor
                assert sum(one.lateness) == one.frames
                assert one.dropped == 0

        cases.with_more_samples(judge)
    with answering(apart.nodes["worker-02"], near, tmp_path):
        assert min(round_trips_of(apart.nodes["worker-01"], near, 10)) < DELAY


def test_bytes_cross_the_trunks_of_both_zones_and_no_others(apart: Testbed) -> None:
    before = {name: passed(apart, name) for name in ("trunk0", "trunk1")}
    size = 2**20
    assert sent(apart, "worker-01", "worker-03", size) == size
    for name, out in (("trunk0", True), ("trunk1", False)):
        received, given = (after - old for after, old in zip(passed(apart, name), before[name], strict=True))
        # A bridge's port sends what leaves it, and receives what comes in.
        there, back = (given, received) if out else (received, given)
        assert size < there < 2 * size  # once, and what TCP sends again if a trunk is late
        assert back < 0.1 * size
    before = {name: passed(apart, name) for name in ("trunk0", "trunk1")}
    assert sent(apart, "worker-01", "worker-02", size) == size
    for name, (received, given) in before.items():
        assert sum(passed(apart, name)) - received - given < 0.01 * size


@pytest.mark.skipif(not shutil.which("ping"), reason="no ping here (Debian: iputils-ping)")
def test_pods_reach_each_other_across_the_trunk(apart: Testbed) -> None:
    done = apart.pods["A-1"].run(["ping", "-q", "-c", "3", "-i", "0.05", apart.pods["A-4"].address])
    least = re.search(r"= ([\d.]+)/", done.stdout)
    assert least
    assert float(least[1]) >= 2 * DELAY * 1000 - 0.5


# The kernel's own frames, IPv6's, come as well, and are noted.
NOTES = """
import json, os, socket, subprocess, sys, time
sys.path.insert(0, sys.argv[1])
import relay
tap = relay.opened("noted")
notes = relay.Notes("noted")
subprocess.run(["ip", "link", "set", "noted", "up"], check=True)
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("noted", 0))
spans, begun = {}, time.monotonic_ns()
for number in range(40):
    frame = bytes([number]) * 12 + b"\\x88\\xb5" + bytes(30 * number)
    before = time.monotonic_ns()
    out.send(frame)
    spans[frame] = before, time.monotonic_ns()
    os.write(tap, bytes(24) + frame)
inside = []
while spans:
    frame, came = os.read(tap, 65536), notes.next(begun)
    for header in (24, 10):
        if span := spans.pop(frame[header:], None):
            inside.append(span[0] <= came <= span[1])
print(json.dumps(inside))
"""


def test_the_kernel_notes_when_it_handed_over_each_frame_however_late_it_is_read(apart: Testbed) -> None:
    directory = str(Path(relay_program.__file__).parent)
    said = switch(apart).run([*PYTHON, "-c", NOTES, directory], timeout=PATIENCE).json()
    assert said == [True] * 40


SENDS = """
import socket, sys
with socket.create_connection((sys.argv[1], 7100), 60) as client:
    client.sendall(bytes(int(sys.argv[2])))
"""
RECEIVES = """
import socket, sys
with socket.create_server((sys.argv[1], 7100)) as server:
    server.settimeout(60)
    open(sys.argv[2], "w").close()
    client, _ = server.accept()
    total = 0
    while part := client.recv(2**20):
        total += len(part)
    print(total)
"""


def sent(testbed: Testbed, source: str, destination: str, size: int) -> int:
    """Send so many bytes by TCP from node to node, and return how many arrived."""
    address, ready = str(testbed.addressing.address(destination)), "/run/receives"
    there = testbed.nodes[destination]
    with ThreadPoolExecutor() as pool:
        arrived = pool.submit(there.run, [*PYTHON, "-c", RECEIVES, address, ready], timeout=PATIENCE)
        there.run(["sh", "-c", f"while ! [ -e {ready} ]; do sleep 0.01; done; rm {ready}"], timeout=PATIENCE)
        testbed.nodes[source].run([*PYTHON, "-c", SENDS, address, str(size)], timeout=PATIENCE)
        return int(arrived.result().stdout)


# Frames that no kernel sends, to whoever the switches send them: a header alone, what says it is larger than
# it is, VLANs within VLANs, an unknown kind, random bytes; and the largest that the device takes.
MALFORMED = """
import os, random, socket, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind((sys.argv[1], 0))
chosen = random.Random(int(sys.argv[2]))
all, mine = b"\\xff" * 6, out.getsockname()[4]
kinds = [b"\\x08\\0", b"\\x08\\x06", b"\\x81\\0\\0\\x01" * 4, b"\\x86\\xdd", b"\\0\\0", b"\\xff\\xff"]
for number in range(int(sys.argv[3])):
    size = chosen.choice([0, 1, 45, 46, 1000, int(sys.argv[4]) - 16])
    head = chosen.choice([all, mine, chosen.randbytes(6)]) + chosen.choice([mine, chosen.randbytes(6)])
    noise = chosen.randbytes(size)
    body = chosen.choice([bytes(size), noise, b"\\x45\\x00\\xff\\xff" + noise])
    try:
        out.send((head + chosen.choice(kinds) + body)[: int(sys.argv[4]) + 14])
    except OSError as error:
        if error.errno not in (22, 90, 105):  # not taken by the device: EINVAL, EMSGSIZE, ENOBUFS
            raise
"""


# The same with a header before each frame that says what is left to do (<linux/virtio_net.h>, virtio_net_hdr;
# packet(7), PACKET_VNET_HDR): segments, lengths and checksums at random.
UNFINISHED = """
import os, random, socket, struct, sys
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.setsockopt(263, 15, 1)
out.bind((sys.argv[1], 0))
chosen = random.Random(int(sys.argv[2]))
all, mine = b"\\xff" * 6, out.getsockname()[4]
for number in range(int(sys.argv[3])):
    segment = chosen.choice([1, 8, 500, 1400, 1400, 65535])
    size = min(chosen.choice([20, 60, 1000, int(sys.argv[4]), 9000, 60000]), int(sys.argv[5]) * segment)
    protocol = chosen.choice([6, 17, 4, 47, chosen.randrange(256)])
    ends = b"\\x0a\\0\\0\\x01\\x0a\\0\\0\\x02"
    ip = struct.pack("!BBHHHBBH8s", 0x45, 0, 20 + size, 1, 0, 64, protocol, 0, ends)
    frame = all + mine + b"\\x08\\0" + ip + chosen.randbytes(size)
    head = struct.pack(
        "<BBHHHH",
        chosen.choice([0, 1, 1, 2, 3]),
        chosen.choice([0, 1, 1, 3, 4, 5, 0x20, 0x80, 0x81]),
        chosen.choice([0, 34, 42, 54, 54, 60000]),
        segment,
        chosen.choice([0, 34, 34, 65535]),
        chosen.choice([0, 6, 16, 16, 65535]),
    )
    try:
        out.send(head + frame)
    except OSError as error:
        if error.errno not in (22, 90, 105):
            raise
"""


# Frames at once, and segments of a frame: the trunk's queue holds all of them, though the relay read none.
BURST, SEGMENTS = 20, trunks.UNREAD_PACKETS // 20 // 2


def attack(testbed: Testbed, frames: int) -> tuple[int, int]:
    """Send meaningless frames; return how many frames the trunk then carried, and how many it dropped."""
    counts = []
    for number in range(-(-frames // BURST)):
        for program in (MALFORMED, UNFINISHED):
            seed, mtu = cases.seed() + number, testbed.scenario.underlay.mtu
            argv = [*PYTHON, "-c", program, "eth0", str(seed), str(BURST), str(mtu), str(SEGMENTS)]
            testbed.nodes["worker-01"].run(argv)
            counts.append(counted(testbed)[False])
            while counts[-1].frames:
                counts.append(counted(testbed)[False])
    return sum(one.frames for one in counts), sum(one.dropped for one in counts)


@pytest.mark.alone  # or the trunk is late, and drops what TCP sends at once
def test_frames_that_mean_nothing_pass_and_harm_nothing(apart: Testbed) -> None:
    counted(apart)
    carried, dropped = attack(apart, cases.count("CONCORDE_TRUNK_FRAMES", 300, 3000))
    assert sent(apart, "worker-01", "worker-03", 2**20) == 2**20
    assert apart.check() == []
    assert carried > 30
    assert (dropped, counted(apart)[False].dropped) == (0, 0)


@pytest.mark.alone  # for the same reason
@pytest.mark.long(one_in=0)
def test_jumbo_frames_cross_a_trunk(tmp_path: Path) -> None:
    with brought_up(stations("underlay.mtu=9000")) as testbed:
        size = 2**26
        assert sent(testbed, "worker-01", "worker-03", size) == size
        far = str(testbed.addressing.address("worker-03"))
        testbed.nodes["worker-01"].run(["ping", "-M", "do", "-s", "8972", "-c", "2", "-W", "2", far])
        _, dropped = attack(testbed, 1000)
        assert testbed.check() == []
        assert (dropped, counted(testbed)[False].dropped) == (0, 0)


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_a_trunk_carries_what_its_rate_is_and_no_more() -> None:
    with brought_up(stations()) as testbed:
        size = 2**27
        begin = time.monotonic()
        assert sent(testbed, "worker-01", "worker-03", size) == size
        assert size * 8 / (time.monotonic() - begin) < 4 * 10**8 * 1.05


def killed(testbed: Testbed) -> str:
    switch(testbed).run(["kill", "-KILL", str(relay(testbed))])
    deadline = time.monotonic() + PATIENCE
    while not (found := testbed.check()):
        assert time.monotonic() < deadline
    return found[0]


@pytest.mark.long(one_in=0)
def test_a_relay_that_ends_is_a_fault_and_no_packet_takes_another_way(tmp_path: Path) -> None:
    with brought_up(stations()) as testbed:
        counted(testbed)
        assert killed(testbed).startswith("relay of zone south on switch ended with 137")
        far = str(testbed.addressing.address("worker-03"))
        lost = testbed.nodes["worker-01"].run(["ping", "-c", "1", "-W", "0.2", far], check=False)
        assert lost.status == 1
        (trunk,) = [one for one in testbed.provider.trunks if one.fault()]
        with pytest.raises(RuntimeError, match="zone south: the relay does not answer"):
            trunk.delayed()


FLOOD = """
import socket, sys, time
out = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    try:
        out.sendto(bytes(1400), (sys.argv[1], 9))
    except OSError:
        pass
"""


def flooded(testbed: Testbed, seconds: float) -> Callable[[], object]:
    far = str(testbed.addressing.address("worker-03"))
    argv = [*PYTHON, "-c", FLOOD, far, str(seconds)]
    pool = ThreadPoolExecutor(1)
    return pool.submit(testbed.nodes["worker-01"].run, argv).result


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_a_relay_that_was_stopped_tells_how_late_it_was_what_it_lost_and_holds_little() -> None:
    """Stopped for a second and a half while more comes than fits anywhere."""
    with brought_up(
        stations("underlay.rate=5G", "zones.south.rate=2G", "nodes.worker-03.rate=5G")
    ) as testbed:
        sent(testbed, "worker-01", "worker-03", 2**20)
        counted(testbed)
        before, process = memory(testbed), str(relay(testbed))
        begun = sent_by(testbed, "worker-01")
        done = flooded(testbed, 2.5)
        while sent_by(testbed, "worker-01") < begun + 2**24:  # some of it has to come before
            pass
        switch(testbed).run(["kill", "-STOP", process])
        time.sleep(1.5)  # how long it is stopped
        switch(testbed).run(["kill", "-CONT", process])
        done()
        told = counted(testbed)[False]
        assert told.worst_s > 1
        assert told.late > 100
        assert told.dropped > 1000
        assert memory(testbed) - before < 100 * 2**20


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_more_than_a_relay_can_carry_takes_no_more_memory_than_it_may() -> None:
    """A trunk without a rate, and senders of small packets, as fast as they can."""
    zone = Zone(delay=0.1)
    slow = [f"zones.south={{delay: {zone.delay}}}", "nodes.worker-03={zone: south}", "underlay.rate="]
    with brought_up(stations("enforcement=none", *slow)) as testbed:
        before = memory(testbed)
        done = [flooded(testbed, 3) for _ in range(3)]
        for one in done:
            one()
        assert memory(testbed) - before < trunks.held(zone) + 2**26
        (told,) = [one for trunk in testbed.provider.trunks for one in trunk.delayed() if not one.out]
        assert count(told).frames > 10_000
        assert testbed.check() == []
