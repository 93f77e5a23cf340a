"""Whether a proxy that is told to end takes its rules along."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator

import pytest

from edge.http import Server
from edge.services import ending
from tests.unit.edge.stub import StubApi, serving

PATH = "/apis/apps/v1/namespaces/own/daemonsets"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubApi]:
    monkeypatch.setattr(ending, "LASTING_SECONDS", 0.05)
    monkeypatch.setattr(ending, "PATIENCE_SECONDS", 0.2)
    monkeypatch.setattr(ending, "AGAIN_SECONDS", 0.01)
    with serving(StubApi()) as lent:
        lent.kinds.add("/apis/apps/v1/daemonsets")
        yield lent


def for_good(api: StubApi) -> bool:
    server = Server(api.url)
    try:
        return ending.is_for_good(server, ending.daemon_set("own/proxy"))
    finally:
        server.close()


def test_it_is_for_good_if_the_daemon_set_is_gone_or_going(api: StubApi) -> None:
    assert for_good(api)
    api.do("POST", PATH, {"metadata": {"name": "proxy"}})
    assert not for_good(api)
    api.do("PATCH", f"{PATH}/proxy", {"metadata": {"finalizers": ["foregroundDeletion"]}})
    api.do("DELETE", f"{PATH}/proxy")
    assert for_good(api)


@pytest.mark.parametrize(("status", "expected"), [(401, True), (403, True), (500, False), (429, False)])
def test_a_refusal_counts_if_it_lasts(api: StubApi, status: int, expected: bool) -> None:
    api.do("POST", PATH, {"metadata": {"name": "proxy"}})
    first: Iterator[int | None] = iter([status])
    api.fault = lambda *_: next(first, None)
    assert not for_good(api)
    api.fault = lambda *_: status
    assert for_good(api) is expected


def test_silence_between_refusals_changes_nothing_about_them(api: StubApi) -> None:
    said: Iterator[int] = itertools.cycle([403, 500])
    api.fault = lambda *_: next(said)
    assert for_good(api)


def test_an_api_that_says_nothing_decides_nothing(api: StubApi) -> None:
    server = Server(api.url)
    server.close()
    assert not ending.is_for_good(server, ending.daemon_set("own/proxy"))


@pytest.mark.parametrize("text", ["proxy", "/proxy", "own/", "a/b/c"])
def test_a_name_has_two_parts(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not like kube-system/proxy"):
        ending.daemon_set(text)
