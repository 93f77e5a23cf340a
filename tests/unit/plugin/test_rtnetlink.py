"""What is asked of the kernel's links, of one that has just gone: `lo` is there, the other one is not."""

from __future__ import annotations

import errno
import os

import pytest
from concorde import rtnetlink
from concorde.node import connections, kernel
from concorde.node.differences import Difference

GONE = "gone"
MAC = "0e:00:00:00:00:01"


def test_a_link_that_has_gone_needs_not_be_taken_down() -> None:
    rtnetlink.take_down(GONE)


def test_a_port_that_has_gone_is_an_error_to_who_closes_it() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.ENODEV)):
        rtnetlink.close_port(GONE, MAC)


def test_a_repair_goes_on_when_a_port_has_ended_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, [Difference("a port", port=(GONE, MAC, True)), Difference("an element")])
    assert kernel.repair([], []) == ["a port", "an element"]


def test_a_port_that_cannot_be_closed_is_an_error_still(monkeypatch: pytest.MonkeyPatch) -> None:
    find(monkeypatch, [Difference("a port", port=("lo", MAC, True))])
    with pytest.raises(OSError, match=r".") as caught:  # in the kernel's own words
        kernel.repair([], [])
    assert caught.value.errno in (errno.EPERM, errno.EINVAL)


def find(monkeypatch: pytest.MonkeyPatch, found: list[Difference]) -> None:
    """Let nothing be compared and nothing but ports be put right."""
    monkeypatch.setattr(kernel, "compare", lambda _tree, _entries: (None, found))
    monkeypatch.setattr(kernel, "_apply", lambda *_: None)
    monkeypatch.setattr(connections, "are_tracked", lambda: False)  # by this host, perhaps
