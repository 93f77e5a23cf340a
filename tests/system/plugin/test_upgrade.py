"""Another version of the plugin comes and goes while pods run: what they have, and were promised, stays."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from tests import cases
from tests.installation import Installation, build
from tests.system.plugin import former, test_attacks, test_guard
from tests.system.plugin.again import Run
from tests.system.plugin.conftest import Document, Node
from tests.system.plugin.floods import SCENE
from tests.system.plugin.overlapped import Overlapped
from tests.system.plugin.runtimes import CACHE, attach
from tests.system.plugin.uplinks import on_uplink

FORMER, NEXT, OTHER = "0.0.1", "0.0.2", "0.0.3"
KEYS = {"capacity": "100M"}
LEDGER = "/run/concorde/node/ledger.sqlite"


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Three versions: two give pods something else than the first, the last has other tables."""
    return {
        version: build(
            tmp_path_factory.mktemp("version"),
            version,
            other_kernel=version != FORMER,
            other_tables=version == OTHER,
        )
        for version in (FORMER, NEXT, OTHER)
    }


class Upgraded:
    """A node whose plugin the installer brings."""

    def __init__(self, node: Node, directory: Path, versions: dict[str, Path]) -> None:
        self.node = node
        self.versions = versions
        self.installation = Installation(directory, versions[FORMER], node.argv())
        network = {key: value for key, value in on_uplink(**KEYS).items() if key != "name"}
        self.installation.write(**{**network, "stateDir": "/run/concorde"})
        node.plugin = self.installation.bin / "concorde"

    def install(self, version: str) -> str:
        """Bring a version, and return what the installer says if that could not take the former's place."""
        self.installation.bring(self.versions[version])
        status, words = self.installation.run("install")
        assert (status == 0) == (self.installation.version() == f"concorde {version}")
        return "" if status == 0 else words

    def check(self, result: Document) -> None:
        """CHECK finds A-1 as ADD left it, and nothing is to be repaired."""
        found = self.node.call("CHECK", "A-1", {**on_uplink("40M", **KEYS), "prevResult": result})
        assert found == {}
        assert self.node.run(self.node.plugin, "reconcile") == "nothing to repair\n"


def classes(node: Node) -> list[str]:
    """The tree as it stands, without what it counts."""
    return sorted(node.run("tc", "class", "show", "dev", "eth0").splitlines())


@pytest.fixture
def upgraded(node: Node, tmp_path: Path, versions: dict[str, Path]) -> Upgraded:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.add_pod_namespace("A-1", "A-2")
    made = Upgraded(node, tmp_path, versions)
    assert made.install(FORMER) == ""
    return made


@pytest.mark.long(one_in=0)
def test_a_version_comes_and_goes_with_pods_running(upgraded: Upgraded) -> None:
    node = upgraded.node
    result = attach(node, "A-1", on_uplink("40M", **KEYS))
    before = classes(node)
    for version in (NEXT, FORMER):
        assert upgraded.install(version) == ""
        assert ("whatever the node sends" in node.run("nft", "list", "table", "ip", "concorde")) == (
            version == NEXT
        )
        assert classes(node) == before
        upgraded.check(result)
        attach(node, "A-2", on_uplink("10M", **KEYS))
        assert node.call("DEL", "A-2", on_uplink(**KEYS)) == {}
    assert classes(node) == before


def test_a_version_with_other_tables_leaves_them_until_it_is_installed(upgraded: Upgraded) -> None:
    node = upgraded.node
    result = attach(node, "A-1", on_uplink("40M", **KEYS))
    upgraded.installation.loopback.unlink()
    assert "there is no plugin loopback" in upgraded.install(OTHER)
    upgraded.check(result)
    upgraded.installation.executable(upgraded.installation.loopback)
    assert upgraded.install(OTHER) == ""
    upgraded.check(result)


def test_tables_of_the_newer_version_are_refused_by_the_older_and_made_again(upgraded: Upgraded) -> None:
    node = upgraded.node
    result = attach(node, "A-1", on_uplink("40M", **KEYS))
    before = classes(node)
    assert upgraded.install(OTHER) == ""
    attach(node, "A-2", on_uplink("10M", **KEYS))  # takes over the ledger
    words = upgraded.install(FORMER)
    assert "was made by a newer version of this plugin: install that one, or run concorde rebuild" in words
    assert words.endswith("; the version before stays\n")
    upgraded.check(result)  # by that
    candidate = upgraded.installation.bin / "concorde.next"
    said = node.run(candidate, "rebuild", "--cache", CACHE)
    assert "made: /run/concorde/node/ledger.sqlite, attachments: 2" in said
    assert upgraded.install(FORMER) == ""
    upgraded.check(result)
    assert node.call("DEL", "A-2", on_uplink(**KEYS)) == {}
    assert classes(node) == before


def test_classes_that_counted_layer_2_count_the_wire_and_no_packet_is_lost(node: Node) -> None:
    pair = Overlapped(node)
    pair.attach("A-1", "100M")
    pair.plug_in()
    made = node.run("tc", "-d", "class", "show", "dev", "eth0").splitlines()
    rates = {"c0de:1": 1_000_000, "c0de:10": 103_415, "c0de:fffd": 20_000, "c0de:fffe": 876_584}
    former.count_layer_2(node, {name: (rate, 1_000_000) for name, rate in rates.items()})
    assert "overhead" not in node.run("tc", "-d", "class", "show", "dev", "eth0")
    with test_guard.stream(node, "A-1", "A-3", SCENE.remote):
        before = pair.classes()["c0de:10"]
        said = node.run(node.plugin, "reconcile").splitlines()
    assert pair.classes()["c0de:10"] > before  # the same class, which goes on counting
    assert sorted(node.run("tc", "-d", "class", "show", "dev", "eth0").splitlines()) == sorted(made)
    assert sum("overhead 0, mpu 0b" in line for line in said) == len(rates)
    assert [line.split()[2] for line in said if "is missing" in line] == ["c0de:fffc", "c0de:4010"]
    assert node.run(node.plugin, "reconcile") == "nothing to repair\n"


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
def test_a_promise_on_a_full_link_holds_while_versions_come_and_go(
    node: Node, tmp_path: Path, versions: dict[str, Path]
) -> None:
    """A pod promised 40 of 100 Mbit/s beside four flows that want all of it, second by second."""
    pair = Overlapped(node, **KEYS)
    upgraded = Upgraded(node, tmp_path, versions)
    assert upgraded.install(FORMER) == ""
    node.add_pod_namespace("A-1")
    result = attach(node, "A-1", on_uplink("40M", **KEYS))
    pair.plug_in()
    changes: tuple[Callable[[], str], ...] = (
        lambda: upgraded.install(NEXT),
        lambda: upgraded.install(FORMER),
        lambda: upgraded.install(OTHER),
        lambda: node.run(upgraded.installation.bin / "concorde", "reconcile"),  # takes over the ledger
        lambda: upgraded.install(FORMER),
        lambda: node.run(upgraded.installation.bin / "concorde.next", "rebuild", "--cache", CACHE),
        lambda: upgraded.install(FORMER),
    )

    def judge(factor: int) -> None:
        found: list[float] = []
        with test_attacks.everybody_else(pair), test_attacks.victim(pair) as seconds:
            next(seconds)
            next(seconds)
            for change in changes:
                change()
                found.append(fmean(next(seconds) for _ in range(factor)))
        assert min(found) >= test_attacks.LEAST, found

    cases.with_more_samples(judge)
    upgraded.check(result)


def test_an_attachment_of_a_version_that_knew_names_only_is_known_by_itself_once_renewed(
    node: Node,
) -> None:
    """Its interface is there, and leads to its pod; what has its name later is another."""
    run = Run(node, "none", True, 1)
    assert run.add(0)
    former.keep(node, 3)
    run.check(0)
    assert known(node) == [(0, 0)]
    listed = {"name": "cluster-a", "plugins": [{"type": "other"}, run.configuration(run.living[0])]}
    node.run(node.plugin, "renew", stdin=json.dumps(listed))
    (end,) = node.show("ip", "-j", "link", "show", "dev", run.living[0].host)
    assert known(node) == [(end["ifindex"], end["link_index"])]
    run.check(0)
    for act in (run.kill, run.make, run.late, run.add, run.late):
        run.take(act, 0)


@pytest.mark.parametrize("fixed", [False, True])
@pytest.mark.long(one_in=2)
def test_a_late_del_of_what_an_older_version_entered_changes_no_pod_that_came_since(
    node: Node, fixed: bool
) -> None:
    run = Run(node, "none", fixed, 1)
    for slot in range(2):
        assert run.add(slot)
    former.keep(node, 3)
    for act in (run.kill, run.add, run.late, run.late, run.check, run.reconcile):
        run.take(act, 0)


def known(node: Node) -> list[tuple[int, int]]:
    """The indexes of both ends as the ledger has them."""
    code = (
        "import json, sqlite3, sys; book = sqlite3.connect(sys.argv[1]);"
        " print(json.dumps(list(book.execute('SELECT link, inside FROM attachment'))))"
    )
    return [(link, inside) for link, inside in node.show("/usr/bin/python3", "-c", code, LEDGER)]
