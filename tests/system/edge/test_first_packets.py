"""What becomes of a new node's first packets, by each of flannel's three generations."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from testbed.access.place import PodPlace
from testbed.testbed import Testbed
from tests.waiting import PATIENCE

PORT = 5999
FEW, RATE = 6, 2  # datagrams, and how many a second: a miss is answered before the next comes

# Answers each datagram; says which came, after one that is empty or a silence.
ECHO = """
import json, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE: who receives may be late
s.bind(("", int(sys.argv[1])))
s.settimeout(60)
open("/proc/self/comm", "w").write("echo-ready")
seen = []
while True:
    data, sender = s.recvfrom(64)
    if data == b"end":
        break
    seen.append(int(data))
    s.sendto(data, sender)
print(json.dumps(seen))
"""
# Sends so many datagrams, so many a second; says which were answered.
SEND = """
import json, select, socket, sys, time
address, port, count, rate = sys.argv[1], *map(int, sys.argv[2:])
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, 33, 1 << 24)  # SO_RCVBUFFORCE: who receives may be late
s.connect((address, port))
s.setblocking(False)
seen = []
def hear():
    try:
        while True:
            seen.append(int(s.recv(64)))
    except BlockingIOError:
        pass
begun = time.monotonic()
for number in range(count):
    while (left := begun + number / rate - time.monotonic()) > 0:
        time.sleep(left)
    s.send(str(number).encode())
    hear()
end = time.monotonic() + 20
while count - 1 not in seen and (left := end - time.monotonic()) > 0:
    select.select([s], [], [], left)  # on one way none overtakes another, so with the last all are there
    hear()
s.send(b"end")
print(json.dumps(seen))
"""
GENERATIONS = {
    "both by miss": ("miss", "miss"),
    "L3 by miss": ("ahead", "miss"),
    "all ahead": ("ahead", "ahead"),
}
# Of a few datagrams, those that are lost on the way there; of their answers, on the way back. Each way
# misses the other's VTEP once, and the frame for it is dropped (drivers/net/vxlan/vxlan_core.c, vxlan_xmit).
LOST = {"both by miss": ([0], [0, 1]), "L3 by miss": ([], []), "all ahead": ([], [])}


def exchanged(source: PodPlace, destination: PodPlace, count: int, rate: int) -> tuple[list[int], list[int]]:
    """Send datagrams and return which came, and which were answered."""
    with ThreadPoolExecutor() as pool:
        wait = PATIENCE + count / rate
        came = pool.submit(destination.run, ["python3", "-c", ECHO, str(PORT)], timeout=wait)
        while f":{PORT}" not in destination.run(["ss", "-Hlun"]).stdout:
            assert not came.done(), came.result()
        command = ["python3", "-c", SEND, destination.address, str(PORT), str(count), str(rate)]
        answered = json.loads(source.run(command, timeout=wait).stdout)
        return json.loads(came.result().stdout), answered


def missing(seen: list[int], count: int) -> list[int]:
    return sorted(set(range(count)) - set(seen))


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize("name", list(GENERATIONS))
def test_first_datagrams_lost(name: str, resolved: Callable[[str, str], Testbed]) -> None:
    testbed = resolved(*GENERATIONS[name])
    came, answered = exchanged(testbed.pods["A-1"], testbed.pods["A-3"], FEW, RATE)
    assert (missing(came, FEW), missing(answered, FEW)) == LOST[name]
    came, answered = exchanged(testbed.pods["A-2"], testbed.pods["A-4"], FEW, RATE)
    assert (missing(came, FEW), missing(answered, FEW)) == ([], []), "the nodes know each other by now"
    assert testbed.check() == []


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("name", list(GENERATIONS))
def test_first_connection_by_tcp(name: str, resolved: Callable[[str, str], Testbed]) -> None:
    testbed = resolved(*GENERATIONS[name])
    serve = "import socket; s = socket.create_server(('', 5998)); s.accept()"
    connect = (
        "import socket, sys, time; begun = time.monotonic()\n"
        "socket.create_connection((sys.argv[1], 5998), timeout=20)\nprint(time.monotonic() - begun)"
    )
    source, destination = testbed.pods["A-1"], testbed.pods["A-3"]
    with ThreadPoolExecutor() as pool:
        pool.submit(destination.run, ["python3", "-c", serve], timeout=PATIENCE)
        while ":5998" not in destination.run(["ss", "-Hltn"]).stdout:
            pass
        seconds = float(source.run(["python3", "-c", connect, destination.address], timeout=PATIENCE).stdout)
    if name == "both by miss":
        assert (
            1.9 < seconds < 4
        )  # a SYN and a SYN-ACK are lost, and each is sent again after a second (RFC 6298)
    else:
        assert seconds < 0.9  # nothing is lost
