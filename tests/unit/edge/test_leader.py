"""Who leads, by a clock that stands until it is told: never two, whatever times are written in the lease."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from edge import leader
from edge.http import Json, RefusedError, Server
from edge.leader import PART, Heir, Leader, Tenure
from tests.unit.edge.stub import LOST, StubApi, serving

SECONDS = 6
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/one"


class Clock:
    """Time in this process, and what others' clocks would say."""

    def __init__(self) -> None:
        self.now = 100.0

    CLOCK_BOOTTIME = time.CLOCK_BOOTTIME  # CLOCK_MONOTONIC stands still on a machine that is suspended

    def clock_gettime(self, clock: int) -> float:
        return {self.CLOCK_BOOTTIME: self.now}[clock]

    def time_ns(self) -> int:
        return int(1e18 - self.now * 1e9)  # of 2001, and backwards, for whoever would believe it

    strftime, gmtime = staticmethod(time.strftime), staticmethod(time.gmtime)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(leader, "time", made)
    return made


class Two:
    """Two who ask for one lease."""

    def __init__(self, api: StubApi) -> None:
        self.api = api
        self.said: list[str] = []
        self.server = Server(api.url)
        self.one, self.other = (self._new(name) for name in ("one", "other"))

    def _new(self, name: str) -> Leader:
        return Leader(self.server, "kube-system/one", Tenure(SECONDS, name), self.said.append)

    def lease(self) -> Json:
        status, lease = self.api.do("GET", LEASE)
        assert status == 200
        return lease


@pytest.fixture
def two(clock: Clock) -> Iterator[Two]:
    with serving() as api:
        yield Two(api)


def test_one_leads_until_it_was_silent_for_as_long_as_the_other_waits(two: Two, clock: Clock) -> None:
    assert two.one._attempt("") == ""
    assert two.other._attempt("") == "one leads"
    assert (two.one.leads(), two.other.leads()) == (True, False)
    clock.now += SECONDS * PART
    assert not two.one.leads()  # before the other may
    clock.now += SECONDS * (1 - PART)
    assert two.other._attempt("") == "one leads"
    clock.now += 0.1
    assert two.other._attempt("") == ""
    assert two.other.leads()
    assert two.one._attempt("") == "other leads"
    assert two.lease()["spec"]["leaseTransitions"] == 1


def test_who_renews_goes_on(two: Two, clock: Clock) -> None:
    for _ in range(10):
        assert two.one._attempt("") == ""
        assert two.other._attempt("") == "one leads"
        clock.now += SECONDS * PART * 0.9
    assert two.one.leads()


def test_who_stood_still_leads_no_more_though_nobody_told_it(two: Two, clock: Clock) -> None:
    two.one._attempt("")
    two.other._attempt("")
    clock.now += SECONDS + 1
    two.other._attempt("")
    assert two.other.leads()
    assert not two.one.leads()
    assert two.lease()["spec"]["holderIdentity"] == "other"


def test_of_two_who_take_it_at_once_one_has_it(two: Two) -> None:
    two.other._read()
    two.one._attempt("")
    with pytest.raises(RefusedError, match="409"):
        two.other._write({"holderIdentity": "other"})
    assert two.other._attempt("") == "one leads"
    assert not two.other.leads()


def test_an_answer_that_is_lost_is_no_lease(two: Two, clock: Clock) -> None:
    two.one._attempt("")
    two.api.fault = lambda method, _path: LOST if method == "PUT" else None
    clock.now += 2
    assert two.one._attempt("") != ""
    assert two.one._until == 100 + SECONDS * PART  # by the one before
    two.api.fault = lambda *_: None
    assert two.one._attempt("") == ""
    assert two.one._until == 102 + SECONDS * PART


def test_who_resigns_is_followed_at_once(two: Two) -> None:
    two.one._attempt("")
    two.one.resign()
    assert not two.one.leads()
    assert two.other._attempt("") == ""
    assert two.other.leads()


def test_an_heir_goes_on_with_the_lease_at_once_and_never_beside_who_has_it(two: Two, clock: Clock) -> None:
    lease = f"tests/{os.getpid()}"
    first, beside, elsewhere = (Heir(url, lease) for url in ("https://a:1", "https://a:1", "https://b:1"))
    assert first.holder != beside.holder
    assert first.holder == elsewhere.holder  # each of its own API
    elsewhere.close()
    of_first, of_beside = (
        Leader(two.server, "kube-system/one", Tenure(SECONDS, one.holder), two.said.append)
        for one in (first, beside)
    )
    assert of_first._attempt("") == ""
    first.close()  # as the kernel does for whoever was killed
    heir = Heir("https://a:1", lease)
    assert heir.holder == first.holder
    assert of_beside._attempt("") == f"{first.holder} leads"
    of_heir = Leader(two.server, "kube-system/one", Tenure(SECONDS, heir.holder), two.said.append)
    assert of_heir._attempt("") == ""
    assert of_heir.leads()
    assert two.lease()["spec"]["leaseTransitions"] == 0
    heir.close()
