"""How what was made is taken away again: with a node that only notes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from testbed.access.place import CommandError, Result
from testbed.providers.ssh import ledger, plan
from testbed.providers.ssh.ledger import Artefact, Ledger, Link, Namespace
from tests.doubles import Asked, RecordingNode, SilentNode, said
from tests.unit.testbed.builders import addressed
from tests.unit.testbed.providers.ssh.builders import EMPTY

Status = Callable[[Sequence[str]], int]


class Noting(RecordingNode):
    """A node that notes its commands, but for the question when it was started, and answers with a status."""

    def __init__(self, boot: str = "today", status: Status = lambda _: 0) -> None:
        super().__init__()
        self._boot = boot
        self._status = status

    def answer(self, asked: Asked) -> Result:
        if asked.argv == ["cat", ledger.BOOT]:
            self.asked.remove(asked)
            return said(f"{self._boot}\n")
        return Result(self._status(asked.argv), "", "no")


def book(*things: Artefact) -> Ledger:
    return Ledger(run="r", node="worker-01", by="me", since="now", boot="today", things=list(things))


def test_undoing_goes_backwards_after_the_processes_and_ends_with_the_ledger() -> None:
    node = Noting()
    assert ledger.undo(node, book(Link(name="a"), Namespace(name="b"))) == []
    assert [words[0] for words in node.commands] == ["sh", "ip", "ip", "sh"]
    assert node.commands[0][-1] == "CONCORDE_TESTBED=r/worker-01"
    assert node.commands[1:3] == [["ip", "netns", "delete", "b"], ["ip", "link", "delete", "dev", "a"]]
    assert node.commands[3][-2:] == [ledger.ROOT, "r"]


def test_what_is_gone_already_is_no_fault() -> None:
    node = Noting(status=lambda argv: int(argv[0] in ("ip", "test")))
    assert ledger.undo(node, book(Link(name="a"), Namespace(name="b"))) == []


def test_what_cannot_be_taken_away_keeps_the_ledger() -> None:
    node = Noting(status=lambda argv: int("delete" in argv))
    faults = ledger.undo(node, book(Link(name="a"), Namespace(name="b")))
    assert [fault.partition(":")[0] for fault in faults] == ["network namespace b", "interface a"]
    assert not any("rm -rf" in word for words in node.commands for word in words)


def test_after_a_restart_only_the_files_are_ours() -> None:
    node = Noting(boot="tomorrow")
    assert ledger.undo(node, book(Link(name="a"))) == []
    assert [words[0] for words in node.commands] == ["sh", "sh"]


def test_a_lost_machine_is_no_fault_of_a_thing() -> None:
    with pytest.raises(CommandError, match="gone"):
        ledger.undo(SilentNode(), book(Link(name="a")))


def test_a_ledger_is_read_back_as_it_was_written() -> None:
    things = plan.everything(addressed("contmec"), "worker-01", EMPTY, "/d")
    written = book(*things)
    assert Ledger.model_validate_json(written.model_dump_json()) == written
