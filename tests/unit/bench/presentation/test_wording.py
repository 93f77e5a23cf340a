"""What is said of a network beside a verdict."""

from __future__ import annotations

import pytest

from bench.presentation.wording import on_the_network
from testbed.scenario import load
from tests.paths import ROOT


@pytest.mark.parametrize(
    ("network", "start"),
    [
        ("bandwidth", "bandwidth claims a ceiling, not a floor"),
        ("macvlan", "macvlan claims nothing"),
        ("none", "none claims nothing"),
        ("pod", ""),
        ("node", ""),
    ],
)
def test_rates_that_nobody_keeps_are_not_called_kept(network: str, start: str) -> None:
    scenario = load(ROOT / "scenarios" / "congested.yaml", [f"network={network}"])
    said = on_the_network(scenario, "held")
    assert said.startswith(start)
    assert bool(said) == bool(start)
    assert on_the_network(scenario, "violated") == ""
