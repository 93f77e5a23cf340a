"""How networks within nodes are settled, with nodes that only note what they are asked to run."""

from __future__ import annotations

import pytest

from testbed.access.place import InNamespace, Result
from testbed.providers.netns.provider import HERE, SETTLE, NetnsProvider
from testbed.providers.netns.sandbox import Entrance, Sandbox
from tests.doubles import RecordingNode
from tests.unit.testbed.builders import addressed


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
