"""What an installer asks of a node: what it lacks, and that nothing stays of a network without pods."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.links import lasting
from tests.system.plugin.conftest import REFERENCE, Document, Node, network
from tests.system.plugin.uplinks import chain, on_uplink


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


def test_examine_names_an_order_that_cannot_work(node: Node) -> None:
    plugins = [*json.loads(listed(on_uplink()))["plugins"], {"type": "tuning", "mac": "c2:b0:57:49:47:f1"}]
    status, words = ask(node, "examine", json.dumps({"name": "cluster-a", "plugins": plugins}))
    assert status == 1
    assert "plugins[1]: tuning gives the pod a hardware address that the guard refuses" in words


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


BEHIND = {"plugins": [{"type": "concorde", "enforcement": "node", "uplink": "eth0", "capacity": "1G"}]}
OTHERS = {"cniVersion": "0.4.0", "name": "cluster-a", "plugins": [{"type": "bridge"}, {"type": "portmap"}]}


def chained(node: Node, network: object, behind: object = BEHIND) -> tuple[int, Any]:
    status, words = ask(node, "chain", json.dumps({"network": network, "behind": behind}))
    return status, json.loads(words) if status == 0 else words


def test_ours_stands_behind_anothers_plugins_and_all_else_is_that_others(node: Node) -> None:
    others = {**OTHERS, "disableCheck": True}
    assert chained(node, others) == (0, {**others, "plugins": [*OTHERS["plugins"], *BEHIND["plugins"]]})
    single = {"cniVersion": "0.3.1", "name": "mine", "type": "bridge", "bridge": "cni0"}
    expected = {"cniVersion": "0.3.1", "name": "mine", "plugins": [single, *BEHIND["plugins"]]}
    assert chained(node, single) == (0, expected)


@pytest.mark.parametrize(
    ("network", "behind", "words"),
    [
        ({**OTHERS, "plugins": [{"type": "concorde"}]}, BEHIND, "plugins: concorde is among them already"),
        ({**OTHERS, "cniVersion": "0.2.0"}, BEHIND, "cniVersion: '0.2.0' is not one of 0.3.0, "),
        ({"name": "cluster-a", "plugins": []}, BEHIND, "cniVersion: None is not one of 0.3.0, "),
        (OTHERS, {"plugins": [{"type": "bandwidth"}]}, "plugins: none of them is of type concorde"),
        ({**OTHERS, "plugins": {}}, BEHIND, "plugins: a network configuration list has a list of plugins"),
    ],
)
def test_lists_that_cannot_be_put_together_are_refused(
    node: Node, network: object, behind: object, words: str
) -> None:
    status, said = chained(node, network, behind)
    assert status == 2
    assert said.startswith(f"concorde: {words}")


def port_of(node: Node, port: str) -> Any:
    """A bridge's port as the kernel has it, and the hardware addresses that somebody bound to it."""
    (link,) = node.show("ip", "-j", "-d", "link", "show", "dev", port)
    entries = node.show("bridge", "-j", "fdb", "show", "dev", port)
    bound = [entry for entry in entries if entry.get("state") == "static"]
    data = link["linkinfo"]["info_slave_data"]
    timers = {"hold_timer", "message_age_timer", "forward_delay_timer"}
    return {key: value for key, value in data.items() if key not in timers}, bound, lasting(link["flags"])


@pytest.mark.long(one_in=10)
@pytest.mark.parametrize("kind", ["bridge", "ptp"])
@pytest.mark.parametrize("enforcement", ["node", "pod", "none"])
def test_pods_behind_another_plugin_go_on_and_nothing_stays(node: Node, kind: str, enforcement: str) -> None:
    if not (REFERENCE / kind).exists():
        pytest.skip(f"there is no plugin {kind} in {REFERENCE}")
    before_all = everything(node)
    first, previous, ours = chain(node, kind)
    ours["enforcement"] = enforcement
    host = next(end["name"] for end in reversed(previous["interfaces"]) if not end.get("sandbox"))
    (address,) = (ip["address"].partition("/")[0] for ip in previous["ips"])
    if kind == "bridge":
        node.run("ip", "address", "add", "172.16.1.1/24", "dev", "cni0")

    def seen() -> Any:
        inside = node.show("tc", "-j", "qdisc", "show", "dev", "eth0", pod="A-1")
        (link,) = node.show("ip", "-d", "-j", "link", "show", "dev", "eth0", pod="A-1")
        port = port_of(node, host) if kind == "bridge" else None
        return everything(node), [qdisc["kind"] for qdisc in inside], link["gso_max_size"], port

    before = seen()
    assert node.call("ADD", "A-1", ours) == previous
    assert seen() != before
    whole = {**OTHERS, "plugins": [{"type": kind}, {**ours, "prevResult": None}]}
    status, words = ask(node, "dismantle", json.dumps(whole))
    assert status == 0, words
    assert "removed: what cluster-a A-1 had\n" in words
    assert seen() == before
    node.run("ping", "-c1", "-W5", address)
    assert ask(node, "dismantle", json.dumps(whole)) == (0, "nothing to remove\n")
    # A runtime that knows of the list as it was ends the pod by both; the other plugin alone does, too.
    assert node.call("DEL", "A-1", {**first, "prevResult": previous}, plugin=REFERENCE / kind) == {}
    after = everything(node)
    assert after[0] - {"cni0"} == before_all[0]
    assert after[1:] == before_all[1:]
