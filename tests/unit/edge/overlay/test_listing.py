"""What is shown of an overlay's etcd."""

from __future__ import annotations

import pytest

from edge.overlay import listing
from edge.overlay.etcd import CONFIGURATION, SUBNETS
from edge.overlay.http import Json, Question
from edge.overlay.store import AwayError
from tests.unit.edge.overlay.servers import Scripted, stored


class Full(Scripted):
    """An etcd with a configuration, which stays, and a lease."""

    def ask(self, question: Question) -> Json:
        if question.path == "/v3/lease/timetolive":
            return {"ID": "7", "TTL": "86399", "grantedTTL": "86400"}
        configuration = stored(CONFIGURATION, "{}")
        del configuration["lease"]
        return {"kvs": [configuration, stored(f"{SUBNETS}10.1.2.0-24", "é")]}


def test_keys_and_values_are_shown_as_they_were_written() -> None:
    assert "".join(listing.lines(Full())) == (
        "/coreos.com/network/config\n    {}\n"
        "/coreos.com/network/subnets/10.1.2.0-24\n    é\n    ends in 86399 s, unless it is renewed\n"
    )


def test_what_is_none_of_etcds_is_a_store_that_is_away() -> None:
    server = Scripted()
    server.instead = {"kvs": [{"key": "%"}]}
    with pytest.raises(AwayError):
        list(listing.lines(server))


def test_bad_input_ends_it_with_2_and_a_store_that_is_away_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert listing.main([]) == 2
    assert listing.main(["nowhere"]) == 2
    assert listing.main(["http://127.0.0.1:1"]) == 1
    assert "refused" in capsys.readouterr().err
