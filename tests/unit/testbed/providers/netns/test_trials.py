"""What makes a trunk is found by trying; what cannot be made is bad input."""

from __future__ import annotations

import pytest

from testbed.networks.trunks import NETEM, RELAY
from testbed.providers.netns import trials
from tests.unit.testbed.builders import addressed

STATIONS = "examples/two-stations"


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the machine can do: the programs and devices that succeed."""
    found: set[str] = set()
    monkeypatch.setattr(trials, "there", lambda feature: bool(found & {*feature.command}))
    return found


def test_netem_goes_before_the_relay(able: set[str]) -> None:
    able.update({"netem", "tuntap"})
    assert set(trials.chosen(addressed(STATIONS).scenario).values()) == {NETEM}
    able.remove("netem")
    assert set(trials.chosen(addressed(STATIONS).scenario).values()) == {RELAY}


def test_without_both_a_delay_is_refused(able: set[str]) -> None:
    with pytest.raises(LookupError) as refused:
        trials.chosen(addressed(STATIONS).scenario)
    assert str(refused.value).startswith("--provider netns: zones.north.delay: this kernel has no netem")
    assert "/dev/net/tun" in str(refused.value)
    assert not able


@pytest.mark.parametrize("field", ["jitter", "loss", "reorder"])
def test_what_the_relay_cannot_do_is_refused_without_netem(able: set[str], field: str) -> None:
    able.add("tuntap")
    scenario = addressed(STATIONS, f"zones.south.{field}=0.001").scenario
    with pytest.raises(
        LookupError, match=rf"zones\.south\.{field}: this kernel has no netem .*leave {field} out"
    ):
        trials.chosen(scenario)


def test_without_a_delay_nothing_is_tried(able: set[str]) -> None:
    scenario = addressed(STATIONS, "zones.north.delay=0", "zones.south.delay=0").scenario
    assert [trunk.zone for trunk in trials.chosen(scenario)] == ["north", "south"]
    assert not able
