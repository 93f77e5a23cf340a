"""Objects that no API would write: nothing ends, nothing of theirs gets into rules, and the others go on."""

from __future__ import annotations

import copy
import io
import random
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

import pytest

from edge.log import Logger
from edge.services import catalogue
from edge.services.annotations import ZONE_HINTS
from edge.services.catalogue import SERVICES, SLICES, Catalogue, Where
from edge.services.proxy import NODES, Proxy, parse
from edge.services.publication import Publication
from edge.services.rules import MOST_ENDPOINTS, Frame, State, whole
from edge.watch import Changed, Listed
from tests import cases, hinted

WRONG: list[Any] = [
    None, True, 0, -1, 65536, float("inf"), float("nan"), 10**400, "", "x", "9" * 5000, "10.0.0.999", "::1",
    "127.0.0.1/33", "{ }; flush ruleset", "\ud800", [], {}, [[]], [None], ["a"], {"": None}, {"a": {}},
]  # fmt: skip
OPTIONAL = [
    "annotations", "clusterIPs", "externalIPs", "hints", "nodeName", "sessionAffinity", "trafficDistribution",
    "type", "zone",
]  # fmt: skip
RANGE = IPv4Network("10.96.0.0/16")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield all in an object that can be another: what it is in, and its key."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield value, key
        yield from places(value[key])


def spoilt(document: hinted.Document, chance: random.Random) -> hinted.Document:
    made = copy.deepcopy(document)
    for _ in range(chance.randrange(1, 4)):
        inside, key = chance.choice(list(places(made)) or [({}, "")])
        if isinstance(inside, dict) and chance.random() < 0.2:
            inside.pop(key, None)
        elif isinstance(inside, dict) and chance.random() < 0.1:
            inside[chance.choice(OPTIONAL)] = copy.deepcopy(chance.choice(WRONG))
        else:
            inside[key] = copy.deepcopy(chance.choice(WRONG))
    return made


def documents() -> Iterator[tuple[str, hinted.Document, hinted.Document]]:
    """Yield a kind, a document that is as it should be, and one to spoil."""
    good, bad = (hinted.service(f"s-{name}", auto="Auto", clusterIP=f"10.96.0.{name}") for name in "89")
    bad["metadata"] |= {"namespace": "default", "uid": "u"}
    yield SERVICES, good, bad
    good, bad = (hinted.endpoint_slice(f"s-{name}", "abc", of=f"s-{name}") for name in "89")
    bad["metadata"]["annotations"] = {ZONE_HINTS: '{"10.0.0.1":["a"]}'}
    yield SLICES[1], good, bad
    yield NODES, hinted.node("n1", "a"), {**hinted.node("n2", "b"), "spec": {"podCIDR": "10.61.0.0/24"}}


@pytest.mark.long(counted=True)
def test_nothing_malformed_ends_anything_and_the_others_go_on() -> None:
    chance, log = random.Random(cases.seed()), io.StringIO()
    for _ in range(cases.count("CONCORDE_MALFORMED", 100, 10_000)):
        known = Catalogue(Where(RANGE, "n1", "a", chance.choice([(1, 20), (1, 24), (1, 27), (1, 34)])))
        publication = Publication((1, 20))
        node = Proxy(parse(["--cluster=a", f"--services={RANGE}", "--node=n2", "--file=x"]), Logger(log))
        for kind, good, bad in documents():
            news = (Listed(kind, [good]), Changed(kind, spoilt(bad, chance), False))
            for one in news:
                publication.take(one)
                if kind == NODES:
                    node.take(one)
                else:
                    known.take(one)
        served = known.changes()
        ((_, backends),) = served["default", "s-8"].ports.items()
        assert {one.address for one in backends.chosen} == {"10.0.0.1", "10.0.0.2", "10.0.0.3"}
        ports = {port: tuple(one.chosen) for each in served.values() for port, one in each.ports.items()}
        servers = {one for each in served.values() for one in each.servers}
        assert "flush ruleset" not in whole(Frame("a", RANGE), State(ports, frozenset(servers)))
        assert ("default", "s-8") in {task.service for task in publication.tasks()}


def test_no_more_endpoints_are_used_than_have_numbers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert MOST_ENDPOINTS == 16_384  # marks up to kube-proxy's first bit
    monkeypatch.setattr(catalogue, "MOST_ENDPOINTS", 2)
    known = Catalogue(Where(RANGE))
    known.take(Listed(SERVICES, [hinted.service(clusterIP="10.96.0.9")]))
    known.take(Listed(SLICES[1], [hinted.endpoint_slice("web", "aaa")]))
    served = known.changes()["default", "web"]
    (backends,) = served.ports.values()
    assert {one.address for one in backends.chosen} == {"10.0.0.1", "10.0.0.2"}
    assert len(backends.alive) == 3
    assert served.left == ("port 80: only the first 2 of 3 endpoints are used",)
