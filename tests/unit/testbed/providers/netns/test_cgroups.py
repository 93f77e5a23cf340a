"""The cgroups of sandboxes: whose they are, and which ones may be removed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from testbed.providers.netns import sandbox


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in the place of the host's only hierarchy."""
    monkeypatch.setattr(sandbox, "_hierarchies", lambda: [tmp_path])
    return tmp_path


def test_a_name_tells_the_process_and_that_it_is_no_later_one_with_its_number() -> None:
    name = sandbox.name_of(os.getpid())
    assert name.startswith(f"concorde-testbed-{os.getpid()}-")
    assert name == sandbox.name_of(os.getpid())


def test_what_the_living_and_others_have_stays(hierarchy: Path) -> None:
    living, foreign = sandbox.name_of(os.getpid()), "concorde-testbed-other"
    former = f"concorde-testbed-{os.getpid()}-1"  # the same process id, before it was ours
    for name in (living, foreign, former, "concorde-testbed-4194305-7"):
        (hierarchy / name / "worker-01" / "a").mkdir(parents=True)
    sandbox.remove_dead()
    assert sorted(entry.name for entry in hierarchy.iterdir()) == sorted([living, foreign])
    sandbox.remove(living)
    assert [entry.name for entry in hierarchy.iterdir()] == [foreign]


def test_both_versions_are_looked_at() -> None:
    mounts = (
        "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
        "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
        "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n"
    )
    assert sandbox.mount_points(mounts) == ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"]
