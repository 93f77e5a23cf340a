"""What an agent makes of annotations whatever somebody wrote, and what the ledger keeps of them."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from concorde import annotated, refusals
from concorde.changes import FIXED
from concorde.cni import DAMAGED, CniError
from concorde.configuration import Identity
from concorde.node.ledger import Ledger

from tests.system.plugin.runtimes import entry as kept
from tests.unit.plugin.node.examples import TREE, entry

NAME = "concorde.contmec.dev/egress-guarantee"
ANSWERS = "concorde.contmec.dev/answers-guarantee"
NETWORK: dict[str, Any] = {
    "cniVersion": "1.0.0",
    "name": "cluster-a",
    "type": "concorde",
    "enforcement": "node",
    "uplink": "eth0",
    "capacity": "10G",
}


class Agent:
    """One that watches a pod of a ledger, with what a runtime keeps of it."""

    def __init__(self, state: Path) -> None:
        self.state, self.cache = state, state / "cache"
        self.network = Identity({**NETWORK, "stateDir": str(state)})
        self.cache.mkdir()
        refusals.take(self.network.directory)
        self.entry = entry("A-1", 100_000_000, pod="default/web")
        book = Ledger(str(state / "node"))
        with book:
            book.admit(TREE, self.entry)
        book.close()
        self.said: list[str] = []
        self.begin()

    def begin(self) -> None:
        self.watched = annotated.Watched([self.network], [str(self.cache)], self.said.append)

    def keep(self, uid: str = "0a") -> None:
        """Let ADD have been told of 100M, by a runtime that keeps that."""
        passed = {"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {NAME: "100M"}}}
        document = {**self.network.document, **passed}
        name, content = kept("A-1", document, {}, arguments=f"K8S_POD_UID={uid}")
        (self.cache / name).write_text(content)

    def take(self, **annotations: object) -> list[str]:
        """What is refused then."""
        of = {"namespace": "default", "name": "web", "uid": "0a", "annotations": annotations}
        self.watched.take_all([{"metadata": of}])
        return [str(note["message"]) for note in refusals.take(self.network.directory)]

    def heard(self) -> Any:
        book = Ledger(str(self.state / "node"))
        found = book.heard().get(self.entry.key)
        book.close()
        return found


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0", "is outside 1k to 1T"),
        ("-100M", "is not a quantity"),
        ("١٠٠M", "is not a quantity"),
        (" 100M", "is not a quantity"),
        ("100M\n", "is not a quantity"),
        ("=100M", "is not a quantity"),
        ("9" * (1 << 20), "is not a quantity"),
        (["100M"], "is not a quantity"),
        ({"a": 1}, "is not a quantity"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_what_is_no_quantity_is_refused_once(agent: Agent, value: object, words: str) -> None:
    agent.keep()
    assert agent.take(**{NAME: "100M"}) == []
    (message,) = agent.take(**{NAME: value})
    assert message.startswith("what was promised before stays: ")
    assert words in message
    assert len(message) < 400
    agent.begin()
    assert agent.take(**{NAME: value}) == []
    taken, refused = agent.heard()
    assert (taken, len(json.dumps(refused)) < 200) == ({NAME: "100M"}, True)


def test_who_is_refused_and_goes_back_is_refused_again(agent: Agent) -> None:
    agent.keep()
    for value, notes in (("0", 1), ("0", 0), ("100M", 0), ("0", 1)):
        assert len(agent.take(**{NAME: value})) == notes
    agent.take(**{NAME: "100M"})
    assert agent.heard() == ({NAME: "100M"}, None)


def test_answers_are_said_to_stay_once_and_nobody_waits_for_that(agent: Agent) -> None:
    agent.keep()
    assert agent.take(**{NAME: "100M", ANSWERS: "5M"}) == [f"what was promised before stays: {FIXED}"]
    agent.begin()
    assert agent.take(**{NAME: "100M", ANSWERS: "5M"}) == []
    assert agent.heard() == ({NAME: "100M", ANSWERS: "5M"}, None)


def test_what_is_promised_to_no_interface_is_refused_once(agent: Agent) -> None:
    other = f"{NAME}.net7"
    assert agent.take(**{NAME: "100M", other: "1M"}) == []  # it may be just coming
    agent.keep()
    (message,) = agent.take(**{NAME: "100M", other: "1M"})
    assert message.endswith(f"{other}: net7 is no further interface that keeps promises")
    assert agent.take(**{NAME: "100M", other: "2M"}) == []
    assert (agent.heard(), agent.watched.owed) == (None, set())


def test_who_is_not_known_yet_is_tried_again_and_that_is_said_once(agent: Agent) -> None:
    assert (agent.take(), agent.said) == ([], [])  # nobody asks for anything
    for _ in range(2):
        assert agent.take(**{NAME: "much"}) == []
        assert agent.watched.owed == {
            "cluster-a default/web: no runtime's cache tells what it began with (--cache DIR)"
        }
    assert len(agent.said) == 1
    agent.keep()
    assert len(agent.take(**{NAME: "much"})) == 1
    assert agent.watched.owed == set()


def test_a_pod_of_another_uid_and_one_that_was_annotated_before_change_nothing(agent: Agent) -> None:
    agent.keep(uid="0b")
    assert (agent.take(**{NAME: "much"}), agent.heard(), agent.said) == ([], None, [])
    agent.begin()
    agent.keep()
    assert (agent.take(**{NAME: "100M"}), agent.heard(), agent.said) == ([], None, [])


def test_what_no_runtime_keeps_is_tried_again(agent: Agent) -> None:
    agent.keep()
    (file,) = agent.cache.iterdir()
    kept = json.loads(file.read_text())
    file.write_text(json.dumps({**kept, "capabilityArgs": {"io.kubernetes.cri.pod-annotations": 7}}))
    assert agent.take(**{NAME: "much"}) == []
    assert "7 is not an object; tried again" in "".join(agent.said)


def test_what_no_agent_wrote_down_is_damaged(agent: Agent) -> None:
    for text in ("[", "{}", "[1, 2]", '["a", null]', "null"):
        file = sqlite3.connect(agent.state / "node/ledger.sqlite", isolation_level=None)
        file.execute("UPDATE attachment SET heard = ?", (text,))
        file.close()
        with pytest.raises(CniError, match=r"is damaged .*concorde rebuild") as caught:
            agent.take(**{NAME: "100M"})
        assert caught.value.code == DAMAGED
