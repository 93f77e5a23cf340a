"""Transfers whose senders are somewhere that takes time to get to, as a pod of a cluster is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.measurement import transfers
from bench.measurement.plan import plan
from bench.recording.records import Repetition
from testbed.access.place import InNamespace, Process
from testbed.assembly import assemble
from testbed.orchestrators.cni import CniOrchestrator
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"


class Noting:
    """A process that notes whether it was where it had to be when it was released."""

    def __init__(self, process: Process, reached: Path) -> None:
        self._process = process
        self._reached = reached
        self.was_there: bool | None = None

    def release(self) -> None:
        self.was_there = self._reached.exists()
        self._process.release()

    def end_input(self) -> None:
        self._process.end_input()

    def wait(self, timeout: float | None = None) -> int | None:
        return self._process.wait(timeout)

    def kill(self) -> None:
        self._process.kill()


@dataclass(frozen=True)
class FarPod(InNamespace):
    """A pod to which there is a way of its own for what is started; ``way`` is a shell's command."""

    way: str = "true"
    reached: Path = Path("/nowhere")
    senders: list[Noting] = field(default_factory=list)

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        led = ["sh", "-c", f'{self.way}; "$@"', "sh", *argv]
        sender = Noting(super().start(led, stdout=stdout, stderr=stderr, held=held), self.reached)
        self.senders.append(sender)
        return sender


def lead(testbed: Testbed, way: str, reached: Path) -> FarPod:
    """Make A-1, which sends, such a pod."""
    orchestrator = testbed.orchestrator
    assert isinstance(orchestrator, CniOrchestrator)
    near = orchestrator.pods["A-1"]
    far = FarPod(
        near.name, near.node, near.namespace, near.address, near.host_interface, way=way, reached=reached
    )
    orchestrator.pods["A-1"] = far
    return far


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    scenario = load(SCENARIOS / "kubernetes.yaml", ["flows[0].duration=1", "flows[0].rate=10M"])
    one = scenario.model_copy(update={"flows": scenario.flows[:1], "disturbances": []})
    up = assemble(one, "netns", "cni")
    up.up()
    try:
        yield up
    finally:
        up.down()


def run(testbed: Testbed, directory: Path) -> Repetition:
    scenario = testbed.scenario
    planned = plan(testbed, scenario.flows, scenario.measurement.interval)
    return transfers.run(planned, directory, lambda *_: None)


@pytest.mark.parametrize("said", ["", "a warning"])
@pytest.mark.long(one_in=2)
def test_no_sender_is_released_before_it_is_in_its_place(said: str, testbed: Testbed, tmp_path: Path) -> None:
    warn = f"echo {said} >&2; " if said else ""
    far = lead(testbed, f"{warn}sleep 0.5; touch {tmp_path / 'there'}", tmp_path / "there")
    (transfer,) = run(testbed, tmp_path / "raw").transfers.values()
    assert transfer.error is None
    (sender,) = far.senders
    assert sender.was_there is True


def test_a_sender_that_does_not_get_to_its_place(testbed: Testbed, tmp_path: Path) -> None:
    # It says why before it ends, as programs do: words are not yet its end, nor that it is there.
    far = lead(testbed, "echo no way there >&2; sleep 0.2; exit 1", tmp_path / "there")
    (transfer,) = run(testbed, tmp_path / "raw").transfers.values()
    assert transfer.error == "sender does not get to its place: no way there"
    (sender,) = far.senders
    assert sender.was_there is None
