"""Which enforcement keeps a scenario's promises, and one that is made known from outside."""

from __future__ import annotations

import pytest

from testbed.enforcements import registry
from testbed.enforcements.at_interface import AtInterface
from testbed.enforcements.bandwidth import BandwidthPlugin
from testbed.enforcements.concorde import Concorde
from testbed.enforcements.node import NodeEnforcement
from testbed.enforcements.none import NoEnforcement
from testbed.enforcements.pod import PodEnforcement
from testbed.scenario import ScenarioError, enforcements, names
from testbed.scenario.enforcements import Kind
from tests.unit.testbed.builders import addressed


class Fabric(Concorde):
    """An enforcement of the network's own."""


@pytest.fixture
def fabric(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make it known for one test."""
    monkeypatch.setattr(names.ENFORCEMENTS, "_names", list(names.ENFORCEMENTS))
    monkeypatch.setattr(enforcements, "_known", dict(enforcements._known))
    monkeypatch.setattr(registry, "_known", dict(registry._known))
    registry.register(Kind("fabric", shares_links=True), Fabric)


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("none", NoEnforcement),
        ("pod", PodEnforcement),
        ("node", NodeEnforcement),
        ("bandwidth", BandwidthPlugin),
    ],
)
def test_each_kind_is_made_by_its_module(name: str, made: type[Concorde]) -> None:
    addressing = addressed("congested", f"enforcement={name}")
    assert registry.of(addressing) == made(addressing)


def test_shaping_at_an_interface_goes_before_the_enforcement() -> None:
    assert isinstance(registry.of(addressed("places/vtep")), AtInterface)


def test_one_from_outside_is_named_by_scenarios_like_any_other(fabric: None) -> None:
    assert isinstance(registry.of(addressed("congested", "enforcement=fabric")), Fabric)


def test_its_kind_tells_the_rules_what_it_needs(fabric: None) -> None:
    with pytest.raises(ScenarioError, match="enforcement fabric shares out the nodes' links"):
        addressed("contmec", "enforcement=fabric")


def test_a_name_is_taken_once(fabric: None) -> None:
    with pytest.raises(ValueError, match="there is an enforcement 'none' already"):
        registry.register(Kind("none"), Fabric)
    assert isinstance(registry.of(addressed("contmec", "enforcement=none")), NoEnforcement)
