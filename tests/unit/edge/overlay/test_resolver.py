"""How what a store says gets to who answers the kernel, and what is done while it says nothing."""

from __future__ import annotations

import io
import json
import select
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from edge.http import AwayError
from edge.log import LINES_A_SECOND, Logger
from edge.overlay import resolver
from edge.overlay.leases import Lease
from edge.overlay.resolver import Mailbox
from tests.unit.edge.overlay.kernels import lease


class OverError(BaseException):
    """A test has seen enough of what goes on for ever."""


class Told:
    """A store that does one thing after another; see edge.overlay.leases.Store."""

    def __init__(self, *turns: Callable[[], Iterator[Sequence[Lease]]]) -> None:
        self.turns = list(turns)

    def follow(self) -> Iterator[Sequence[Lease]]:
        if not self.turns:
            raise OverError
        yield from self.turns.pop(0)()


def says(*known: Sequence[Lease]) -> Callable[[], Iterator[Sequence[Lease]]]:
    return lambda: iter(known)


def fails(error: Exception) -> Callable[[], Iterator[Sequence[Lease]]]:
    def turn() -> Iterator[Sequence[Lease]]:
        raise error
        yield ()

    return turn


def readable(mailbox: Mailbox) -> bool:
    return bool(select.select([mailbox], [], [], 0)[0])


def test_a_mailbox_has_the_last_that_was_left_once() -> None:
    mailbox = Mailbox()
    assert mailbox.take() is None
    mailbox.put([lease(2)])
    mailbox.put([lease(3)])
    assert readable(mailbox)
    assert mailbox.take() == [lease(3)]
    assert mailbox.take() is None
    assert not readable(mailbox)


def test_nobody_waits_for_a_mailbox_to_be_emptied() -> None:
    mailbox = Mailbox()
    for number in range(70_000):  # more than a pipe holds
        mailbox.put([lease(number % 200)])
    assert mailbox.take() == [lease(69_999 % 200)]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long was waited, without waiting."""
    found: list[float] = []
    monkeypatch.setattr("edge.overlay.resolver.time.sleep", found.append)
    return found


def followed(store: Told) -> tuple[Mailbox, list[str]]:
    mailbox, stream = Mailbox(), io.StringIO()
    with pytest.raises(OverError):
        resolver._follow(store, mailbox, Logger(stream))
    return mailbox, [line.partition(" ")[2] for line in stream.getvalue().splitlines()]


def test_a_store_that_is_away_is_asked_again_and_never_more_than_a_second_later(waits: list[float]) -> None:
    away = fails(AwayError("nobody is there"))
    mailbox, log = followed(Told(says([lease(2)]), *[away] * 8, says([lease(3)]), away))
    assert waits == [0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.0, 1.0, 0.02, 0.05]
    words = "the store is unavailable, what was learned from it still holds: nobody is there"
    assert log == [words, "the store is back", words]
    assert mailbox.take() == [lease(3)]


def test_a_store_that_fails_in_a_way_that_nobody_foresaw_is_away_too(waits: list[float]) -> None:
    mailbox, log = followed(Told(fails(ZeroDivisionError("oh")), says([lease(2)])))
    assert log == [
        "the store is unavailable, what was learned from it still holds: ZeroDivisionError('oh')",
        "the store is back",
    ]
    assert mailbox.take() == [lease(2)]


def test_what_was_said_is_not_said_again() -> None:
    stream = io.StringIO()
    log = Logger(stream)
    for words in ("one", "two", "one", "two", "three"):
        log.once(words)
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == ["one", "two", "three"]


def test_lines_have_a_time_and_too_many_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.25]
    monkeypatch.setattr("edge.overlay.resolver.time.time", lambda: now[0])
    stream = io.StringIO()
    log = Logger(stream)
    for number in range(LINES_A_SECOND + 7):
        log(f"event {number}")
    assert len(stream.getvalue().splitlines()) == LINES_A_SECOND
    assert stream.getvalue().splitlines()[0].endswith(".250 event 0")
    now[0] += 1
    log("another")
    assert [line.partition(" ")[2] for line in stream.getvalue().splitlines()[-2:]] == [
        "and 7 lines more",
        "another",
    ]


SETTINGS = {
    "device": "flannel.1",
    "vni": 1,
    "network": "10.1.0.0/16",
    "subnet": "10.1.24.0/24",
    "address": "192.168.56.14",
    "l2": "miss",
    "l3": "miss",
    "refresh": "ignore",
}


def settings(directory: Path, **others: object) -> str:
    file = directory / "resolver.json"
    file.write_text(json.dumps({**SETTINGS, **others}))
    return str(file)


def test_the_key_of_the_nodes_own_subnet_is_deleted(tmp_path: Path) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    class Store(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            asked.append((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"deleted":"1"}')

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Store) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        status = resolver.leave([settings(tmp_path, store=f"http://127.0.0.1:{server.server_port}")])
        server.shutdown()
    assert status == 0
    ((path, body),) = asked
    assert path == "/v3/kv/deleterange"
    assert list(body) == ["key"]
    assert b64decode(body["key"]) == b"/coreos.com/network/subnets/10.1.24.0-24"


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"store": "http://127.0.0.1:1"}, 1, "the store is unavailable"),
        ({"store": "http://127.0.0.1:1", "node": "worker-01"}, 2, "delete the Node"),
        ({"store": "http://127.0.0.1:1", "subnet": "10.1.24.1/24"}, 2, "subnet"),
    ],
)
def test_what_cannot_be_done_is_said(
    changed: dict[str, object],
    status: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert resolver.leave([settings(tmp_path, **changed)]) == status
    assert words in capsys.readouterr().err


def test_settings_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert resolver.leave([]) == 2
    assert "leave SETTINGS.json" in capsys.readouterr().err
