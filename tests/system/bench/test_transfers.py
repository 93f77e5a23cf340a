"""Transfers whose senders are somewhere that takes time to get to, as a pod of a cluster is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from bench.measurement import transfers
from bench.recording.records import Repetition
from testbed.access.place import Process
from testbed.access.pods import PodPlace
from testbed.orchestrators.cni import CniOrchestrator
from testbed.providers.netns.provider import NetnsProvider
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


class FarPod:
    """A pod to which there is a way of its own for what is started; ``way`` is a shell's command."""

    def __init__(self, near: PodPlace, way: str, reached: Path) -> None:
        self.name, self.address, self.host_interface = near.name, near.address, near.host_interface
        self.run = near.run
        self.sender: Noting | None = None
        self._near = near
        self._way = way
        self._reached = reached

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        led = ["sh", "-c", f'{self._way}; "$@"', "sh", *argv]
        self.sender = Noting(self._near.start(led, stdout=stdout, stderr=stderr, held=held), self._reached)
        return self.sender

    def attach(self, argv: Sequence[str], *, stdout: Path, stderr: Path) -> Process:
        return self._near.attach(argv, stdout=stdout, stderr=stderr)


class FarTestbed(Testbed):
    """A testbed in which A-1, which sends, is such a pod."""

    far: FarPod | None = None

    def lead(self, way: str, reached: Path) -> FarPod:
        self.far = FarPod(super().pods["A-1"], way, reached)
        return self.far

    @property
    def pods(self) -> dict[str, PodPlace]:
        return {**super().pods, "A-1": self.far} if self.far else super().pods


@pytest.fixture(scope="module")
def testbed() -> Iterator[FarTestbed]:
    scenario = load(SCENARIOS / "kubernetes.yaml", ["flows[0].duration=1", "flows[0].rate=10M"])
    one = scenario.model_copy(update={"flows": scenario.flows[:1], "disturbances": []})
    up = FarTestbed(one, NetnsProvider(one), CniOrchestrator)
    up.up()
    try:
        yield up
    finally:
        up.down()


def run(testbed: FarTestbed, directory: Path) -> Repetition:
    scenario = testbed.scenario
    return transfers.run(testbed, scenario.flows, scenario.measurement.interval, directory, lambda *_: None)


@pytest.mark.parametrize("said", ["", "a warning"])
def test_no_sender_is_released_before_it_is_in_its_place(
    said: str, testbed: FarTestbed, tmp_path: Path
) -> None:
    warn = f"echo {said} >&2; " if said else ""
    far = testbed.lead(f"{warn}sleep 0.5; touch {tmp_path / 'there'}", tmp_path / "there")
    (transfer,) = run(testbed, tmp_path / "raw").transfers.values()
    assert transfer.error is None
    assert far.sender is not None
    assert far.sender.was_there is True


def test_a_sender_that_does_not_get_to_its_place(testbed: FarTestbed, tmp_path: Path) -> None:
    # It says why before it ends, as programs do: words are not yet its end, nor that it is there.
    far = testbed.lead("echo no way there >&2; sleep 0.2; exit 1", tmp_path / "there")
    (transfer,) = run(testbed, tmp_path / "raw").transfers.values()
    assert transfer.error == "sender does not get to its place: no way there"
    assert far.sender is not None
    assert far.sender.was_there is None
