"""How the own lease is kept in etcd, and how the others' are followed."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence

import pytest

from edge.http import AwayError, Json, Question
from edge.overlay import etcd, leases
from edge.overlay.etcd import CONFIGURATION, SUBNETS, Etcd
from edge.overlay.leases import Lease
from tests.unit.edge.overlay.kernels import NETWORK, OWN, lease
from tests.unit.edge.overlay.servers import Scripted, Silent, stored


def key(number: int) -> str:
    return f"{SUBNETS}10.1.{number}.0-24"


def entry(one: Lease, revision: int = 4) -> dict[str, object]:
    return {"kv": stored(SUBNETS + leases.key_of(one.subnet), leases.text_of(one), revision=revision)}


def gone(one: Lease, revision: int = 4) -> dict[str, object]:
    pair = stored(SUBNETS + leases.key_of(one.subnet), "", revision=revision)
    return {"type": "DELETE", "kv": {"key": pair["key"], "mod_revision": pair["mod_revision"]}}


def following(server: Scripted, own: Lease = OWN) -> list[Sequence[Lease]]:
    """What is learned until all is asked anew."""
    return [list(one) for one in Etcd(server, own, NETWORK, 1, 60).follow()]


def test_the_own_lease_is_written_under_flannels_key_bound_to_one_of_etcds() -> None:
    server = Scripted()
    following(server)
    (pair,) = server.own.values()
    assert b64decode(pair["key"]).decode() == "/coreos.com/network/subnets/10.1.1.0-24"
    assert b64decode(pair["value"]).decode() == leases.text_of(OWN)
    assert pair["lease"] == "1"


def test_the_overlays_configuration_is_written_by_the_first() -> None:
    server = Scripted()
    following(server)
    assert server.network == '{"Network": "10.1.0.0/16", "Backend": {"Type": "vxlan", "VNI": 1}}'


@pytest.mark.parametrize("said", ['{"Network": "10.2.0.0/16"}', "[]", "{", '{"Network": 5}'])
def test_a_store_of_another_network_is_not_used(said: str) -> None:
    server = Scripted()
    server.network = said
    with pytest.raises(AwayError):
        following(server)
    assert server.own == {}


def test_all_leases_are_learned_and_then_each_change() -> None:
    server = Scripted()
    server.others = [stored(key(2), leases.text_of(lease(2)))]
    back = lease(2, mac="0e:00:00:00:00:22")
    server.said = [
        {"result": {"events": [entry(lease(3))]}},
        {"result": {"events": [entry(back), gone(lease(3))]}},
    ]
    assert following(server) == [[lease(2), OWN], [lease(2), OWN, lease(3)], [OWN, back]]


def test_what_was_listed_already_is_no_change() -> None:
    server = Scripted()
    server.others = [stored(key(2), leases.text_of(lease(2)), revision=3)]
    server.said = [{"result": {"events": [entry(lease(2, mac="0e:00:00:00:00:22"), 2), gone(lease(2), 3)]}}]
    assert following(server) == [[lease(2), OWN]]


def test_an_own_lease_that_is_gone_is_written_again() -> None:
    server = Scripted()
    etcd = Etcd(server, OWN, NETWORK, 1, 60)
    server.said = [{"result": {"events": [gone(OWN)]}}, {"result": {"events": [entry(lease(3))]}}]
    assert [list(one) for one in etcd.follow()] == [[OWN], []]
    server.own.clear()
    server.said = []
    assert [list(one) for one in etcd.follow()] == [[OWN]]
    assert server.granted == 2


def test_an_own_lease_that_another_wrote_is_written_again() -> None:
    server = Scripted()
    etcd = Etcd(server, OWN, NETWORK, 1, 60)
    list(etcd.follow())
    server.own[stored(key(1), "")["key"]] = stored(key(1), leases.text_of(OWN), lease="99")
    assert [list(one) for one in etcd.follow()] == [[]]
    assert [list(one) for one in etcd.follow()] == [[OWN]]
    assert [pair["lease"] for pair in server.own.values()] == ["2"]


def test_a_lease_of_etcds_that_is_over_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("edge.overlay.etcd.time.monotonic", lambda: now[0])
    server = Scripted()
    etcd = Etcd(server, OWN, NETWORK, 1, 60)
    list(etcd.follow())
    list(etcd.follow())
    assert "/v3/lease/keepalive" not in server.asked
    now[0] += 21
    list(etcd.follow())
    assert server.asked.count("/v3/lease/keepalive") == 1
    server.lost.add("1")
    now[0] += 21
    list(etcd.follow())
    assert [pair["lease"] for pair in server.own.values()] == ["2"]


def test_a_watch_that_is_over_is_begun_anew() -> None:
    server = Scripted()
    server.said = [
        {"result": {"canceled": True, "compact_revision": "9"}},
        {"result": {"events": [entry(lease(3))]}},
    ]
    assert following(server) == [[OWN]]


def test_a_store_that_does_not_answer_is_away() -> None:
    with pytest.raises(AwayError, match="nobody is there"):
        list(Etcd(Silent(), OWN, NETWORK, 1, 60).follow())


class Full(Scripted):
    """An etcd with a configuration, which stays, and a lease."""

    def ask(self, question: Question) -> Json:
        if question.path == "/v3/lease/timetolive":
            return {"ID": "7", "TTL": "86399", "grantedTTL": "86400"}
        configuration = stored(CONFIGURATION, "{}")
        del configuration["lease"]
        return {"kvs": [configuration, stored(f"{SUBNETS}10.1.2.0-24", "é")]}


def test_keys_and_values_are_shown_as_they_were_written() -> None:
    assert "".join(etcd.lines(Full())) == (
        "/coreos.com/network/config\n    {}\n"
        "/coreos.com/network/subnets/10.1.2.0-24\n    é\n    ends in 86399 s, unless it is renewed\n"
    )


def test_what_is_none_of_etcds_is_a_store_that_is_away() -> None:
    server = Scripted()
    server.instead = {"kvs": [{"key": "%"}]}
    with pytest.raises(AwayError):
        list(etcd.lines(server))


def test_bad_input_ends_it_with_2_and_a_store_that_is_away_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert etcd.show([]) == 2
    assert etcd.show(["nowhere"]) == 2
    assert etcd.show(["http://127.0.0.1:1"]) == 1
    assert "refused" in capsys.readouterr().err
