"""How long an agent's rounds are."""

from __future__ import annotations

from concorde.fabric import loop
from concorde.node import peers


def test_a_round_is_as_much_longer_as_it_is_work_but_grants_do_not_end_meanwhile() -> None:
    few, some, many = (dict.fromkeys(range(count)) for count in (3, 60, 5000))
    assert loop.half_a_round({1: few}, {"192.168.56.12": few}, 6) == 0.01
    longer = loop.half_a_round({1: some, 2: few}, {}, 0)
    assert 0.01 < longer == loop.half_a_round({}, {"192.168.56.12": some, "192.168.56.13": few}, 0)
    assert longer < loop.half_a_round({1: some, 2: few}, {}, 250)
    assert longer < loop.half_a_round({1: many}, {}, 5000) <= peers.LEASE / 1000 / 6
