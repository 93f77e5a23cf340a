"""What is mounted where ``ip netns`` keeps its names, and what takes it away: in a sandbox, by its kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from testbed.providers.netns.sandbox import Entrance, Sandbox
from testbed.providers.ssh.ledger import MOUNTED, Mount, remove
from testbed.scenario.addressing import NAMESPACES
from tests import mounts

HIDE = "mount -t tmpfs tmpfs /run"


def mounted(node: Entrance) -> list[tuple[str, str]]:
    return mounts.reachable(node.run(["cat", "/proc/self/mountinfo"]).stdout)


@pytest.fixture
def node() -> Iterator[Entrance]:
    box = Sandbox.start("tests.mounted")
    try:
        box.switch.run(["sh", "-c", f"{HIDE} && mkdir {NAMESPACES}"])
        yield box.switch
    finally:
        box.stop()


@pytest.mark.parametrize(
    ("done", "mounted"),
    [
        ("true", False),
        ("rmdir /run/netns", False),
        ("mount -t tmpfs tmpfs /run/netns", True),
        ("ip netns add x", True),
        ("ip netns add x && ip netns delete x", True),
        ("ip netns add x && umount --recursive /run/netns", False),
        ("mount -t tmpfs tmpfs /run/netns && mount -t tmpfs tmpfs /run/netns", True),
        # What a fresh tmpfs hides stays in the table of mounts, where mountpoint(1) finds it.
        (f"ip netns add x && {HIDE} && mkdir /run/netns && mountpoint -q /run/netns", False),
        (f"ip netns add x && {HIDE} && mkdir /run/netns && ip netns add x", True),
    ],
)
@pytest.mark.long(one_in=3)
def test_what_is_mounted_there_is_what_one_gets_to(node: Entrance, done: str, mounted: bool) -> None:
    node.run(["sh", "-c", done])
    assert (node.run(["sh", "-c", MOUNTED, "sh", NAMESPACES], check=False).status == 0) is mounted


@pytest.mark.parametrize("hidden", [False, True])
def test_the_mount_of_ip_netns_goes_when_nobody_uses_it(node: Entrance, hidden: bool) -> None:
    if hidden:
        node.run(["sh", "-c", f"ip netns add x && {HIDE} && mkdir {NAMESPACES}"])
    before = mounted(node)
    remove(node, Mount(path=NAMESPACES))
    node.run(["ip", "netns", "add", "y"])
    during = mounted(node)
    remove(node, Mount(path=NAMESPACES))
    assert mounted(node) == during
    node.run(["ip", "netns", "delete", "y"])
    remove(node, Mount(path=NAMESPACES))
    assert mounted(node) == before
    node.run(["rmdir", NAMESPACES])
    remove(node, Mount(path=NAMESPACES))


def test_what_another_mount_hides_is_not_compared(node: Entrance) -> None:
    node.run(["sh", "-c", f"mount -t tmpfs seen {NAMESPACES} && mkdir {NAMESPACES}/a"])
    before = mounted(node)
    node.run(["sh", "-c", f"mount -t tmpfs hidden {NAMESPACES}/a && {HIDE}"])
    assert [what for _, what in mounted(node) if "seen" in what or "hidden" in what] == []
    node.run(["umount", "/run"])
    node.run(["umount", f"{NAMESPACES}/a"])
    assert mounted(node) == before
