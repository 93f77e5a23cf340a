"""In any order with other plugins a pod has its network and its guard, or the order is refused in words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import cases
from tests.system.plugin import orders
from tests.system.plugin.conftest import Node
from tests.system.plugin.orders import CONCORDE, Chain

pytestmark = pytest.mark.skipif(bool(orders.lacking()), reason=f"not there: {', '.join(orders.lacking())}")

# At other pushes than nightly ones, of the share that is asked for one in so many.
ONE_IN = 4


def judged(plugin: Path, asked: list[Chain]) -> None:
    """Try them; each must work, or be refused before it does harm."""
    found: dict[str, str] = {}
    orders.tried(plugin, asked, lambda chain, outcome: found.update({str(chain): outcome}))
    assert len(found) == len(asked)
    assert not {chain: outcome for chain, outcome in found.items() if outcome.startswith("FAILS")}


@pytest.mark.long(one_in=0)
def test_what_bandwidth_redirects_passes_no_guard(plugin: Path) -> None:
    judged(plugin, [Chain(("ptp", "portmap", CONCORDE, "bandwidth both"), "node")])


def test_the_kernel_alone_tells_of_a_pod_without_an_end_on_the_node(node: Node) -> None:
    node.run("ip", "-batch", "-", stdin="link add eth0 type veth peer name other\nlink set eth0 up\n")
    node.add_pod_namespace(orders.POD)
    chain = Chain(("macvlan", CONCORDE), "none")  # of no list in the runtime's directory
    with pytest.raises(orders.RefusedError, match="eth0 has no end on the node: ") as refused:
        orders.Runtime(node, orders.listed(chain)).add(orders.attachment(chain, orders.POD))
    assert refused.value.code == 7
    assert node.leases("cluster-a") == []


def test_one_of_all(plugin: Path) -> None:
    every = orders.every()
    judged(plugin, [every[cases.seed() % len(every)]])


@pytest.mark.long(one_in=0, counted=True)
@pytest.mark.parametrize("enforcement", orders.ENFORCEMENTS)
@pytest.mark.parametrize("main", orders.MAINS)
def test_every_order(plugin: Path, main: str, enforcement: str) -> None:
    asked = cases.chosen(orders.grouped(orders.every())[main, enforcement])
    if 0 < cases.share() < 100:
        asked = asked[cases.seed() % ONE_IN :: ONE_IN]
    judged(plugin, asked)


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("number", range(orders.LONGER_ONES))
def test_longer_chains(plugin: Path, number: int) -> None:
    judged(plugin, orders.longer(cases.seed() + number, 1))
