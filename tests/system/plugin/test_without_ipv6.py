"""A kernel booted with `ipv6.disable=1`: pods get network and promises (plugins#102, flannel#936).

It is emulated: no directory /proc/sys/net/ipv6, no socket of that family, and an `ip` that has no table of
IPv6 neighbours. What the kernel is told of IPv6 directly, it would refuse; here it can be seen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.plugin import without_ipv6
from tests.system.plugin.conftest import Node, promising
from tests.system.plugin.uplinks import Pair, on_uplink

NETWORKS = {
    "none": promising("1M", enforcement="none"),
    "pod": promising("1M"),
    "node": on_uplink("1M", "2M"),
}
IP = r"""#!/bin/sh
LESS='import json, sys
print(json.dumps([table for table in json.load(sys.stdin) if table.get("name") != "ndisc_cache"]))'
case "$*" in
*ntable*show*)
    IP "$@" | /usr/bin/python3 -c "$LESS"
    exit
    ;;
esac
exec IP "$@"
"""


@pytest.fixture
def node(plugin: Path, tmp_path: Path) -> Iterator[Node]:
    """Its plugin and what that starts run so; other programs of a test do not."""
    if os.uname().machine not in without_ipv6.SOCKET:
        pytest.skip("the number of socket(2) is not known here")
    found = next(path for path in ("/usr/sbin/ip", "/sbin/ip", "/usr/bin/ip") if os.access(path, os.X_OK))
    (tmp_path / "ip").write_text(IP.replace("IP", found))
    wrapped = tmp_path / "concorde"
    become = f'exec /usr/bin/python3 "{without_ipv6.__file__}" "{plugin}" "$@"'
    wrapped.write_text(f'#!/bin/sh\nPATH="{tmp_path}:$PATH" {become}\n')
    for file in (tmp_path / "ip", wrapped):
        file.chmod(0o755)
    made = Node(wrapped)
    yield made
    made.close()


def hide(node: Node) -> None:
    node.run("mount", "-t", "tmpfs", "tmpfs", "/proc/sys/net/ipv6")


def modes(node: Node) -> set[str]:
    """How links that the plugin made get their IPv6 addresses; as the kernel makes them, by eui64."""
    found = [
        link for kind in ("veth", "bridge") for link in node.show(*f"ip -j -d link show type {kind}".split())
    ]
    ours = [link for link in found if link.get("master") == "cni-a" or link["ifname"] == "cni-a"]
    inside = node.show("ip", "-j", "-d", "link", "show", "dev", "eth0", pod="A-1")
    return {link["inet6_addr_gen_mode"] for link in [*ours, *inside]}


@pytest.mark.parametrize("enforcement", NETWORKS)
@pytest.mark.long(one_in=3)
def test_pods_come_and_go(node: Node, enforcement: str) -> None:
    Pair(node)
    network = NETWORKS[enforcement]
    node.add_pod_namespace("A-1", "A-2")
    hide(node)
    for pod in ("A-1", "A-2"):
        result = node.call("ADD", pod, network)
        assert "code" not in result, result
        assert node.call("CHECK", pod, {**network, "prevResult": result}) == {}
    assert modes(node) == {"eui64"}
    assert " 0% packet loss" in node.in_pod("A-1", *["ping", "-c", "1", "-W", "5", "172.16.1.3"])
    assert "table ip6" not in node.run("nft", "list", "tables")
    assert node.call("STATUS", "", network) == {}
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert "concorde_attachments" in node.run(node.plugin, "metrics")
    for pod in ("A-1", "A-2"):
        assert node.call("DEL", pod, network) == {}
    assert node.leases("cluster-a") == []


def test_tables_that_were_lost_are_made_again(node: Node) -> None:
    Pair(node)
    node.add_pod_namespace("A-1")
    hide(node)
    assert "code" not in node.call("ADD", "A-1", NETWORKS["node"])
    node.run("nft", "flush", "ruleset")
    assert "repaired: " in node.run(node.plugin, "reconcile")
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


def test_the_emulation_refuses_what_such_a_kernel_refuses(node: Node, tmp_path: Path) -> None:
    """Where the plugin takes the kernel for another, that is."""
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", NETWORKS["none"])
    assert modes(node) == {"none"}
    python = "/usr/bin/python3"
    code = "import socket\ntry:\n socket.socket(socket.AF_INET6)\nexcept OSError as error:\n print(error)"
    told = node.run(python, without_ipv6.__file__, python, "-c", code)
    assert "Address family not supported" in told
