"""Client and server, over this machine's loopback: what is due when, and what becomes of each exchange."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.generators import Exchange, exchanger_of
from bench.generators.requests import client
from testbed.access.wait_for import complaint
from testbed.scenario import Requests, Scenario
from testbed.scenario.addressing import Addressing
from tests.ports import free_ports
from tests.unit.bench.builders import scenario
from tests.waiting import PATIENCE, until

HERE = "127.0.0.1"


def asking(**fields: object) -> Requests:
    of = scenario(requests=[{"from": "B", "to": "C", **fields}])
    return of.requests[0]


class Port(Addressing):
    """Everything on one port that is free."""

    def __init__(self, of: Scenario, port: int) -> None:
        super().__init__(of)
        object.__setattr__(self, "port", port)

    def port_of(self, _transfer: object) -> int:
        port: int = self.__dict__["port"]
        return port


def make(requests: Requests, count: int, tmp_path: Path, stop: bool = False) -> list[Exchange]:
    """Make the first requests, with ``stop`` to a server that stands still until all are there."""
    # Not everybody may choose another congestion control than there is.
    usual = Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip()
    of = scenario(measurement={"congestion_control": usual})
    addressing, tool = Port(of, free_ports(1)[0]), exchanger_of(of, requests)
    *command, wishes = tool.sender(addressing, requests, HERE)
    asked = json.dumps({**json.loads(wishes), "count": count, "patience": PATIENCE})
    with running(tool.receiver(addressing, requests)) as server:
        wait_until_it_listens(server, addressing.port_of(requests))
        with running([*command, asked]) as asker:
            assert asker.stderr is not None
            assert asker.stderr.readline() == b"\n"
            if stop:
                os.kill(server.pid, signal.SIGSTOP)
            assert asker.stdin is not None
            asker.stdin.write(b"\n")
            asker.stdin.flush()
            if stop:
                until(lambda: unread(addressing.port_of(requests)) == count * requests.size)
                os.kill(server.pid, signal.SIGCONT)
            out, errors = asker.communicate(timeout=PATIENCE)
            assert errors == b""
        said, _ = server.communicate(timeout=PATIENCE)
    assert json.loads(said)["requests"] == count
    (tmp_path / "out").write_bytes(out)
    return tool.read_exchanges(tmp_path / "out", count)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until_it_listens(server: subprocess.Popen[bytes], port: int) -> None:
    """As ``ss`` tells, without a connection, which would be the client's."""
    until(lambda: connections(port, "listening") or server.poll() is not None)
    assert server.poll() is None, server.communicate()[1]


def unread(port: int) -> int:
    """How many bytes wait for a server."""
    return sum(int(line.split()[0]) for line in connections(port, "established"))


def connections(port: int, state: str) -> list[str]:
    shown = subprocess.run(["ss", "-Htn", "state", state, f"sport = :{port}"], capture_output=True, text=True)
    return shown.stdout.splitlines()


@pytest.mark.parametrize("connections", ["new", "kept"])
@pytest.mark.parametrize("protocol", ["tcp", "udp"])
def test_every_exchange_is_made_and_answered(protocol: str, connections: str, tmp_path: Path) -> None:
    requests = asking(protocol=protocol, connections=connections, rate=300, size=100, answer=700)
    made = make(requests, 60, tmp_path)
    assert [one.due_s for one in made] == [pytest.approx(number / 300, abs=1e-6) for number in range(60)]
    assert {one.status for one in made} == {"answered"}
    assert all((one.round_trip_s is not None) == (protocol == "tcp") for one in made)


@pytest.mark.parametrize("connections", ["new", "kept"])
def test_a_server_that_stands_still_is_seen_in_every_exchange_that_was_due_meanwhile(
    connections: str, tmp_path: Path
) -> None:
    made = make(asking(connections=connections, rate=200), 140, tmp_path, stop=True)
    assert {one.status for one in made} == {"answered"}
    # All were sent while none was answered, so each waited until the server went on: none hides behind
    # the one before it.
    assert max(one.sent_s for one in made) < min(one.answered_s or 0 for one in made)


def test_what_is_due_when_does_not_drift() -> None:
    work = client.Work.__new__(client.Work)
    work.zero, work.interval = 10**9, client.NS / 3
    assert [work.due(number) - work.zero for number in (0, 1, 2, 3, 3_000_000)] == [
        0, 333_333_333, 666_666_667, 10**9, 10**15,
    ]  # fmt: skip


def test_of_several_answers_the_first_counts_and_what_failed_may_still_be_answered() -> None:
    times = client.Times(3)
    for number in range(3):
        times.sent[number], times.open = 100 + number, times.open + 1
    times.answer(0, 150)
    times.answer(0, 999)
    times.fail(1, 111)
    times.fail(1, 104)
    times.answer(7, 150)
    assert (times.open, list(times.answered), times.failed) == (1, [150, 0, 0], {1: 111})
    times.answer(1, 160)
    assert (times.open, times.answered[1]) == (1, 160)


def test_nobody_at_the_other_end_is_said() -> None:
    requests, (port,) = asking(rate=10, duration=1), free_ports(1)
    assert complaint(f"http://{HERE}:{port}") is not None
    of = scenario()
    command = exchanger_of(of, requests).sender(Port(of, port), requests, HERE)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 1
    assert f"{HERE}: [Errno 111] Connection refused" in done.stderr.decode()
    assert done.stdout == b""
