"""What rules and arithmetic must know of each enforcement."""

from __future__ import annotations

import pytest

from testbed.scenario import ScenarioError, enforcements
from tests.unit.testbed.builders import addressed


@pytest.mark.parametrize(
    ("name", "shares_links"), [("none", False), ("pod", False), ("node", True), ("bandwidth", False)]
)
def test_only_node_shares_out_links_and_none_counts_the_overlays_headers(
    name: str, shares_links: bool
) -> None:
    kind = enforcements.of(addressed("congested", f"enforcement={name}").scenario)
    assert (kind.name, kind.shares_links, kind.counts_overhead) == (name, shares_links, False)


def test_those_there_are_are_named_to_who_asks_for_another() -> None:
    assert {"none", "pod", "node", "bandwidth", "macvlan"} <= set(enforcements.KINDS)
    with pytest.raises(ScenarioError, match=r"should be 'bandwidth', .* \(did you mean 'macvlan'\?\)$"):
        addressed("contmec", "enforcement=mcvlan")


def test_a_name_is_taken_once() -> None:
    with pytest.raises(ValueError, match="there is an enforcement 'pod' already"):
        enforcements.register(enforcements.Kind("pod", shares_links=True))
    assert not enforcements.of(addressed("contmec", "enforcement=pod").scenario).shares_links
