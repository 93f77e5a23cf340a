"""What an installer asks of a node: what it lacks, and that nothing stays of a network without pods."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.system.plugin.conftest import Document, Node, network
from tests.system.plugin.uplinks import on_uplink


@pytest.fixture
def node(node: Node) -> Node:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace("A-1", "A-2", "B-1")
    return node


def listed(configuration: Document) -> str:
    """The list a `.conflist` has for a network of this one plugin."""
    plugin = {key: value for key, value in configuration.items() if key not in ("name", "cniVersion")}
    return json.dumps({"cniVersion": "1.0.0", "name": configuration["name"], "plugins": [plugin]})


def ask(node: Node, verb: str, text: str) -> tuple[int, str]:
    done = subprocess.run(node.argv(node.plugin, verb), input=text, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def loopback(node: Node) -> Any:
    file = node.plugin.parent / "loopback"
    file.write_text("")
    file.chmod(0o755)
    yield file
    file.unlink()


@pytest.mark.usefixtures("loopback")
def test_nothing_is_lacking_on_a_whole_node(node: Node) -> None:
    assert ask(node, "examine", listed(on_uplink())) == (0, "nothing is lacking\n")


def test_all_that_is_lacking_is_named(node: Node, tmp_path: Path) -> None:
    text = json.loads(listed(network(subnetFile="/run/flannel/subnet.env", subnet=None)))
    text["plugins"].append({"type": "tuning"})
    status, words = ask(node, "examine", json.dumps(text))
    directory = node.plugin.parent
    assert status == 1
    assert words.splitlines() == [
        f"concorde: there is no plugin loopback in {directory}",
        f"concorde: there is no plugin tuning in {directory}",
        "concorde: subnetFile: /run/flannel/subnet.env: No such file or directory",
    ]


def test_a_list_without_the_plugin_is_refused(node: Node) -> None:
    for verb in ("examine", "dismantle"):
        status, words = ask(node, verb, '{"name": "a", "plugins": [{"type": "bridge"}]}')
        assert (status, words) == (2, "concorde: plugins: none of them is of type concorde\n")


def test_nothing_is_dismantled_while_pods_are_attached(node: Node) -> None:
    configuration = on_uplink("100M")
    result = node.call("ADD", "A-1", configuration)
    status, words = ask(node, "dismantle", listed(configuration))
    assert status == 1
    assert words == "concorde: pods are still attached to network cluster-a: 172.16.1.2\n"
    assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}


def test_nothing_stays_of_the_last_network(node: Node) -> None:
    before = everything(node)
    configuration = on_uplink("100M")
    node.call("ADD", "A-1", configuration)
    node.call("ADD", "A-2", configuration)
    node.call("DEL", "A-2", configuration)
    # Another configuration saw this pod's end, so nobody told the plugin.
    node.run("ip", "netns", "delete", "A-1")
    node.run("sh", "-c", "while ip -j link show type veth | grep -q '\"veth'; do sleep 0.02; done")
    assert ask(node, "dismantle", listed(configuration))[0] == 0
    assert everything(node) == before
    assert ask(node, "dismantle", listed(configuration)) == (0, "nothing to remove\n")


def test_what_networks_share_stays_for_the_other(node: Node) -> None:
    first, second = on_uplink("100M"), on_uplink("100M", cluster="b")
    node.call("ADD", "A-1", first)
    node.call("ADD", "B-1", second)
    node.call("DEL", "A-1", first)
    assert ask(node, "dismantle", listed(first)) == (
        0,
        "removed: /run/concorde/cluster-a\nremoved: cni-a\n",
    )
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"
    assert node.show("tc", "-j", "qdisc", "show", "dev", "eth0", "root")[0]["handle"] == "c0de:"


def everything(node: Node) -> Any:
    links = {link["ifname"] for link in node.show("ip", "-j", "link")}
    qdiscs = [(q["kind"], q["handle"]) for q in node.show("tc", "-j", "qdisc", "show", "dev", "eth0")]
    waiting = [
        (table["name"], table["queue"]) for table in node.show("ip", "-j", "ntable", "show", "dev", "eth0")
    ]
    tables = node.run("nft", "list", "ruleset")
    state = node.run("sh", "-c", "ls -R /run/concorde 2>/dev/null || true")
    return links, qdiscs, waiting, tables, state


def test_what_the_host_has_no_room_for_is_said_and_a_node_that_is_too_narrow_is_not_ready(
    node: Node, loopback: Any
) -> None:
    """Only the machine's own network namespace has these files; here others stand in for them."""
    assert loopback
    node.run("mount", "-t", "tmpfs", "tmpfs", "/proc/sys/net/ipv4/neigh")
    node.run("mkdir", "/proc/sys/net/ipv4/neigh/default")

    def allow(entries: int) -> None:
        node.run("tee", "/proc/sys/net/ipv4/neigh/default/gc_thresh3", stdin=f"{entries}\n")

    allow(1024)
    status, words = ask(node, "examine", listed(on_uplink()))
    assert status == 0
    assert words.startswith("nothing is lacking\nnote: net.ipv4.neigh.default.gc_thresh3 is 1024; ")
    assert node.call("STATUS", "", on_uplink()) == {}
    allow(128)
    error = node.call("STATUS", "", on_uplink())
    assert error["code"] == 50
    assert "gc_thresh3 is 128" in error["msg"]
    allow(100_000)
    assert ask(node, "examine", listed(on_uplink())) == (0, "nothing is lacking\n")
