"""The look at what a test leaves: it sees what is ours, and others may do on the machine what they like.

A sandbox stands for the host here, so that nothing is made on the real one but processes.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from testbed.providers.netns.sandbox import Entrance, Sandbox
from tests.leftovers import State, added, host_state, network_state

FOREIGN = [
    ["ip", "netns", "add", "x"],
    ["ip", "netns", "add", "cni-of-somebody"],
    ["ip", "link", "add", "x0", "type", "bridge"],
    ["ip", "link", "add", "docker0", "type", "bridge"],
    ["ip", "link", "add", "cni-podman0", "type", "bridge"],
    ["mount", "--mkdir", "-t", "tmpfs", "tmpfs", "/run/netns"],
    ["ip", "link", "add", "veth1a2b3c4", "type", "veth", "peer", "name", "vethabcdefg"],
    ["mount", "--mkdir", "-t", "tmpfs", "tmpfs", "/run/user/1000"],
]
OURS = [
    (["ip", "netns", "add", "A-1"], "namespaces"),
    (["ip", "netns", "add", "container-1"], "namespaces"),
    (["ip", "netns", "add", "cni-01234567-89ab-cdef-0123-456789abcdef"], "namespaces"),
    (["ip", "link", "add", "switch", "type", "bridge"], "links"),
    (["ip", "link", "add", "flannel.1", "type", "vxlan", "id", "1", "dstport", "0"], "links"),
    (["ip", "link", "add", "veth0123456789a", "type", "veth", "peer", "name", "eth0"], "links"),
    (["mount", "-t", "tmpfs", "tmpfs", "/run"], "mounts"),
    (["mount", "-t", "proc", "proc", "/proc"], "mounts"),
    (["mount", "--mkdir", "-t", "tmpfs", "tmpfs", "/run/kubernetes/a"], "mounts"),
]


@pytest.fixture
def host() -> Iterator[Entrance]:
    box = Sandbox.start("tests.leftovers")
    try:
        yield box.switch
    finally:
        box.stop()


def left_by(host: Entrance, command: list[str]) -> State:
    before = network_state(host.prefix)
    host.run(command)
    return added(before, network_state(host.prefix))


@pytest.mark.parametrize("command", FOREIGN, ids=" ".join)
@pytest.mark.long(one_in=3)
def test_what_others_make_is_not_ours(host: Entrance, command: list[str]) -> None:
    assert left_by(host, command) == {}


@pytest.mark.parametrize(("command", "kind"), OURS, ids=str)
@pytest.mark.long(one_in=3)
def test_what_we_leave_is_found(host: Entrance, command: list[str], kind: str) -> None:
    assert kind in left_by(host, command)


def test_a_second_mount_at_one_place_is_another(host: Entrance) -> None:
    mount = ["mount", "-t", "tmpfs", "tmpfs", "/run"]
    host.run(mount)
    assert len(left_by(host, mount)["mounts"]) == 1


@pytest.mark.parametrize(
    ("mark", "found"), [("/run/kubernetes/a/kubelet.conf", True), ("/etc/kubernetes/kubelet.conf", False)]
)
def test_a_component_outside_is_known_by_its_files(mark: str, found: bool) -> None:
    argv = ["kubelet", "-c", "print(flush=True); input()", f"--kubeconfig={mark}"]
    before = host_state()
    with subprocess.Popen(
        argv, executable=sys.executable, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seen = added(before, host_state())
        process.communicate(b"\n")
    assert any(mark in words for words in seen.get("processes", ())) is found
