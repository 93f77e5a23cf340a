"""ADD, CHECK, GC, DEL and `rebuild`, with a kernel that notes and says what it is told to say."""

from __future__ import annotations

import errno
import json
import shutil
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from concorde import (
    addresses,
    batches,
    chain,
    host_interfaces,
    links,
    names,
    rebuild,
    routing,
    rtnetlink,
    tools,
)
from concorde.cni import CHECK_FAILED, COMMAND_FAILED, DAMAGED, INVALID_CONFIGURATION, UNSUITABLE, CniError
from concorde.node import observe, remains
from concorde.node.ledger import Ledger
from concorde.requests import KEYS, VALID, Request
from concorde.verbs import gc
from concorde.verbs.add import add
from concorde.verbs.check import check
from concorde.verbs.delete import delete

from tests.unit.plugin.node.kernels import NotingKernel, failure
from tests.waiting import until

NETNS = "/proc/self/ns/net"  # some path that is there
SUBNET = addresses.parse_subnet("172.16.1.0/24")
HOST_MAC, POD_MAC = addresses.host_mac(SUBNET.network + 2), addresses.pod_mac(SUBNET.network + 2)


class Node:
    """A node's kernel and its state directory."""

    def __init__(self, noting: NotingKernel, state: Path) -> None:
        self.noting, self.state, self.there = noting, state, {"eth0", "cni-a"}
        self.unsuitable: list[str] = []
        self.refused: dict[str, Exception] = {}  # by what stands in a batch

    def document(self, **keys: Any) -> dict[str, Any]:
        return {
            "cniVersion": "1.1.0", "name": "net", "type": "concorde", "bridge": "cni-a",
            "stateDir": str(self.state), "subnet": "172.16.1.0/24", "enforcement": "none", **keys,
        }  # fmt: skip

    def request(self, pod: str = "a", **keys: Any) -> Request:
        return Request(self.document(**keys), pod, "eth0", NETNS, f"default/{pod}")

    def leases(self) -> list[str]:
        return [container for _, container, _ in Ledger(f"{self.state}/node").leases()]

    def entries(self) -> list[str]:
        return [entry.container for entry in Ledger(f"{self.state}/node").entries()]

    def shows(self, veths: list[dict[str, Any]]) -> None:
        self.noting.answers["ip -j -d link show type veth"] = json.dumps(veths)


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Node:
    node = Node(NotingKernel(monkeypatch, observe.State()), tmp_path / "state")

    told = batches.run

    def run(tool: str, text: str, netns: str = "") -> None:
        told(tool, text, *([netns] if netns else []))
        for part, error in node.refused.items():
            if part in text:
                raise error
        for words in map(str.split, text.splitlines()):
            if words[:3] == ["link", "add", "name"]:
                node.there.add(words[3])
            elif words[:2] == ["link", "delete"]:
                node.there.discard(words[-1])

    monkeypatch.setattr(batches, "run", run)
    monkeypatch.setattr(routing, "has_default", lambda _netns: False)
    monkeypatch.setattr(links, "exists", lambda name: name in node.there)
    monkeypatch.setattr(links, "_ensure_forwarding", lambda: None)
    monkeypatch.setattr(rtnetlink, "link_kind", lambda name: "bridge" if name in node.there else None)
    monkeypatch.setattr(remains, "elements", list)
    monkeypatch.setattr("concorde.surroundings.refusals", lambda *_: node.unsuitable)
    node.shows([])
    node.noting.state.ports = {names.host_veth("net", pod, "eth0") for pod in "abc"}
    return node


def veth(pod: str) -> str:
    return names.host_veth("net", pod, "eth0")


def pair(pod: str) -> str:
    """How the line begins that makes its pair."""
    return f"link add name {veth(pod)} "


def test_an_add_makes_the_pair_closes_its_port_and_answers_with_it(node: Node) -> None:
    answer = add(node.request())
    assert answer is not None
    assert [(end["name"], end.get("mac")) for end in answer["interfaces"]] == [
        ("cni-a", None), (veth("a"), HOST_MAC), ("eth0", POD_MAC),
    ]  # fmt: skip
    assert answer["ips"][0]["address"] == "172.16.1.2/24"
    asked = [one for one in node.noting.asked if one[0] in ("close", "batch")]
    assert [one[0] for one in asked] == ["batch", "close", "batch", "batch"]
    assert pair("a") in asked[0][2]
    assert [one[3:] for one in asked if one[0] == "batch"] == [(), (NETNS,), (NETNS,)]
    assert (node.leases(), node.entries()) == (["a"], ["a"])
    assert add(node.request("b"))["ips"][0]["address"] == "172.16.1.3/24"


@pytest.mark.parametrize(
    "failing",
    [f"link add name {names.host_veth('net', 'b', 'eth0')} ", "", "addr add 172.16.1.3/24", "route add "],
    ids=["its pair", "its port", "its pod", "its route"],
)
def test_an_add_that_fails_leaves_no_lease_entry_or_link(failing: str, node: Node) -> None:
    add(node.request())
    if failing:
        node.refused[failing] = failure("no")
    else:
        node.noting.failing["close",] = OSError(errno.EPERM, "no")
    with pytest.raises((OSError, tools.CommandError)):
        add(node.request("b"))
    assert (node.leases(), node.entries()) == (["a"], ["a"])
    assert veth("b") not in node.there


def test_an_address_that_a_pod_has_whom_no_lease_tells_of_is_damage(node: Node) -> None:
    words = "link property add dev veth1 altname cni-a-172.16.1.2"
    node.refused[pair("a")] = tools.CommandError(["ip", words], "File exists", 6, errno.EEXIST)
    with pytest.raises(CniError, match="no lease has it: run concorde rebuild") as caught:
        add(node.request())
    assert caught.value.code == DAMAGED


def test_an_add_that_can_neither_go_on_nor_back_keeps_its_lease(node: Node) -> None:
    node.refused = {"addr add ": failure("Error: first"), "link delete ": failure("Error: second")}
    with pytest.raises(CniError, match=r"first.*undoing it failed.*second") as caught:
        add(node.request())
    assert caught.value.code == COMMAND_FAILED
    assert node.leases() == ["a"]


def test_who_follows_another_plugin_passes_its_result_on(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    end = host_interfaces.HostInterface(7, {})
    end.name = "veth7"
    monkeypatch.setattr(host_interfaces, "of", lambda *_: host_interfaces.Found(end, POD_MAC, 2, "n"))
    told = {
        "interfaces": [{"name": "br0"}, {"name": "veth7"}, {"name": "eth0", "mac": POD_MAC, "sandbox": "/n"}]
    }
    answer = add(node.request(subnet=None, prevResult={**told, "ips": [{"address": "10.0.0.2/24"}]}))
    assert answer is not None
    assert answer["interfaces"] == told["interfaces"]
    assert (answer["cniVersion"], node.leases(), node.entries()) == ("1.1.0", ["a"], ["a"])
    assert not any(asked[0] == "batch" for asked in node.noting.asked)


# CHECK


def whole(node: Node) -> dict[str, Any]:
    """What the kernel shows of pod a where all is well, by the command."""
    flags = ["BROADCAST", "UP"]
    return {
        f"ip -j link show dev {veth('a')}": {"master": "cni-a", "flags": flags},
        "ip -j addr show dev cni-a": {
            "flags": flags, "addr_info": [{"local": "172.16.1.1", "prefixlen": 24}],
        },
        "ip -j addr show dev eth0": {
            "flags": flags, "address": POD_MAC, "addr_info": [{"local": "172.16.1.2", "prefixlen": 24}],
        },
        "ip -j route show default": {"gateway": "172.16.1.1", "dev": "eth0"},
    }  # fmt: skip


def answer(node: Node, shown: dict[str, Any]) -> None:
    node.noting.answers.update({command: json.dumps([one]) for command, one in shown.items()})
    entries = Ledger(f"{node.state}/node").entries()
    from concorde.node import tables

    node.noting.state.elements = {element for entry in entries for element in tables.elements(entry)}
    node.noting.state.elements |= {("ip", "vteps", '"of "'), ("ip", "bridges", '"cni-a"')}


def test_an_unsuitable_node_is_refused_before_a_networks_first_pod_and_not_asked_about_after(
    node: Node,
) -> None:
    node.unsuitable = ["cni0 has it", "and more"]
    with pytest.raises(CniError) as caught:
        add(node.request("a"))
    assert (caught.value.code, caught.value.msg) == (UNSUITABLE, "cni0 has it; and more")
    assert node.leases() == node.entries() == []
    node.unsuitable = []
    add(node.request("a"))
    node.unsuitable = ["what came later"]
    add(node.request("b"))
    assert node.leases() == ["a", "b"]


def test_a_list_is_read_again_when_something_in_its_directory_has_changed(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, clock, read = tmp_path / "net.d", tmp_path / "clock", 0
    listed = chain.listed

    def counted(name: str, directory: str) -> list[dict[str, Any]]:
        nonlocal read
        read += 1
        return listed(name, directory)

    def write(name: str, *others: dict[str, str]) -> None:
        file = lists / name
        file.write_text(json.dumps({"name": "net", "plugins": [{"type": "concorde"}, *others]}))
        until(lambda: clock.write_text("") == 0 and clock.stat().st_mtime_ns > file.stat().st_ctime_ns)

    def attach(pod: str) -> None:
        add(node.request(pod, confDir=str(lists)))

    monkeypatch.setattr(chain, "listed", counted)
    lists.mkdir()
    write("10-net.conflist")
    for pod in "abcd":
        attach(pod)
    assert read == 2  # before and after there was a place to write that down
    for name, pod in (("10-net.conflist", "e"), ("05-new.conflist", "f")):
        write(name, {"type": "tuning", "mac": POD_MAC})
        for _ in range(2):
            with pytest.raises(CniError, match="leave that out"):
                attach(pod)
        write(name)
        attach(pod)
    shutil.rmtree(lists)
    attach("g")


@pytest.fixture
def no_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concorde.node.differences.differences", lambda *_: [])


@pytest.mark.usefixtures("no_differences")
def test_a_check_finds_what_was_made(node: Node) -> None:
    result = add(node.request())
    answer(node, whole(node))
    check(node.request(prevResult=result))
    for missing in ("b", "a"):
        with pytest.raises(CniError) as caught:
            check(node.request(missing, **({"prevResult": result} if missing == "b" else {})))
        assert caught.value.code == (CHECK_FAILED if missing == "b" else INVALID_CONFIGURATION)


@pytest.mark.parametrize(
    ("command", "changed", "words"),
    [
        ("link show dev veth", {"master": "br0"}, "is not a port of cni-a"),
        ("link show dev veth", {"flags": []}, "is down"),
        ("addr show dev cni-a", {"addr_info": []}, "cni-a has lost its address 172.16.1.1/24"),
        ("addr show dev cni-a", {"flags": ["DOWN"]}, "cni-a is down"),
        (
            "addr show dev eth0",
            {"addr_info": [{"local": "172.16.1.2", "prefixlen": 16}]},
            "eth0 has lost its address",
        ),
        ("addr show dev eth0", {"flags": []}, "eth0 is down"),
        ("addr show dev eth0", {"address": HOST_MAC}, "eth0 has hardware address"),
        ("route show default", {"gateway": "172.16.1.9"}, "has lost its default route via 172.16.1.1"),
        ("route show default", {"dev": "eth1"}, "has lost its default route"),
    ],
)
@pytest.mark.usefixtures("no_differences")
def test_a_check_names_what_is_no_more_as_it_was_made(
    command: str, changed: dict[str, Any], words: str, node: Node
) -> None:
    result = add(node.request())
    shown = whole(node)
    (at,) = [one for one in shown if command in one]
    answer(node, {**shown, at: {**shown[at], **changed}})
    with pytest.raises(CniError, match=words) as caught:
        check(node.request(prevResult=result))
    assert caught.value.code == CHECK_FAILED


@pytest.mark.usefixtures("no_differences")
def test_a_check_compares_the_lease_with_result_and_configuration(node: Node) -> None:
    result = add(node.request())
    assert result is not None
    answer(node, whole(node))
    for keys, words in (
        ({"prevResult": {**result, "ips": [{"address": "172.16.1.9/24"}]}}, "is not in prevResult"),
        ({"prevResult": result, "enforcement": "pod"}, "the lease says"),
    ):
        with pytest.raises(CniError, match=words):
            check(node.request(**keys))
    # A result without a default route asks for none.
    answer(node, {**whole(node), "ip -j route show default": {"dev": "eth9"}})
    check(node.request(prevResult={**result, "routes": [{"dst": "10.0.0.0/8"}]}))
    node.noting.failing["run", "ip", "-j", "addr"] = failure("Error: gone")
    with pytest.raises(CniError, match="gone") as caught:
        check(node.request(prevResult=result))
    assert caught.value.code == CHECK_FAILED


# DEL and GC


def test_a_del_stops_the_link_removes_it_and_forgets_the_lease_last(node: Node) -> None:
    for pod in ("a", "b"):
        add(node.request(pod))
    node.noting.asked.clear()
    delete(node.request())
    assert node.noting.asked[0] == ("down", veth("a"))
    assert ("batch", "ip", f"link delete dev {veth('a')}\n") in node.noting.asked
    assert (node.leases(), node.entries()) == (["b"], ["b"])
    delete(node.request())
    assert node.leases() == ["b"]


def test_a_del_whose_link_stays_keeps_the_lease(node: Node) -> None:
    add(node.request())
    node.refused["link delete "] = failure("Error: busy")
    with pytest.raises(tools.CommandError, match="busy"):
        delete(node.request())
    assert node.leases() == ["a"]
    node.there.discard(veth("a"))  # the kernel has deleted it meanwhile
    delete(node.request())
    assert node.leases() == []


def collect(node: Node, *valid: str) -> None:
    kept = [{"containerID": pod, "ifname": "eth0"} for pod in valid]
    gc.gc(Request(node.document(**{VALID: kept}), "", "", ""))


def test_gc_releases_what_is_not_valid_and_ports_of_nobody(node: Node) -> None:
    for pod in ("a", "b"):
        add(node.request(pod))
    node.there.add(veth("c"))
    ports = [{"ifname": name} for name in (veth("a"), veth("c"), "eth9")]
    node.noting.answers["ip -j -d link show master cni-a"] = json.dumps(ports)
    node.noting.asked.clear()
    collect(node, "a")
    assert (node.leases(), node.entries()) == (["a"], ["a"])
    deleted = [asked[2].split() for asked in node.noting.asked if asked[0] == "batch"]
    assert [words[-1] for words in deleted if words[:2] == ["link", "delete"]] == [veth("b"), veth("c")]
    node.there.discard("cni-a")
    collect(node)
    assert node.leases() == []


def test_gc_goes_on_after_an_error_and_tells_all(node: Node) -> None:
    for pod in ("a", "b"):
        add(node.request(pod))
    node.refused[f"link delete dev {veth('a')}\n"] = failure("Error: busy")
    with pytest.raises(CniError, match="busy") as caught:
        collect(node)
    assert caught.value.code == COMMAND_FAILED
    assert (node.leases(), caught.value.details.count("busy")) == (["a"], 1)
    node.noting.failing["run", "ip", "-j", "-d"] = failure("Error: no list")
    with pytest.raises(CniError) as caught:
        collect(node, "a")
    assert "no list" in caught.value.details


NAMES: list[dict[str, object]] = [{}, {"containerID": "a"}, {"containerID": "a b", "ifname": "eth0"}]
NAMES += [{"containerID": "a", "ifname": "a/b"}, {"containerID": 1, "ifname": "eth0"}]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("valid", [{}, "a", [1], *([one] for one in NAMES)], ids=str)
def test_a_list_that_is_none_is_not_taken_for_an_empty_one(valid: object, key: str, node: Node) -> None:
    add(node.request())
    refuse(node, node.document(**{key: valid, **({VALID: []} if key != VALID else {})}))


def test_a_list_that_is_missing_is_not_taken_for_an_empty_one(node: Node) -> None:
    add(node.request())
    refuse(node, node.document())


def refuse(node: Node, document: dict[str, Any]) -> None:
    with pytest.raises(CniError) as caught:
        gc.gc(Request(document, "", "", ""))
    assert (caught.value.code, node.leases()) == (INVALID_CONFIGURATION, ["a"])


# rebuild


def kept(node: Node, directory: Path, *pods: str, **keys: Any) -> list[str]:
    """Write what a runtime keeps of pods."""
    directory.mkdir(exist_ok=True)
    for pod in pods:
        network = {"cniVersion": "1.1.0", "name": "net", "plugins": [{**node.document(), **keys}]}
        whole = {
            "kind": "cniCacheV1", "containerId": pod, "ifName": "eth0", "networkName": "net",
            "config": b64encode(json.dumps(network).encode()).decode(),
        }  # fmt: skip
        (directory / f"net-{pod}-eth0").write_text(json.dumps(whole))
    return [str(directory)]


def port(pod: str, number: int) -> dict[str, Any]:
    mac = addresses.host_mac(SUBNET.network + number)
    return {"ifname": veth(pod), "address": mac, "master": "cni-a", "mtu": 1500}


def test_without_anything_there_is_nothing_to_rebuild(node: Node, tmp_path: Path) -> None:
    assert rebuild.rebuild(str(node.state), kept(node, tmp_path / "cache")) == []
    assert not node.state.exists()
    assert "No such file" in rebuild.rebuild(str(node.state), [str(tmp_path / "nowhere")])[0]


def test_a_rebuild_learns_who_lives_from_caches_and_ports(node: Node, tmp_path: Path) -> None:
    caches = kept(node, tmp_path / "cache", "a", "b", "gone")
    kept(node, tmp_path / "cache", "other", stateDir="/somewhere/else")
    kept(node, tmp_path / "cache", "bad", bridge="a/b")
    node.shows([port("a", 2), port("b", 3), port("nobody", 4)])
    said = rebuild.rebuild(f"{node.state}/", caches)
    assert (node.leases(), node.entries()) == (["a", "b"], ["a", "b"])
    assert f"made: {node.state}/node/ledger.sqlite, attachments: 2" in said
    assert f"not learned: the owner of port {veth('nobody')} of cni-a; its address stays reserved" in said
    assert [line for line in said if "'a/b' is not an interface name" in line]
    assert add(node.request("c"))["ips"][0]["address"] == "172.16.1.5/24"
    assert not [file for file in node.state.rglob("*") if ".new" in file.name]


def test_a_rebuild_keeps_damaged_files_and_what_whole_ones_tell(node: Node, tmp_path: Path) -> None:
    caches = kept(node, tmp_path / "cache", "a")
    for pod in ("a", "b"):
        add(node.request(pod))
    node.shows([port("a", 2), port("b", 3)])
    said = rebuild.rebuild(str(node.state), caches)
    assert (node.leases(), node.entries()) == (["a", "b"], ["a", "b"])
    assert not any(line.startswith("kept: ") for line in said)
    file = node.state / "node" / "ledger.sqlite"
    file.write_bytes(b"nonsense")
    said = rebuild.rebuild(str(node.state), caches)
    assert (node.leases(), node.entries()) == (["a"], ["a"])
    assert [line.partition(".damaged-")[0] for line in said if line.startswith("kept: ")] == [f"kept: {file}"]
    assert f"not learned: the owner of port {veth('b')} of cni-a; its address stays reserved" in said


def test_two_that_say_they_have_one_address_are_not_both_believed(node: Node, tmp_path: Path) -> None:
    node.shows([port("a", 2), port("b", 2)])
    said = rebuild.rebuild(str(node.state), kept(node, tmp_path / "cache", "a", "b"))
    assert len(node.leases()) == 1
    assert sum("has another's address" in line for line in said) == 1
