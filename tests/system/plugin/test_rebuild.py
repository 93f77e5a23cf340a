"""Store and ledger damaged or gone: what is said, what works meanwhile, and what `rebuild` makes of it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from tests.system.plugin import former
from tests.system.plugin.conftest import REFERENCE, Node, network, promising
from tests.system.plugin.runtimes import CACHE, attach, keep
from tests.system.plugin.uplinks import chain, ledger, on_uplink

STATE = "/run/concorde"
LEDGER = f"{STATE}/node/ledger.sqlite"
PODS = ("A-1", "A-2", "B-1")

DAMAGES = {
    "not a database": "printf nonsense-all-over > FILE",
    "garbage in the middle": "dd if=/dev/urandom of=FILE bs=1 seek=4096 count=4096 conv=notrunc status=none",
    "truncated": "truncate -s 5000 FILE",
    "empty": ": > FILE",
    "gone": "rm FILE",
    "a directory": "rm FILE && mkdir FILE",
    "a symbolic link": "mv FILE /run/elsewhere && ln -s /run/elsewhere FILE",
    "somebody else's": "chown 1234 FILE",
    "without tables": 'rm FILE && python3 -c \'import sqlite3; d=sqlite3.connect("FILE");'
    ' d.execute("create table other (a)"); d.execute("pragma user_version=1"); d.commit()\'',
}


@pytest.fixture
def node(node: Node) -> Node:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace(*PODS)
    return node


def program(node: Node, *arguments: str, stdin: str = "") -> tuple[int, str]:
    done = subprocess.run(node.argv(node.plugin, *arguments), input=stdin, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def rebuilt(node: Node) -> str:
    status, words = program(node, "rebuild", "--cache", CACHE)
    assert status == 0, words
    return words


def damage(node: Node, how: str, file: str) -> None:
    if how == "somebody else's" and node.in_user_namespace:
        pytest.skip("an ordinary user has no second user to give a file to")
    node.run("sh", "-c", DAMAGES[how].replace("FILE", file))


def told(node: Node) -> Any:
    """The ledger without what is counted: what a pod's kernel sends of its own is dropped at any time."""
    found = ledger(node)
    for entry in found["attachments"]:
        del entry["dropped"]
    return found


def state(node: Node) -> Any:
    """Everything that must agree: leases, ledger, classes, map."""
    classes = node.run("tc", "class", "show", "dev", "eth0").splitlines()
    shown = [line.partition(" burst")[0] for line in sorted(classes)]
    return (
        sorted(node.leases("cluster-a")),
        told(node),
        shown,
        node.run("nft", "list", "map", "ip", "concorde", "promises"),
    )


@pytest.mark.long(one_in=9)
@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_ledger_is_told_in_words_and_made_again(node: Node, how: str) -> None:
    configuration = on_uplink("100M", "200M")
    result = attach(node, "A-1", configuration)
    before = state(node)
    damage(node, how, LEDGER)
    error = node.call("ADD", "A-2", on_uplink("10M"))
    assert error["code"] in (107, 108), error
    assert "Error" not in error["msg"]
    assert "rebuild" in error["msg"]
    words = rebuilt(node)
    assert f"made: {LEDGER}" in words
    assert state(node) == before
    assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}
    assert program(node, "reconcile") == (0, "nothing to repair\n")
    attach(node, "A-2", on_uplink("10M"))
    if how == "not a database":
        assert f"kept: {LEDGER}.damaged-1\n" in words
        assert node.run("cat", f"{LEDGER}.damaged-1") == "nonsense-all-over"


@pytest.mark.long(one_in=10)
@pytest.mark.parametrize("how", ["not a database", "gone", "garbage in the middle", "a symbolic link"])
@pytest.mark.parametrize("verb", ["DEL", "GC"])
def test_pods_end_meanwhile_and_leave_nothing_in_the_kernel(node: Node, how: str, verb: str) -> None:
    result = attach(node, "A-1", on_uplink("100M"))
    attach(node, "B-1", on_uplink("50M", cluster="b"))
    damage(node, how, LEDGER)
    kept = node.run("sh", "-c", f"cat {LEDGER} 2>/dev/null | md5sum")
    if verb == "DEL":
        assert node.call("DEL", "A-1", on_uplink("100M", prevResult=result)) == {}
    else:
        assert node.call("GC", "", {**on_uplink(), "cni.dev/valid-attachments": []}) == {}
    assert result["interfaces"][1]["name"] not in node.veths()
    elements = node.run("nft", "list", "ruleset")
    assert "172.16.1.2" not in elements
    assert "172.17.1.2" in elements
    assert "class htb c0de:10 " not in node.run("tc", "class", "show", "dev", "eth0")
    assert node.run("sh", "-c", f"cat {LEDGER} 2>/dev/null | md5sum") == kept
    node.run("sh", "-c", f"rm -f {CACHE}/cluster-a-*")
    rebuilt(node)
    assert [entry["container"] for entry in ledger(node)["attachments"]] == ["B-1"]
    assert program(node, "reconcile") == (0, "nothing to repair\n")


@pytest.mark.parametrize("of", ["cluster-a", "cluster-z"])
@pytest.mark.long(one_in=2)
def test_a_store_of_a_version_before_is_put_aside_wherever_it_is_damaged(node: Node, of: str) -> None:
    configuration = on_uplink("100M", "200M")
    result = attach(node, "A-1", configuration)
    before = state(node)
    former.keep(node)
    store = f"/run/concorde/{of}/leases.sqlite"
    if of != "cluster-a":  # of a network that is gone
        node.run("cp", "-a", "/run/concorde/cluster-a", f"/run/concorde/{of}")
    damage(node, "garbage in the middle", store)
    error = node.call("ADD", "A-2", on_uplink("10M"))
    assert error["code"] == 107, error
    assert f"kept: {store}.damaged-1\n" in rebuilt(node)
    assert state(node) == before
    assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}


@pytest.mark.parametrize("command", ["rm -r /run/concorde", ": > " + LEDGER, "rm " + LEDGER])
@pytest.mark.long(one_in=3)
def test_a_living_pods_address_is_never_given_twice(node: Node, command: str) -> None:
    attach(node, "A-1", promising("1G"))
    node.run("sh", "-c", command)
    for _ in range(2):
        error = node.call("ADD", "A-2", promising("1G"))
        assert error["code"] == 107
        assert "rebuild" in error["msg"]
    rebuilt(node)
    result = attach(node, "A-2", promising("1G"))
    assert result["ips"][0]["address"] == "172.16.1.3/24"


def test_a_ledger_of_yesterday_gives_no_address_twice(node: Node) -> None:
    attach(node, "A-1", network())
    node.run("cp", LEDGER, "/run/yesterday")
    attach(node, "A-2", network())
    node.run("cp", "/run/yesterday", LEDGER)
    error = node.call("ADD", "B-1", network())
    assert error["code"] == 107
    assert "172.16.1.3" in error["msg"]
    rebuilt(node)
    assert attach(node, "B-1", network())["ips"][0]["address"] == "172.16.1.4/24"


def test_a_pod_of_which_no_cache_tells_keeps_its_address_to_itself(node: Node) -> None:
    attach(node, "A-1", network())
    assert "code" not in node.call("ADD", "A-2", network())  # of 172.16.1.3
    node.run("rm", LEDGER)
    assert "not learned: the owner of port veth" in rebuilt(node)
    assert node.call("ADD", "B-1", network())["ips"][0]["address"] == "172.16.1.4/24"
    assert node.call("DEL", "A-2", network()) == {}
    query = "SELECT count(*) FROM reserved WHERE address = 0xAC100103"
    code = "import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchone())"
    assert node.run("/usr/bin/python3", "-c", code, LEDGER, query) == "0\n"


def test_a_lease_of_which_no_cache_tells_yet_is_kept(node: Node) -> None:
    attach(node, "A-1", on_uplink("100M"))
    assert "code" not in node.call("ADD", "A-2", on_uplink("50M"))
    before = state(node)
    rebuilt(node)
    assert state(node) == before


def test_of_the_last_that_is_gone_nothing_is_left_for_others_to_stumble_over(node: Node) -> None:
    attach(node, "A-1", network())
    node.run("ip", "netns", "delete", "A-1")
    node.run("sh", "-c", "while ip -br link show type veth | grep -q ^veth; do sleep 0.02; done")
    rebuilt(node)
    assert ledger(node)["attachments"] == []
    assert node.call("DEL", "A-1", network(), netns="") == {}
    result = attach(node, "A-2", network())
    assert node.call("CHECK", "A-2", {**network(), "prevResult": result}) == {}
    assert node.call("STATUS", "", network()) == {}


def test_what_is_gone_is_not_made_again(node: Node) -> None:
    attach(node, "A-1", on_uplink("100M"))
    attach(node, "A-2", on_uplink("50M"))
    damage(node, "not a database", LEDGER)
    node.run("ip", "netns", "delete", "A-1")
    node.run("sh", "-c", "while [ $(ip -br link show type veth | grep -c ^veth) -gt 1 ]; do sleep 0.02; done")
    rebuilt(node)
    assert [entry["container"] for entry in ledger(node)["attachments"]] == ["A-2"]
    assert node.leases("cluster-a")[0][0] == "A-2"


@pytest.mark.skipif(not (REFERENCE / "ptp").exists(), reason=f"no ptp in {REFERENCE}")
@pytest.mark.parametrize("kind", ["ptp", "bridge"])
@pytest.mark.long(one_in=2)
def test_in_a_chain_too(node: Node, kind: str) -> None:
    first, _, chained = chain(node, kind)
    keep(node, "A-1", chained, node.call("ADD", "A-1", chained), before=first)
    before = told(node)
    node.run("rm", "-r", STATE)
    rebuilt(node)
    assert told(node) == before
    assert node.call("CHECK", "A-1", chained) == {}


def test_calls_under_way_end_before_and_others_wait(node: Node) -> None:
    """An ADD whose `nft` is held up has its lease, and no cache has it yet: it must not be lost."""
    attach(node, "A-1", network())
    add = node.start("ADD", "A-2", network(), path=node.slow_nft())
    node.run("cat", "/run/reached")
    rebuilding = subprocess.Popen(node.argv(node.plugin, "rebuild", "--cache", CACHE), stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        rebuilding.wait(0.5)  # alone it takes 0.05 s
    node.run("sh", "-c", "echo > /run/go")
    result = json.loads(add.communicate()[0])
    assert rebuilding.communicate()[0]
    assert rebuilding.returncode == 0
    assert "A-2" in dict(node.leases("cluster-a"))
    assert result["ips"][0]["address"] == "172.16.1.3/24"


def test_what_cannot_be_read_is_told(node: Node) -> None:
    attach(node, "A-1", on_uplink("100M"))
    node.run("sh", "-c", f"mkfifo {CACHE}/pipe; printf '{{' > {CACHE}/half; printf '{{}}' > {CACHE}/other")
    words = rebuilt(node)
    assert f"not learned: {CACHE}/pipe is not a regular file\n" in words
    assert f"not learned: {CACHE}/half" in words
    assert "other" not in words


@pytest.mark.long(one_in=0)
def test_a_bit_of_the_tree_is_mended_by_what_all_networks_say(node: Node) -> None:
    configuration = on_uplink("100M")
    result = attach(node, "A-1", configuration)
    attach(node, "B-1", on_uplink("50M", cluster="b"))
    before = state(node)
    flip = "UPDATE tree SET capacity = capacity + 67108864"
    program = f"import sqlite3; d = sqlite3.connect({LEDGER!r}); d.execute({flip!r}); d.commit()"
    node.run("python3", "-c", program)
    assert "the ledger said {'uplink': 'eth0', 'capacity': 1067108864" in rebuilt(node)
    assert state(node) == before
    assert node.call("CHECK", "A-1", {**configuration, "prevResult": result}) == {}


@pytest.mark.long(one_in=0)
def test_two_that_a_map_gives_one_class_get_one_each(node: Node) -> None:
    """So it is when the first one's row was lost, and the second got its number."""
    configurations = {"A-1": on_uplink("100M"), "A-2": on_uplink("50M")}
    results = {pod: attach(node, pod, configuration) for pod, configuration in configurations.items()}
    before = sorted(entry["rate"] for entry in ledger(node)["attachments"])
    change = "".join(
        f"delete element ip concorde {name} {{ cni-a . 172.16.1.3 }}\n"
        f"add element ip concorde {name} {{ cni-a . 172.16.1.3 : c0de:{minor} }}\n"
        for name, minor in (("promises", "10"), ("efforts", "4010"))
    )
    node.run("nft", "-f", "-", stdin=change)
    assert "not learned" not in rebuilt(node)
    entries = ledger(node)["attachments"]
    assert sorted(entry["rate"] for entry in entries) == before
    assert len({entry["class"] for entry in entries}) == 2
    for pod, configuration in configurations.items():
        assert node.call("CHECK", pod, {**configuration, "prevResult": results[pod]}) == {}


def test_without_anything_there_is_nothing_to_rebuild(node: Node) -> None:
    node.run("mkdir", CACHE)
    assert program(node, "rebuild", "--cache", CACHE) == (0, "nothing to rebuild\n")
    assert node.run("sh", "-c", f"ls -d {STATE} 2>&1 || true").startswith("ls:")


@pytest.mark.parametrize("directory", ["/etc", "/", "//", "/run/../etc"])
@pytest.mark.long(one_in=2)
def test_a_directory_of_others_is_refused_as_state(node: Node, directory: str) -> None:
    before = node.run("stat", "-c", "%a %u", "/etc")
    for command in ("ledger", "reconcile", "rebuild"):
        status, words = program(node, command, "--state-dir", directory)
        assert status in (0, 2, 4), words
        assert (status, words.startswith("concorde: ")) != (0, True)
    error = node.call("ADD", "A-1", network(stateDir=directory))
    assert error["code"] in (7, 108)
    assert node.run("stat", "-c", "%a %u", "/etc") == before
    assert node.run("sh", "-c", "ls -d /etc/node /etc/cluster-a /node /cluster-a 2>/dev/null || true") == ""


def test_a_newer_ledger_is_left_to_the_newer_version(node: Node) -> None:
    attach(node, "A-1", on_uplink("100M"))
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('PRAGMA user_version = 99')"
    node.run("/usr/bin/python3", "-c", code, LEDGER)
    error = node.call("ADD", "A-2", on_uplink())
    assert error["code"] == 108
    assert "newer version" in error["msg"]
