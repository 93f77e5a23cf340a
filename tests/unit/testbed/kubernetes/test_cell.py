"""What a cell makes of the host's cgroups, for version 1, version 2 and both."""

from __future__ import annotations

from pathlib import Path

from testbed.kubernetes.cell import WEIGHT, Hierarchy, hierarchies, leave_processors, mount_commands, own_path

VERSION_1 = """\
proc /proc proc rw,relatime 0 0
tmpfs /sys/fs/cgroup tmpfs rw,relatime,mode=755 0 0
cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,nosuid,nodev,noexec,relatime,cpu,cpuacct 0 0
cgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0
cgroup /sys/fs/cgroup/systemd cgroup rw,nosuid,xattr,release_agent=/lib/agent,name=systemd 0 0
"""
VERSION_2 = (
    "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,nsdelegate,memory_recursiveprot 0 0\n"
)


def test_version_1_has_a_hierarchy_for_each_set_of_controllers() -> None:
    cpu, memory, systemd = hierarchies(VERSION_1)
    assert cpu == Hierarchy("/sys/fs/cgroup/cpu,cpuacct", 1, "cpu,cpuacct")
    assert cpu.controllers == ["cpu", "cpuacct"]
    assert memory.options == "memory"
    assert systemd.options == "none,name=systemd"
    assert systemd.controllers == []


def test_version_1_is_mounted_again_with_the_usual_links() -> None:
    commands = mount_commands(hierarchies(VERSION_1))
    assert commands[0] == ["umount", "--recursive", "--lazy", "/sys/fs/cgroup"]
    assert commands[1][-2:] == ["tmpfs", "/sys/fs/cgroup"]
    assert ["mount", "-t", "cgroup", "-o", "memory", "cgroup", "/sys/fs/cgroup/memory"] in commands
    assert ["ln", "-sfn", "cpu,cpuacct", "/sys/fs/cgroup/cpuacct"] in commands


def test_version_2_is_one_hierarchy() -> None:
    found = hierarchies(VERSION_2)
    assert found == [Hierarchy("/sys/fs/cgroup", 2, "")]
    assert mount_commands(found)[1:] == [["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup"]]


def test_a_hierarchy_mounted_twice_is_one() -> None:
    assert len(hierarchies(VERSION_1 + VERSION_1)) == 3


def test_version_2_beside_version_1_keeps_its_place() -> None:
    both = VERSION_1 + "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0\n"
    commands = mount_commands(hierarchies(both))
    assert ["mount", "-t", "cgroup2", "cgroup2", "/sys/fs/cgroup/unified"] in commands


def test_a_process_finds_its_own_place_in_a_hierarchy() -> None:
    cpu, memory, systemd = hierarchies(VERSION_1)
    text = "9:name=systemd:/init.scope\n4:memory:/a\n2:cpu,cpuacct:/user.slice/b:c\n0::/\n"
    assert own_path(text, cpu) == "/user.slice/b:c"
    assert own_path(text, memory) == "/a"
    assert [one.shares_processors for one in (cpu, memory, systemd)] == [True, False, False]


def test_a_group_of_version_2_leaves_processors_to_others(tmp_path: Path) -> None:
    (tmp_path / "cpu.weight").write_text("100\n")
    leave_processors(tmp_path)
    assert (tmp_path / "cpu.weight").read_text() == f"{WEIGHT}"


def test_a_group_without_a_weight_gets_none(tmp_path: Path) -> None:
    leave_processors(tmp_path)
    assert list(tmp_path.iterdir()) == []
