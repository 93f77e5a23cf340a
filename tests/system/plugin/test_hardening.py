"""What others on the node try, or do by mistake: with the state's files, names, streams and full disks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from testbed import resources
from tests.links import without_carrier
from tests.system.plugin.conftest import Document, Node, network, promising
from tests.system.plugin.test_installation import ask, listed
from tests.system.plugin.uplinks import on_uplink
from tests.waiting import PATIENCE

STATE = "/run/concorde"
LEDGER = f"{STATE}/node/ledger.sqlite"


@pytest.fixture
def node(node: Node) -> Node:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace("A-1", "A-2")
    return node


def in_a_shell(node: Node, verb: str, pod: str, configuration: Document, shell: str) -> tuple[int, str]:
    """A call with the shell's settings and redirections: `"$0"` is the plugin. Its status and output."""
    environment = {**node.environment(verb, pod), "CONFIGURATION": json.dumps(configuration)}
    whole = f'printf %s "$CONFIGURATION" | {{ {shell}; }}'
    done = subprocess.run(
        node.argv("sh", "-c", whole, node.plugin),
        capture_output=True,
        text=True,
        env=environment,
        timeout=PATIENCE,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("umask", ["000", "077", "777"])
@pytest.mark.long(one_in=3)
def test_the_state_is_ours_alone_whatever_the_umask(node: Node, umask: str) -> None:
    status, words = in_a_shell(node, "ADD", "A-1", on_uplink("100M"), f'umask {umask}; "$0"')
    assert status == 0, words
    modes = node.run("sh", "-c", f"cd {STATE} && find . -printf '%m %y %U\\n' | sort -u")
    assert modes == "600 f 0\n700 d 0\n"


def test_modes_that_are_too_wide_are_narrowed(node: Node) -> None:
    node.call("ADD", "A-1", on_uplink("100M"))
    node.run("chmod", "-R", "0777", STATE)
    assert "code" not in node.call("ADD", "A-2", on_uplink("100M"))
    modes = node.run("sh", "-c", f"cd {STATE} && find . -printf '%m %y\\n' | sort -u")
    assert modes == "600 f\n700 d\n"


@pytest.mark.parametrize(
    "what",
    ["", "/cluster-a", "/node", "/cluster-a/lock", "/node/ledger.sqlite", "/node/ledger.lock"],
)
@pytest.mark.long(one_in=3)
def test_no_symlink_is_followed(node: Node, what: str) -> None:
    """As a user of the node could have put it there while the directory was open to all."""
    path = STATE + what
    made = f"umask 077; mkdir -p {Path(path).parent} /run/theirs; ln -s /run/theirs/there {path}"
    node.run("sh", "-c", made)
    error = node.call("ADD", "A-1", on_uplink("100M"))
    assert error["code"] == 108
    assert f"{path} is a symbolic link" in error["msg"]
    assert node.run("ls", "/run/theirs") == ""
    node.run("mkdir", "/run/theirs/there")
    assert node.call("ADD", "A-1", on_uplink("100M"))["code"] == 108
    assert node.run("ls", "/run/theirs/there") == ""
    assert node.call("DEL", "A-1", on_uplink("100M")) == {}
    assert node.run("ls", "/run/theirs/there") == ""


@pytest.mark.parametrize("beside", ["-journal", "-wal"])
def test_no_symlink_beside_the_ledger_is_followed(node: Node, beside: str) -> None:
    node.call("ADD", "A-1", network())
    node.run("ln", "-s", "/run/there", LEDGER + beside)
    assert node.call("ADD", "A-2", network())["code"] == 108
    assert node.run("sh", "-c", "ls /run/there 2>/dev/null || true") == ""


@pytest.mark.parametrize("what", ["", "/cluster-a", "/node", "/node/ledger.sqlite"])
@pytest.mark.long(one_in=3)
def test_what_belongs_to_somebody_else_is_refused(node: Node, what: str) -> None:
    if node.in_user_namespace:
        pytest.skip("an ordinary user has no second user")
    node.call("ADD", "A-1", on_uplink("100M"))
    node.run("chown", "1234", STATE + what)
    error = node.call("ADD", "A-2", on_uplink("100M"))
    assert error["code"] == 108
    assert f"{STATE}{what} belongs to user 1234" in error["msg"]
    assert node.call("DEL", "A-1", on_uplink("100M")) == {}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"name": "node"}, "name: "),
        ({"bridge": "eth0"}, "bridge: "),
        ({"bridge": "lo"}, "bridge: "),
        ({"bridge": "veth0123456789a"}, "bridge: "),
        ({"bridge": "eth0-peer"}, "bridge: "),
    ],
)
@pytest.mark.parametrize("enforcement", ["pod", "node"])
@pytest.mark.long(one_in=5)
def test_names_of_something_else_are_refused_and_it_stays_as_it_was(
    node: Node, keys: Document, words: str, enforcement: str
) -> None:
    node.run("ip", "link", "add", "veth0123456789a", "type", "bridge")
    before = without_carrier(node.run("ip", "-br", "addr"))
    error = node.call("ADD", "A-1", {**on_uplink("100M", enforcement=enforcement), **keys})
    assert error["code"] == 7
    assert words in error["msg"]
    assert without_carrier(node.run("ip", "-br", "addr")) == before


PLACES = {
    "a foreign file in the network's directory": f"touch {STATE}/cluster-a/thesis.tex",
    "a foreign directory in it": f"mkdir {STATE}/cluster-a/photos",
    "a foreign file in the state directory": f"touch {STATE}/thesis.tex",
    "a foreign file in the node's directory": f"mkdir -p {STATE}/node; touch {STATE}/node/thesis.tex",
    "a foreign link in the network's directory": f"ln -s /etc {STATE}/cluster-a/etc",
    "a port that is not ours": "ip link add x0 master cni-a type veth peer name x1",
}


@pytest.mark.parametrize("how", PLACES)
@pytest.mark.long(one_in=3)
def test_dismantle_removes_nothing_beside_what_is_not_ours(node: Node, how: str) -> None:
    configuration = on_uplink("100M")
    node.call("ADD", "A-1", configuration)
    node.call("DEL", "A-1", configuration)
    node.run("sh", "-c", PLACES[how])
    before = everything(node)
    status, words = ask(node, "dismantle", listed(configuration))
    assert status == 1
    assert words.startswith("concorde: ")
    assert "did not make" in words
    assert everything(node) == before


@pytest.mark.parametrize(
    "keys",
    [
        {"name": "node"},
        {"bridge": "eth0"},
        {"bridge": "br0"},
        {"bridge": "eth0-peer", "enforcement": "pod"},
        {"name": "their-things"},
        {"name": "systemd", "stateDir": "/run/lib"},
        {"stateDir": "/etc"},
        {"stateDir": "/run/lib"},
        {"stateDir": "/"},
    ],
    ids=str,
)
@pytest.mark.long(one_in=8)
def test_dismantle_of_something_else_is_refused(node: Node, keys: Document) -> None:
    node.run("sh", "-c", "mkdir -p /run/lib/systemd; touch /run/lib/systemd/units; chmod 755 /run/lib")
    node.run("ip", "link", "add", "br0", "type", "bridge")
    node.run("ip", "addr", "add", "10.9.9.1/24", "dev", "br0")
    node.call("ADD", "A-1", on_uplink("100M"))
    node.run("sh", "-c", f"mkdir {STATE}/their-things; touch {STATE}/their-things/thesis.tex")
    before = everything(node)
    status, words = ask(node, "dismantle", listed({**on_uplink("100M"), **keys}))
    assert status in (1, 2, 4), words  # refused, bad input, or not ours to touch
    assert words.startswith("concorde: ")
    assert everything(node) == before


def test_a_bridge_of_the_version_before_is_known_by_its_address(node: Node) -> None:
    node.call("ADD", "A-1", network())
    node.call("DEL", "A-1", network())
    node.run("ip", "link", "set", "cni-a", "alias", "")
    assert ask(node, "dismantle", listed(network()))[0] == 0
    assert "cni-a" not in node.run("ip", "-br", "link")


def everything(node: Node) -> Any:
    files = node.run("find", "/run", "-path", "/run/netns", "-prune", "-o", "-printf", "%p %y\\n")
    links = node.run("ip", "-br", "link").splitlines()
    return (
        sorted(files.splitlines()),
        sorted(line.split()[0] for line in links),
        node.run("nft", "list", "tables"),
    )


@pytest.mark.parametrize(
    "what", ["mkfifo THERE", "mkdir THERE", "ln -s /dev/zero THERE", "touch THERE", "true"]
)
@pytest.mark.long(one_in=3)
def test_a_namespace_that_is_none_holds_nobody_up(node: Node, what: str) -> None:
    node.run("sh", "-c", what.replace("THERE", "/run/netns/odd"))
    status, words = in_a_shell(node, "ADD", "odd", promising("1G"), '"$0"')
    assert status == 1
    assert json.loads(words)["code"] == (3 if what == "true" else 4)
    assert in_a_shell(node, "DEL", "odd", promising("1G"), '"$0"') == (0, "")


def test_a_namespace_of_another_kind_is_none(node: Node) -> None:
    node.run("sh", "-c", "ln -s /proc/self/ns/mnt /run/netns/odd")
    assert node.call("ADD", "odd", network())["code"] == 4


@pytest.mark.parametrize(
    "what", ["mkfifo THERE", "mkdir THERE", "ln -s /dev/zero THERE", "truncate -s 1G THERE"]
)
@pytest.mark.long(one_in=3)
def test_a_subnet_file_that_is_none_holds_nobody_up(node: Node, what: str) -> None:
    node.run("sh", "-c", what.replace("THERE", "/run/subnet.env"))
    status, words = in_a_shell(node, "ADD", "A-1", network(subnet=None, subnetFile="/run/subnet.env"), '"$0"')
    assert status == 1
    assert json.loads(words)["code"] == 7
    assert "/run/subnet.env" in json.loads(words)["msg"]


# A pipe that nobody reads any more.
UNHEARD = """
import os, subprocess, sys
read, write = os.pipe()
os.close(read)
sys.exit(subprocess.call(sys.argv[1:], stdout=write, pass_fds=()))
"""


@pytest.mark.parametrize(
    "output", [">&-", ">/dev/full", ""], ids=["closed", "full", "a pipe that nobody reads"]
)
@pytest.mark.long(one_in=3)
def test_an_add_of_which_nobody_hears_is_undone(node: Node, output: str) -> None:
    before = node.veths()
    shell = f'"$0" {output}' if output else f'exec python3 -c "{UNHEARD}" "$0"'
    status, words = in_a_shell(node, "ADD", "A-1", on_uplink("100M"), shell)
    assert status == 1
    assert "Traceback" not in words
    assert node.veths() == before
    assert node.leases("cluster-a") == []
    assert json.loads(node.run(node.plugin, "ledger", "--json"))["attachments"] == []
    for file in ("cluster-a/lock", "node/ledger.lock"):  # what is closed is not filled by what is opened next
        assert node.run("cat", f"{STATE}/{file}") == ""


@pytest.mark.parametrize("streams", ["<&-", "<&- >&-", "<&- >&- 2>&-", "2>&-", ">&-"])
@pytest.mark.long(one_in=3)
def test_closed_streams_end_in_an_error_at_most(node: Node, streams: str) -> None:
    for command in ('"$0"', '"$0" ledger', '"$0" --version'):
        status, words = in_a_shell(node, "STATUS", "", network(), f"{command} {streams}")
        assert status in (0, 1, 4)
        assert "Traceback" not in words


def test_a_full_disk_is_named_and_costs_nothing(node: Node) -> None:
    node.run("sh", "-c", f"mkdir {STATE} && mount -t tmpfs -o size=300k,mode=700 tmpfs {STATE}")
    result = node.call("ADD", "A-1", on_uplink("100M"))
    node.run("sh", "-c", f"cat /dev/zero > {STATE}/node/zero 2>/dev/null; true")
    error = node.call("ADD", "A-2", on_uplink("100M"))
    assert error["code"] == 5, error
    assert f"{STATE}/" in error["msg"]
    assert "space" in error["msg"]
    node.run("rm", f"{STATE}/node/zero")
    assert node.call("CHECK", "A-1", on_uplink("100M", prevResult=result)) == {}
    assert "code" not in node.call("ADD", "A-2", on_uplink("100M"))


def test_it_tells_its_version(node: Node) -> None:
    told = node.run(node.plugin, "--version")
    assert told.split()[1] == resources.version()
