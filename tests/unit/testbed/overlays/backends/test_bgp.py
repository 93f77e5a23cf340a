"""What BIRD is told on the nodes of a cluster, and where its routes go."""

from __future__ import annotations

import pytest

from testbed.overlays.backends.bgp import Bird
from testbed.scenario import ScenarioError
from tests.paths import ROOT
from tests.unit.testbed.builders import addressed

BOTH = ("clusters.a.backend=bgp", "clusters.b.backend=bgp")
WHOLE = (ROOT / "docs" / "examples" / "bird.conf").read_text(encoding="utf-8")


def birds(*overrides: str) -> dict[str, Bird]:
    addressing = addressed("contmec", *BOTH, *overrides)
    return {name: Bird(addressing, name) for name in ("a", "b")}


def test_a_bird_announces_its_own_subnet_and_hears_those_of_all_others() -> None:
    """And the page about it shows just that."""
    assert birds()["a"].configuration("worker-01") == WHOLE


def test_two_clusters_of_a_node_share_no_table_port_or_file() -> None:
    a, b = birds().values()
    assert a.links("worker-01") == "rule add to 172.16.0.0/16 lookup 101 priority 101\n"
    assert b.links("worker-01") == "rule add to 172.17.0.0/16 lookup 102 priority 102\n"
    assert (a.port, b.port) == (179, 1790)
    (of_a,), (of_b,) = a.daemons("worker-01"), b.daemons("worker-01")
    assert list(of_a.files) == ["/run/bird/a/bird.conf"]
    files = [{word for word in one.argv if word.startswith("/")} for one in (of_a, of_b)]
    assert len(files[0]) == 2
    assert not files[0] & files[1]


def test_of_two_nodes_one_connects() -> None:
    one, other = (birds()["a"].configuration(node) for node in ("worker-01", "worker-02"))
    assert "neighbor 192.168.56.14 port 179 as 64512; }" in one
    assert "neighbor 192.168.56.13 port 179 as 64512; passive; }" in other


def test_a_route_reflector_is_everybody_s_only_peer_and_not_their_gateway() -> None:
    bird = birds("clusters.a.bgp.route_reflector=worker-01")["a"]
    assert bird.peers("master-01") == bird.peers("worker-02") == ["worker-01"]
    assert bird.peers("worker-01") == ["master-01", "worker-02"]
    reflector = bird.configuration("worker-01")
    assert reflector.count("rr client;") == 2
    assert "export where source ~ [ RTS_STATIC, RTS_BGP ]; next hop self ebgp;" in reflector
    assert "rr client" not in bird.configuration("worker-02")


def test_its_settings_are_the_clusters() -> None:
    settings = ("hold_time=30", "graceful_restart=false", "connect_delay=1", "port=1179")
    bird = birds(*(f"clusters.b.bgp.{one}" for one in settings))["b"]
    text = bird.configuration("worker-02")
    for line in ("hold time 30;", "keepalive time 10;", "graceful restart off;", "connect delay time 1;"):
        assert f"  {line}\n" in text
    assert "  graceful restart;\n" not in text
    assert "local 192.168.56.14 port 1179 as 64512;" in text
    (daemon,) = bird.daemons("worker-02")
    assert "-R" not in daemon.argv


def test_graceful_restart_is_begun_with_recovery() -> None:
    (daemon,) = birds()["a"].daemons("worker-01")
    assert daemon.argv == [
        "bird", "-f", "-R", "-c", "/run/bird/a/bird.conf", "-s", "/run/bird/a/bird.ctl",
    ]  # fmt: skip
    assert (daemon.package, daemon.ready[0]) == ("bird2", "birdc")


def test_the_rule_and_every_route_of_the_table_are_wanted() -> None:
    assert list(birds()["b"].wanted("worker-01", {})) == [
        "a rule to look up 172.17.0.0/16 in table 102",
        "a route to 172.17.0.0/24 via 192.168.56.12 on eth0 in table 102",
        "a route to 172.17.2.0/24 via 192.168.56.14 on eth0 in table 102",
    ]


def test_its_sessions_are_control_traffic() -> None:
    addressing = addressed("contmec", *BOTH)
    assert addressing.control_ports("master-01") == [22, 6443, 10250, 179]
    assert addressing.control_ports("worker-01") == [22, 6443, 10250, 20250, 179, 1790]


@pytest.mark.parametrize(
    ("override", "words"),
    [
        (
            "a.bgp.route_reflector=master-02",
            r"clusters\.a\.bgp\.route_reflector: 'master-02' is not a node of this",
        ),
        ("b.bgp.port=179", r"clusters\.b\.bgp\.port: cluster 'a' shares a node and already has BGP port 179"),
        ("b.bgp.hold_time=2", r"clusters\.b\.bgp\.hold_time: input should be greater than or equal to 3"),
    ],
)
def test_what_does_not_fit_is_refused(override: str, words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        addressed("contmec", *BOTH, f"clusters.{override}")
