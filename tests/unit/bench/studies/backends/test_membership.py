"""Who is told what when a node of a cluster leaves, joins or moves; on nodes that run nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.studies.backends.probes import scenarios
from bench.studies.backends.probes.membership import Membership
from testbed.scenario.addressing import Addressing
from tests.doubles import RecordingNode


def addressed(**way: object) -> tuple[Addressing, Addressing, Addressing]:
    """Return a cluster of four nodes, the same without its last worker, and with that moved."""
    scenario = scenarios.of_nodes(way, 4)
    last = scenarios.workers(scenario)[-1]
    changed = (scenario, scenarios.without(scenario, last), scenarios.moved(scenario, last))
    there, without, moved = map(Addressing, changed)
    return there, without, moved


@pytest.fixture
def nodes() -> dict[str, RecordingNode]:
    return {f"node-{number}": RecordingNode(f"node-{number}") for number in range(4)}


def membership(nodes: dict[str, RecordingNode]) -> Membership:
    return Membership(scenarios.CLUSTER, nodes, lambda package, program: Path("/opt") / package / program)


def said(node: RecordingNode) -> str:
    """Return all that a node was given to run and to read."""
    words = "\n".join(" ".join(asked.argv) for asked in node.asked)
    return words + "\n" + "".join(asked.stdin for asked in node.asked)


def test_others_lose_the_route_to_a_node_that_leaves(nodes: dict[str, RecordingNode]) -> None:
    there, without, _ = addressed(backend="host-gw")
    membership(nodes).move("node-3", there, without)
    for name in ("node-0", "node-1", "node-2"):
        (asked,) = nodes[name].asked
        assert asked.stdin == "route del 10.128.3.0/24 via 10.200.0.14 dev eth0\n"
    assert said(nodes["node-3"]).count("route del ") == 3


def test_a_node_that_joins_gets_all_and_others_get_what_leads_there(nodes: dict[str, RecordingNode]) -> None:
    there, without, _ = addressed(backend="vxlan")
    membership(nodes).move("node-3", without, there)
    assert nodes["node-1"].asked[0].stdin.splitlines() == [
        "neighbour replace 10.128.3.0 lladdr 0e:01:0a:c8:00:0e dev flannel.1 nud permanent",
        "route replace 10.128.3.0/24 via 10.128.3.0 dev flannel.1 onlink",
        "fdb replace 0e:01:0a:c8:00:0e dev flannel.1 dst 10.200.0.14 self permanent",
    ]
    own = said(nodes["node-3"])
    assert own.count("route add ") == own.count("fdb add ") == 3
    assert "address add 10.200" not in own  # its uplink's is as it was


def test_a_node_that_moves_gets_another_address_between_its_old_links_and_its_new_ones(
    nodes: dict[str, RecordingNode],
) -> None:
    there, _, moved = addressed(backend="vxlan")
    membership(nodes).move("node-3", there, moved)
    texts = [asked.stdin for asked in nodes["node-3"].asked]
    assert texts[0] == "link del flannel.1\n"
    assert texts[1] == (
        "address del 10.200.0.14/16 dev eth0\naddress add 10.200.78.46/16 broadcast + dev eth0\n"
    )
    assert texts[2].startswith("link add flannel.1 address 0e:01:0a:c8:4e:2e")
    other = nodes["node-2"].asked[0].stdin.splitlines()
    assert "fdb del 0e:01:0a:c8:00:0e dev flannel.1 dst 10.200.0.14 self permanent" in other
    assert "fdb replace 0e:01:0a:c8:4e:2e dev flannel.1 dst 10.200.78.46 self permanent" in other


def test_daemons_of_others_read_what_has_changed(nodes: dict[str, RecordingNode]) -> None:
    there, without, _ = addressed(backend="bgp")
    membership(nodes).move("node-3", there, without)
    (asked,) = nodes["node-1"].asked
    assert asked.argv[-4:] == ["/opt/bird2/birdc", "-s", "/run/bird/a/bird.ctl", "configure"]
    assert "protocol bgp 'node-2'" in asked.stdin
    assert "node-3" not in asked.stdin
    assert "kill -KILL" in said(nodes["node-3"])


def test_what_daemons_see_by_themselves_nobody_is_told(nodes: dict[str, RecordingNode]) -> None:
    there, without, _ = addressed(backend="vxlan-miss")
    membership(nodes).move("node-3", there, without)
    for name in ("node-0", "node-1", "node-2"):
        assert nodes[name].asked == [], name
    own = said(nodes["node-3"])
    assert own.index("kill -KILL") < own.index(" leave ") < own.index("link del flannel.1")


def test_killed_and_started_again_with_its_files(nodes: dict[str, RecordingNode]) -> None:
    there, _, _ = addressed(backend="bgp")
    one = membership(nodes)
    one.kill("node-3", there)
    one.start("node-3", there)
    own = said(nodes["node-3"])
    assert own.index("kill -KILL") < own.index("setsid")
    assert "protocol bgp 'node-2'" in own
    assert all(not nodes[name].asked for name in ("node-0", "node-1", "node-2"))
