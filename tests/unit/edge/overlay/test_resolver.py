"""How what a store says gets to who answers the kernel, and what is done while it says nothing."""

from __future__ import annotations

import io
import select
from collections.abc import Callable, Iterator, Sequence

import pytest

from edge.overlay import resolver
from edge.overlay.leases import Lease
from edge.overlay.logger import Logger
from edge.overlay.resolver import Mailbox
from edge.overlay.store import AwayError
from tests.unit.edge.overlay.kernels import lease


class OverError(BaseException):
    """A test has seen enough of what goes on for ever."""


class Told:
    """A store that does one thing after another; see edge.overlay.store.Store."""

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
