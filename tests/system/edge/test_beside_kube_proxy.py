"""A node on which somebody else serves a cluster's services: that is seen by what it has in a real kernel.

The rules are those that kube-proxy 1.20 writes by iptables, and 1.31 by nftables, for the API's own service.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from ipaddress import IPv4Network

import pytest

from edge.services.rules import Frame, State, whole
from testbed import resources
from testbed.access.components import Component
from testbed.access.place import Node
from testbed.providers.netns.sandbox import Sandbox
from testbed.supplies.images import SEARCHED
from tests.waiting import until

OURS, ANOTHERS = IPv4Network("10.96.0.0/16"), IPv4Network("10.97.0.0/16")
BY_IPTABLES = """\
*nat
:KUBE-SERVICES - [0:0]
:KUBE-SVC-NPX46M4PTMTKRN6Y - [0:0]
-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
-A KUBE-SERVICES ! -s 10.61.0.0/16 -d 10.97.0.1/32 -p tcp -m tcp --dport 443 -j MARK --set-xmark 0x4000/0x4000
-A KUBE-SERVICES -d 10.97.0.1/32 -p tcp -m comment --comment "default/kubernetes:https cluster IP" -m tcp \
--dport 443 -j KUBE-SVC-NPX46M4PTMTKRN6Y
COMMIT
"""
BY_NFTABLES = """
table ip kube-proxy {
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.97.0.1 . tcp . 443 : goto service-2QRHZV4L-default/kubernetes/tcp/https }
  }
  chain service-2QRHZV4L-default/kubernetes/tcp/https { }
}
"""
ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
from ipaddress import IPv4Network
from edge.services.others import serving
print(json.dumps([serving(IPv4Network(services), "services-own") for services in sys.argv[2:]]))
"""


@pytest.fixture(scope="module")
def box() -> Iterator[Sandbox]:
    box = Sandbox.start("tests.beside")
    try:
        yield box
    finally:
        box.stop()


def bare(box: Sandbox, name: str) -> Node:
    """Return a node on which nobody serves anything."""
    box.add_nodes([name])
    node = box.node(name)
    assert ask(node) == ["", ""]
    return node


def ask(node: Node) -> list[str]:
    """Return who serves one cluster's services on a node, and who another's."""
    argv = ["/usr/bin/python3", "-ISc", ASK, str(resources.EDGE.parent), str(OURS), str(ANOTHERS)]
    found: list[str] = node.run(argv).json()
    return found


@pytest.mark.parametrize("mode", ["iptables", "iptables-legacy"])
def test_rules_of_iptables_are_of_the_cluster_whose_addresses_they_have(box: Sandbox, mode: str) -> None:
    program = {"iptables": "iptables-nft"}.get(mode, mode) + "-restore"
    if shutil.which(program, path=SEARCHED) is None:
        pytest.skip(f"there is no {program}")
    node = bare(box, mode)
    done = node.run([program], stdin=BY_IPTABLES, check=False)
    if done.status:
        pytest.skip(done.stderr)
    assert ask(node) == ["", f"kube-proxy, mode {mode}"]


def test_so_are_maps_of_nftables(box: Sandbox) -> None:
    node = bare(box, "nftables")
    node.run(["nft", "-f", "-"], stdin=BY_NFTABLES)
    assert ask(node) == ["", "kube-proxy, mode nftables"]


def test_of_proxies_like_ours_the_first_stays(box: Sandbox) -> None:
    node = bare(box, "peers")
    node.run(["nft", "-f", "-"], stdin=whole(Frame("other", ANOTHERS), State({})))
    assert ask(node) == ["", "the proxy that has table ip services-other"]
    node.run(["nft", "-f", "-"], stdin=whole(Frame("own", ANOTHERS), State({})))
    assert ask(node) == ["", ""]


def test_a_proxy_takes_away_what_it_wrote_before_a_kube_proxy_came(box: Sandbox) -> None:
    node = bare(box, "proxied")
    node.run(["nft", "-f", "-"], stdin=BY_NFTABLES)
    argv = ["/usr/bin/python3", "-IS", str(resources.EDGE), "services-proxy", "--file", "/run/services.json"]
    node.run(["tee", "/run/services.json"], stdin='{"items": []}')
    before = node.run(["nft", "list", "ruleset"]).stdout
    served = "0 ports of services"
    left = "kube-proxy, mode nftables serves 10.97.0.0/16 on this node"
    for cluster, services, said in (("own", OURS, served), ("another", ANOTHERS, left)):
        node.run(["nft", "-f", "-"], stdin=whole(Frame(cluster, services), State({})))
        told = ["--cluster", cluster, "--services", str(services)]
        proxy = Component(cluster, node, f"/run/{cluster}", [*argv, *told])
        proxy.start()
        until(lambda: said in proxy.last_words(), proxy.last_words)  # noqa: B023 (it is waited for here)
        rules = node.run(["nft", "list", "ruleset"]).stdout
        proxy.kill()  # or it would write again what is taken away
        if said == served:
            assert "table ip services-own" in rules
            node.run([*argv, *told, "--leave"])
        else:
            assert rules == before
