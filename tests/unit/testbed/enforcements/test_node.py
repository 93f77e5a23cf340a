"""The node keeps the promise, by a tree of classes on its uplink."""

from __future__ import annotations

import pytest
from concorde import guarantees
from concorde.node.records import Tree

from testbed.enforcements import registry
from testbed.enforcements.enforcement import Guarded, by_capabilities
from testbed.scenario import Pod, descriptions
from testbed.scenario.addressing import Addressing
from testbed.scenario.faults import Fault
from tests.unit.testbed.builders import addressed
from tests.unit.testbed.enforcements.doubles import standing


def test_published_bandwidth_is_counted_as_guarantees_are(congested: Addressing) -> None:
    rate = congested.scenario.underlay.rate
    assert rate is not None
    layer2 = registry.of(congested).capacity("a", "worker-01")
    payload = registry.of(addressed("congested", "count=payload")).capacity("a", "worker-01")
    limit = registry.of(addressed("congested", "enforcement=pod")).capacity("a", "worker-01")
    assert limit == rate
    assert layer2 == int(rate * 0.99 * 0.98 * 1464 / 1514)
    assert payload == int(rate * 0.99 * 0.98 * 1398 / 1514)


def test_the_plugin_is_told_the_uplink_the_tree_and_what_goes_before_all(congested: Addressing) -> None:
    (plugin,) = registry.of(congested).network_list("b", "worker-02").plugins
    assert plugin["enforcement"] == "node"
    assert plugin["uplink"] == "eth0"
    assert plugin["controlPorts"] == [22, 6443, 10250, 20250]
    assert int(plugin["capacity"]) == round((congested.scenario.underlay.rate or 0) * 0.99)


def test_each_node_promises_what_its_own_link_carries() -> None:
    stations = addressed("examples/two-stations")
    enforcement = registry.of(stations)
    assert enforcement.capacity("a", "worker-01") == int(10**9 * 0.99 * 0.98 * 1464 / 1514)
    assert enforcement.capacity("a", "worker-03") == int(4 * 10**8 * 0.99 * 0.98 * 1464 / 1514)
    trees = {
        node: enforcement.network_list("a", node).plugins[0]["capacity"]
        for node in ("worker-01", "worker-03")
    }
    assert trees == {"worker-01": "990000000", "worker-03": "396000000"}


def test_each_cluster_counts_what_its_own_packets_grow_by() -> None:
    addressing = addressed("congested", "clusters.b.backend=host-gw")
    enforcement = registry.of(addressing)
    plugins = [enforcement.network_list(cluster, "worker-01").plugins[0] for cluster in ("a", "b")]
    assert [plugin["encapsulation"] for plugin in plugins] == [50, 0]
    tree = addressing.scenario.underlay.rate or 0
    assert enforcement.capacity("a", "worker-01") == int(tree * 0.99 * 0.98 * 1464 / 1514)
    assert enforcement.capacity("b", "worker-01") == int(tree * 0.99 * 0.98)


def test_the_uplinks_of_nodes_with_promised_pods_are_guarded(congested: Addressing) -> None:
    up = standing(congested)
    promised = {pod.node for pod in congested.scenario.pods.values() if pod.guarantee is not None}
    assert registry.of(congested).guarded(up) == {
        f"node {node}": Guarded(up.nodes[node], "eth0") for node in promised
    }
    assert promised < set(up.nodes)


def test_its_tree_is_on_the_uplink() -> None:
    names = ["master-01", "master-02", "worker-01", "worker-02"]
    own = [f"nodes.{n}={{address: 192.168.56.{i}, uplink: ens5}}" for i, n in enumerate(names, 20)]
    assert registry.of(addressed("congested", *own)).footprint("worker-01").trees == ("ens5",)


LINK = 200_000_000
ROOM = int(LINK * 0.99 * 0.98)  # of frames on the underlay: what the tree may have, less its reserve


def refused(*overrides: str, without: tuple[str, ...] = ()) -> list[str]:
    """The pods whose promises there is no room for, of a scenario with links of 200 Mbit/s."""
    none = [f"pods.{pod}.guarantee=null" for pod in ("A-1", "A-2", "B-1")]
    addressing = addressed("congested", f"underlay.rate={LINK}", *none, *overrides)
    coming = [pod for pod in addressing.scenario.pods if pod not in without]
    return [str(fault.path[1]) for fault in registry.of(addressing).refused(coming)]


def test_a_promise_that_its_node_has_no_room_for_is_refused() -> None:
    most = int(ROOM * 1464 / 1514)
    assert refused("pods.A-1.guarantee=300M") == ["A-1"]
    assert refused(f"pods.A-1.guarantee={most}") == []
    assert refused(f"pods.A-1.guarantee={most + 10}") == ["A-1"]


def test_clusters_share_the_room_of_a_node_and_nodes_do_not() -> None:
    both = ("pods.A-1.guarantee=100M", "pods.B-1.guarantee=100M")
    assert refused(*both) == ["B-1"]
    assert refused(*both, without=("A-1",)) == []
    assert refused("pods.A-1.guarantee=100M", "pods.A-3.guarantee=100M") == []  # another worker's


def test_who_does_not_fit_takes_no_room_from_who_comes_after() -> None:
    assert refused("pods.A-1.guarantee=300M", "pods.A-2.guarantee=100M") == ["A-1"]


def test_the_plugin_and_the_room_for_promises_know_what_a_frame_takes_of_the_link() -> None:
    overrides = [f"pods.{pod}.guarantee=null" for pod in ("A-1", "A-2", "B-1")]
    wire = addressed("congested", "underlay={rate: 200M, frame_overhead: 24}", *overrides)
    (plugin,) = registry.of(wire).network_list("a", "worker-01").plugins
    assert (plugin["capacity"], plugin["frameOverhead"]) == ("198000000", 24)
    # What the plugin itself would say (concorde.node.records.Tree.promisable), in frames of the pods.
    promisable = Tree("eth0", 198_000_000, 3_960_000, (), plugin["frameOverhead"]).promisable
    assert registry.of(wire).capacity("a", "worker-01") == pytest.approx(promisable * 1464 / 1514, abs=2)
    assert refused(f"pods.A-1.guarantee={ROOM * 1464 // 1514}", "underlay.frame_overhead=24") == ["A-1"]


def test_what_packets_grow_by_takes_room_too() -> None:
    rate = f"pods.B-1.guarantee={ROOM}"
    assert refused(rate) == ["B-1"]
    assert refused(rate, "clusters.b.backend=host-gw") == []


def test_who_shares_out_no_link_refuses_nothing() -> None:
    """The paper's plugin does not know what a link carries."""
    assert refused("pods.A-1.guarantee=300M", "enforcement=pod") == []


def arriving(*overrides: str) -> list[Fault]:
    """The promises that are refused where what arrives can be promised; links have 9 Gbit/s."""
    woven = addressed("congested", "enforcement=fabric", *overrides)
    return list(registry.of(woven).refused(["A-3", "A-4"]))


def test_what_arrives_is_another_link_of_each_node() -> None:
    assert arriving("pods.A-3.ingress=5G", "pods.A-3.guarantee=5G") == []
    (fault,) = arriving("pods.A-3.ingress=5G", "pods.A-4.ingress=4G")
    assert fault.path == ("pods", "A-4", "ingress")
    assert fault.message.startswith("no room for 4G on worker-02 of what arrives: with headers it takes")


def test_a_pod_comes_with_all_its_promises_or_not_at_all() -> None:
    (fault,) = arriving("pods.A-3.ingress=9G", "pods.A-3.guarantee=5G", "pods.A-4.guarantee=8G")
    assert fault.path == ("pods", "A-3", "ingress")


@pytest.mark.parametrize("ceiling", [None, 20_000_000, 30_000_000])
@pytest.mark.parametrize("guarantee", [None, 20_000_000])
@pytest.mark.parametrize("ingress", ["1k", "500M", "500000001"])
def test_answers_follow_of_what_is_received_as_the_plugin_has_it(
    ingress: str, guarantee: int | None, ceiling: int | None
) -> None:
    pod = Pod.model_validate(
        {"cluster": "a", "node": "n", "ingress": ingress, "guarantee": guarantee, "ceiling": ceiling}
    )
    told = by_capabilities(descriptions.of_name("fabric"), pod)
    found = guarantees.promise({"runtimeConfig": told}, capability_is_ceiling=True)
    assert pod.answered == (found.answers or 0)
