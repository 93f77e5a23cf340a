"""Which enforcement keeps a scenario's promises, and one that is made known from outside."""

from __future__ import annotations

import pytest

from testbed.enforcements import registry
from testbed.enforcements.at_interface import AtInterface
from testbed.enforcements.enforcement import Enforcement
from testbed.scenario import ScenarioError, descriptions
from testbed.scenario.enforcements import Kind
from tests.unit.testbed.builders import addressed


class Fabric(Enforcement):
    """An enforcement of the network's own."""


@pytest.fixture
def weave(own_parts: None) -> None:
    """Make it known for one test."""
    registry.register(Kind("weave", shares_links=True), Fabric)


@pytest.mark.parametrize("name", [*descriptions.shipped()])
def test_shipped_networks_are_what_their_descriptions_say(name: str) -> None:
    addressing = addressed("congested", f"enforcement={name}")
    assert registry.of(addressing) == Enforcement(addressing)
    assert Enforcement(addressing).description == descriptions.of_name(name)


def test_shaping_at_an_interface_goes_before_the_enforcement() -> None:
    assert isinstance(registry.of(addressed("places/vtep")), AtInterface)


def test_one_from_outside_is_named_by_scenarios_like_any_other(weave: None) -> None:
    assert isinstance(registry.of(addressed("congested", "enforcement=weave")), Fabric)


def test_its_kind_tells_the_rules_what_it_needs(weave: None) -> None:
    with pytest.raises(ScenarioError, match="enforcement weave shares out the nodes' links"):
        addressed("contmec", "enforcement=weave")


def test_a_name_is_taken_once(weave: None) -> None:
    with pytest.raises(ValueError, match="there is an enforcement 'none' already"):
        registry.register(Kind("none"), Fabric)
    none = addressed("contmec", "enforcement=none")
    assert registry.of(none) == Enforcement(none)
