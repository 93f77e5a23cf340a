"""What makes trunks, and how networks in nodes are settled; nodes only note what they are asked to run."""

from __future__ import annotations

import pytest

from testbed.access.place import InNamespace, Result
from testbed.links.trunks import NETEM, RELAY
from testbed.providers.netns.provider import HERE, SETTLE, NetnsProvider, chosen_means
from testbed.providers.netns.sandbox import Entrance, Sandbox
from tests.doubles import RecordingNode
from tests.unit.testbed.builders import addressed

STATIONS = "examples/two-stations"
TRYING = "testbed.providers.netns.provider.has_feature"


class Box(Sandbox):
    """A sandbox that is none."""

    def __init__(self) -> None:
        self.sandbox = RecordingNode("switch")

    @property
    def switch(self) -> Entrance:
        return self.sandbox  # type: ignore[return-value]


def test_one_program_settles_all_that_the_sandbox_sees_and_another_what_lies_elsewhere() -> None:
    provider, box, runtime = NetnsProvider(addressed("contmec")), Box(), RecordingNode("worker-02")
    provider.sandbox = box
    provider.nodes = {name: Entrance(name, ()) for name in ("master-01", "worker-01")}
    pod = InNamespace("A-1", provider.nodes["worker-01"], "/run/netns/A-1", "172.16.1.2", "veth1")
    provider.settle([pod, InNamespace("A-3", runtime, "/run/netns/cni-7", "172.16.2.2", "veth1")])
    (asked,) = box.sandbox.asked
    assert asked.argv == SETTLE
    assert asked.stdin.splitlines() == [
        HERE,
        "/run/testbed/nodes/master-01/ns/net",
        "/run/testbed/nodes/worker-01/ns/net",
        "/run/testbed/nodes/worker-01/root/run/netns/A-1",
    ]
    (asked,) = runtime.asked
    assert (asked.argv, asked.stdin) == (["nsenter", "--net=/run/netns/cni-7", "--", *SETTLE], HERE)


def test_one_that_cannot_be_settled_is_said() -> None:
    provider, box = NetnsProvider(addressed("contmec")), Box()
    box.sandbox = RecordingNode("switch", lambda _: Result(1, "", "/run/x: setns: Invalid argument"))
    provider.sandbox = box
    with pytest.raises(RuntimeError, match=r"switch: .* ended with 1: /run/x: setns: Invalid argument"):
        provider.settle([])


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """What the machine can do: the programs and devices that succeed."""
    found: set[str] = set()
    monkeypatch.setattr(TRYING, lambda feature: bool(found & {*feature.command}))
    return found


def test_netem_goes_before_the_relay(able: set[str]) -> None:
    able.update({"netem", "tuntap"})
    assert set(chosen_means(addressed(STATIONS).scenario).values()) == {NETEM}
    able.remove("netem")
    assert set(chosen_means(addressed(STATIONS).scenario).values()) == {RELAY}


def test_without_both_a_delay_is_refused(able: set[str]) -> None:
    with pytest.raises(LookupError) as refused:
        chosen_means(addressed(STATIONS).scenario)
    assert str(refused.value).startswith("--provider netns: zones.north.delay: this kernel has no netem")
    assert "/dev/net/tun" in str(refused.value)
    assert not able


@pytest.mark.parametrize("field", ["jitter", "loss", "reorder"])
def test_what_the_relay_cannot_do_is_refused_without_netem(able: set[str], field: str) -> None:
    able.add("tuntap")
    scenario = addressed(STATIONS, f"zones.south.{field}=0.001").scenario
    with pytest.raises(
        LookupError, match=rf"zones\.south\.{field}: this kernel has no netem .*leave {field} out"
    ):
        chosen_means(scenario)


def test_without_a_delay_nothing_is_tried(able: set[str]) -> None:
    scenario = addressed(STATIONS, "zones.north.delay=0", "zones.south.delay=0").scenario
    assert [trunk.zone for trunk in chosen_means(scenario)] == ["north", "south"]
    assert not able
