"""How daemons of pod networks are started and looked after, on nodes that only note what they are asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.access.components import ComponentError
from testbed.access.place import Node, Result
from testbed.overlays import daemons
from testbed.overlays.daemons import Joining
from testbed.overlays.kernel_state import KernelState
from testbed.overlays.pod_network import Daemon, PodNetwork
from testbed.scenario.addressing import Addressing
from tests.doubles import Asked, RecordingNode, said
from tests.unit.testbed.builders import addressed

WORKERS = ("worker-01", "worker-02")


class Told(PodNetwork):
    """A network whose daemons, one a worker, make everything; how far they are is said from outside."""

    left: list[list[str]]  # what is lacking each time that somebody asks; in the end nothing

    def links(self, node: str) -> str:
        return ""

    def wanted(self, node: str, found: Mapping[str, KernelState]) -> list[str]:  # type: ignore[override]
        return []

    def daemons(self, node: str) -> list[Daemon]:
        if node not in WORKERS:
            return []
        return [
            Daemon(
                f"teller of cluster {self.cluster}",
                f"/run/teller/{self.cluster}",
                ["teller", "-v"],
                package="tellers",
                files={f"/run/teller/{self.cluster}/teller.conf": "tell\n"},
                ready=["tellerctl", "status"],
            )
        ]

    def lacking(self, nodes: Mapping[str, Node]) -> list[str]:
        return self.left.pop(0) if self.left else []


class Worker(RecordingNode):
    """A node whose components are alive, ready or ended as it is told."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.ended, self.deaf = "", ""

    def answer(self, asked: Asked) -> Result:
        words = " ".join(asked.argv)
        if "wait_for.py" in words:
            return Result(1 if self.deaf else 0, "", self.deaf)
        return said(self.ended if "[ -e ended ]" in words else "")

    @property
    def ran(self) -> list[str]:
        return [" ".join(command) for command in self.commands]


@pytest.fixture
def nodes() -> dict[str, Worker]:
    return {name: Worker(name) for name in ("master-01", "master-02", *WORKERS)}


def joined(nodes: Mapping[str, Worker], *left: list[str]) -> Joining:
    addressing: Addressing = addressed("contmec")
    told = Told(addressing, "a")
    object.__setattr__(told, "left", list(left))
    return Joining({"a": told}, {**nodes}, lambda package, program: Path("/kept", package, program))


def test_a_daemon_is_given_its_files_started_and_waited_for(nodes: dict[str, Worker]) -> None:
    one = joined(nodes)
    one.up()
    written, started, waited = nodes["worker-01"].asked
    assert written.stdin == "tell\n"
    assert "/run/teller/a/teller.conf" in written.argv
    assert started.argv[-4:] == ["/run/teller/a", "env", "/kept/tellers/teller", "-v"]
    assert '"command": ["/kept/tellers/tellerctl", "status"]' in waited.stdin
    assert nodes["master-01"].asked == []
    assert [component.place.name for component in one.components] == list(WORKERS)
    assert one.programs == {"teller": Path("/kept/tellers/teller")}


def test_it_is_up_when_nothing_is_lacking(nodes: dict[str, Worker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(daemons, "AGAIN_SECONDS", 0.0)
    joined(nodes, ["worker-01: a route"], ["worker-02: a route"]).up()


def test_a_daemon_that_does_not_answer_is_an_error(nodes: dict[str, Worker]) -> None:
    nodes["worker-02"].deaf = "tellerctl status: nobody there"
    with pytest.raises(ComponentError, match=r"teller of cluster a on worker-02 does not answer: tellerctl"):
        joined(nodes).up()


def test_a_daemon_that_ends_before_is_an_error(nodes: dict[str, Worker]) -> None:
    nodes["worker-01"].ended = "1\nno such option\n"
    with pytest.raises(ComponentError, match="teller of cluster a on worker-01 ended with 1: no such option"):
        joined(nodes, ["worker-02: a route"]).up()


def test_what_is_never_made_is_an_error_that_says_so(
    nodes: dict[str, Worker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemons, "JOINED_SECONDS", 0.0)
    with pytest.raises(
        ComponentError, match=r"not there after 0 s, on worker-02: a route; last words of teller"
    ):
        joined(nodes, *[["worker-02: a route"]] * 3).up()


def test_a_check_tells_of_the_ended_and_of_what_is_lacking(nodes: dict[str, Worker]) -> None:
    one = joined(nodes, [], ["worker-02: a route"])
    one.up()
    nodes["worker-02"].ended = "137\n"
    assert one.faults() == [
        "teller of cluster a on worker-02 ended with 137: it said nothing",
        "the network of cluster a lacks, on worker-02: a route",
    ]


class Elsewhere(RecordingNode):
    """A node that does not see this machine's files."""

    def bring(self, directory: Path) -> str:
        return f"/there/{directory.name}"


def test_a_directory_of_ours_is_brought_to_nodes_with_files_of_their_own(tmp_path: Path) -> None:
    class Brought(Told):
        def daemons(self, node: str) -> list[Daemon]:
            argv = ["python3", str(tmp_path), "go"]
            return [Daemon("goer", "/run/goer", argv, brings=tmp_path)] if node == "worker-01" else []

    addressing = addressed("contmec")
    network = Brought(addressing, "a")
    object.__setattr__(network, "left", [])
    nodes = {name: Elsewhere(name) for name in addressing.scenario.nodes}
    Joining({"a": network}, nodes, lambda *_: tmp_path).up()
    (started,) = [one for one in nodes["worker-01"].commands if "python3" in one]
    assert started[started.index("python3") :] == ["python3", f"/there/{tmp_path.name}", "go"]
