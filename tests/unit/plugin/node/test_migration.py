"""What versions before kept, in stores and a ledger, becomes one ledger, whoever is killed on the way."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from concorde import addresses, names, state_files
from concorde.cni import DAMAGED, UNUSABLE, CniError
from concorde.node import ledger, migration
from concorde.node.ledger import Ledger

from tests.paths import ROOT
from tests.unit.plugin.node.examples import TREE, entry

ADDRESS = addresses.parse("172.16.1.2")
MAC = addresses.pod_mac(ADDRESS)


def make(path: Path, steps: tuple[tuple[str, ...], ...], version: int, *rows: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.parent.chmod(0o700)
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA synchronous = OFF")  # as the plugin has it, too
    for statement in (*(one for step in steps[:version] for one in step), *rows):
        file.execute(statement)
    file.execute(f"PRAGMA user_version = {version}")
    file.close()
    path.chmod(0o600)


def former(state: Path, of_ledger: int = 4, of_store: int = 2, pods: int = 1) -> None:
    """Two networks, with pods of four kinds.

    Of the first, pods with promises on the uplink, and one whose ADD was killed; of the other a pod that an
    old version did not enter, and one behind another plugin.
    """
    answers = ", answers" if of_store > 1 else ""
    leases = [
        "INSERT INTO lease (container, interface, enforcement, guarantee, ceiling, mtu, address, subnet,"
        f" bridge, host_veth{answers}) VALUES ('A-{n}', 'eth0', 'node', 1000, 2000, 1450, {ADDRESS + n},"
        f" '172.16.0.0/16', 'cni-a', '{names.host_veth('a', f'A-{n}', 'eth0')}'{', 7' if answers else ''})"
        for n in range(pods + 1)
    ]
    reserved = (
        "INSERT INTO lease (container, interface, address, host_veth)"
        f" VALUES ('', 'x', {ADDRESS - 1}, 'veth9')"
    )
    last = f"INSERT INTO network VALUES ('172.16.0.0/16', {ADDRESS + pods})"
    make(state / "a/leases.sqlite", migration._STORE, of_store, *leases, reserved, last)
    other = (
        "INSERT INTO lease (container, interface, enforcement, rate, burst, mtu, address, subnet, bridge,"
        f" host_veth) VALUES ('B-1', 'eth0', 'pod', 5, 6, 1450, {ADDRESS + 70000}, '172.17.0.0/16', 'cni-b',"
        " 'veth7')",
        "INSERT INTO lease (container, interface, enforcement) VALUES ('B-2', 'eth0', 'none')",
    )
    make(state / "b/leases.sqlite", migration._STORE, of_store, *other)
    entries = [
        "INSERT INTO entry (network, container, interface, pod, address, way, port, guarantee, rate, ceil,"
        f" minor) VALUES ('a', 'A-{n}', 'eth0', 'x/a{n}', {ADDRESS + n}, 'cni-a',"
        f" '{names.host_veth('a', f'A-{n}', 'eth0')}', 1000, 1034, 2000, {16 + n})"
        for n in range(pods)
    ]
    tree = "INSERT INTO tree (uplink, capacity, reserve, ports) VALUES ('eth0', 1000000, 20, '22')"
    make(state / "node/ledger.sqlite", migration._LEDGER, of_ledger, tree, *entries)


def told(book: Ledger) -> tuple[Any, ...]:
    (tree,) = book.trees()
    return (
        tree and vars(tree),
        [vars(entry) for entry in book.entries()],
        {
            key: (str(lease.terms), lease.link and vars(lease.link)["host_veth"])
            for key, lease in book.leases().items()
        },
        book.last_given(),
        list(book._database.execute("SELECT * FROM reserved")),
    )


@pytest.mark.parametrize("of_ledger", [1, 2, 3, 4])
@pytest.mark.parametrize("of_store", [1, 2])
def test_every_older_version_is_taken_over(tmp_path: Path, of_ledger: int, of_store: int) -> None:
    former(tmp_path, of_ledger, of_store)
    read = told(Ledger(str(tmp_path / "node"), reading=True))
    assert state_files.are_former(str(tmp_path))
    ledger.take_over(str(tmp_path))
    assert not state_files.are_former(str(tmp_path))
    book = Ledger(str(tmp_path / "node"))
    assert told(book) == read
    assert [(one.container, one.guarantee, one.rate, one.minor, one.pod) for one in book.entries()] == [
        ("A-0", 1000, 1034, 16, "x/a0"), ("B-1", None, 0, None, ""),
    ]  # fmt: skip
    assert [(one.host_interface, one.port) for one in book.entries()] == [
        ("cni-a", names.host_veth("a", "A-0", "eth0")), ("cni-b", "veth7"),
    ]  # fmt: skip
    (tree,) = book.trees()
    assert tree is not None
    assert book.promised(tree) == 1034
    leases = book.leases()
    assert [key[1] for key in leases] == ["A-0", "A-1", "B-1", "B-2"]
    terms = leases["a", "A-1", "eth0"].terms
    assert (terms.guarantee, terms.ceiling, terms.answers) == (1000, 2000, 7 if of_store > 1 else None)
    with book:
        next_one = book.next_address("a", addresses.parse_subnet("172.16.0.0/16"))
    assert next_one == ADDRESS + 2


def test_the_version_before_refuses_what_was_taken_over(tmp_path: Path) -> None:
    former(tmp_path)
    ledger.take_over(str(tmp_path))
    for network in "ab":
        with pytest.raises(CniError, match="made by a newer version of this plugin") as caught:
            migration._Store(str(tmp_path / network / "leases.sqlite"), 2)
        assert caught.value.code == UNUSABLE
    version = sqlite3.connect(tmp_path / "node/ledger.sqlite").execute("PRAGMA user_version").fetchone()
    assert version > (4,)


def test_a_damaged_store_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    former(tmp_path)
    (tmp_path / "b/leases.sqlite").write_bytes(b"nonsense")
    before = (tmp_path / "node/ledger.sqlite").read_bytes()
    with pytest.raises(CniError, match=r"b/leases\.sqlite is damaged .*run concorde rebuild") as caught:
        Ledger(str(tmp_path / "node"))
    assert caught.value.code == DAMAGED
    assert (tmp_path / "node/ledger.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        "address = 'x'", "address = NULL", "address = 1 << 40", "container = x'ff'", "mtu = 'x'",
        "enforcement = 'other'", "container = '', address = 1 << 40", "container = '', address = NULL",
    ],
)  # fmt: skip
def test_a_row_that_no_version_wrote_is_damage(tmp_path: Path, change: str) -> None:
    former(tmp_path)
    file = sqlite3.connect(tmp_path / "b/leases.sqlite", isolation_level=None)
    file.execute(f"UPDATE lease SET {change} WHERE container = 'B-1'")
    file.close()
    with pytest.raises(CniError, match=r"b/leases\.sqlite is damaged \(not a lease: ") as caught:
        ledger.take_over(str(tmp_path))
    assert caught.value.code == DAMAGED
    assert state_files.are_former(str(tmp_path))


def test_of_a_store_of_a_newer_version_nothing_is_lost(tmp_path: Path) -> None:
    former(tmp_path)
    file = sqlite3.connect(tmp_path / "b/leases.sqlite")
    file.execute("PRAGMA user_version = 9")
    file.close()
    before = (tmp_path / "node/ledger.sqlite").read_bytes()
    with pytest.raises(CniError, match=r"b/leases\.sqlite was made by a newer version") as caught:
        ledger.take_over(str(tmp_path))
    assert caught.value.code == UNUSABLE
    assert (tmp_path / "node/ledger.sqlite").read_bytes() == before


def test_two_with_one_name_of_a_port_are_both_taken_over(tmp_path: Path) -> None:
    former(tmp_path)
    file = sqlite3.connect(tmp_path / "b/leases.sqlite", isolation_level=None)
    file.execute(
        "UPDATE lease SET host_veth = ? WHERE container = 'B-1'", (names.host_veth("a", "A-0", "eth0"),)
    )
    file.close()
    ledger.take_over(str(tmp_path))
    leases = Ledger(str(tmp_path / "node")).leases()
    assert [lease.link is not None for lease in leases.values()] == [True, True, False, False]


def test_a_directory_that_rebuild_put_aside_is_no_network(tmp_path: Path) -> None:
    former(tmp_path)
    aside = Path(state_files.set_aside(str(tmp_path / "b")))
    assert (aside / "leases.sqlite").exists()
    assert state_files.former_stores(str(tmp_path)) == [("a", str(tmp_path / "a/leases.sqlite"))]


def test_what_was_changed_before_is_of_what_pods_send(tmp_path: Path) -> None:
    Ledger(str(tmp_path / "node")).close()
    file = sqlite3.connect(tmp_path / "node/ledger.sqlite", isolation_level=None)
    file.execute("DROP TABLE changed")
    file.execute("ALTER TABLE attachment DROP COLUMN heard")
    (said,) = [one for one in migration._LATER[0] if "TABLE changed" in one]
    for statement in (
        said,
        "INSERT INTO changed VALUES ('a', 'A-1', 'eth0', 1000), ('a', 'A-2', 'eth0', NULL)",
        "PRAGMA user_version = 8",
    ):
        file.execute(statement)
    file.close()
    assert state_files.are_former(str(tmp_path))
    found = Ledger(str(tmp_path / "node"), reading=True).changed()
    assert found == {("a", "A-1", "eth0"): {"egress": 1000}, ("a", "A-2", "eth0"): {"egress": None}}
    ledger.take_over(str(tmp_path))
    assert Ledger(str(tmp_path / "node")).changed() == found
    assert not state_files.are_former(str(tmp_path))


def test_who_was_attached_before_was_heard_of_by_nobody(tmp_path: Path) -> None:
    book = Ledger(str(tmp_path / "node"))
    wanted = entry()
    with book:
        book.admit(TREE, wanted)
    book.close()
    file = sqlite3.connect(tmp_path / "node/ledger.sqlite", isolation_level=None)
    file.execute("ALTER TABLE attachment DROP COLUMN heard")
    file.execute("PRAGMA user_version = 10")
    file.close()
    assert state_files.are_former(str(tmp_path))
    ledger.take_over(str(tmp_path))
    book = Ledger(str(tmp_path / "node"))
    assert ([one.key for one in book.entries()], book.heard()) == ([wanted.key], {})
    with book:
        book.hear(wanted.key, ({"a": "1"}, None))
        book.hear(("cluster-a", "A-9", "eth0"), ({}, {}))  # has ended
    assert book.heard() == {wanted.key: ({"a": "1"}, None)}
    with book:
        book.drop(wanted.key)
    assert book.heard() == {}


# Takes over each state that it is told, and is killed at the statement of its number, or says it was not.
KILLED = """\
import os, sys
from concorde import database
from concorde.node import ledger
execute = database._Connection.execute
def counted(*arguments):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), 9)
    return execute(*arguments)
database._Connection.execute = counted
for left, state in enumerate(sys.stdin):
    child = os.fork()
    if not child:
        ledger.take_over(state.rstrip())
        os._exit(0)
    print(os.waitpid(child, 0)[1], flush=True)
"""


def test_who_is_killed_at_any_statement_loses_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'plugin'}:{ROOT}"}
    former(tmp_path / "former", pods=5)
    wanted = told(Ledger(str(tmp_path / "former/node"), reading=True))
    after, status = 0, signal.SIGKILL.value
    with subprocess.Popen(
        [sys.executable, "-S", "-c", KILLED],
        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        while status == signal.SIGKILL:
            state = Path(shutil.copytree(tmp_path / "former", tmp_path / f"state-{after}"))
            process.stdin.write(f"{state}\n")
            status = int(process.stdout.readline())
            ledger.take_over(str(state))
            assert told(Ledger(str(state / "node"))) == wanted, after
            assert not state_files.are_former(str(state))
            after += 1
    assert status == 0
    assert after > 30
