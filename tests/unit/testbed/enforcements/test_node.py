"""The node keeps the promise, by a tree of classes on its uplink."""

from __future__ import annotations

from testbed.enforcements import registry
from testbed.enforcements.enforcement import Guarded
from testbed.scenario.addressing import Addressing
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
