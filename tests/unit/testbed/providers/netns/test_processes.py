from __future__ import annotations

import pytest

from testbed.providers.netns.processes import hides

ROOT = "/dev/vda / ext4 rw 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "hidden"),
    [
        (ROOT + "proc /proc proc rw,nosuid 0 0\n", False),
        (ROOT + "proc /proc proc rw,hidepid=0 0 0\n", False),
        (ROOT + "proc /proc proc rw,hidepid=off 0 0\n", False),
        (ROOT + "proc /proc proc rw,hidepid=1 0 0\n", True),
        (ROOT + "proc /proc proc rw,hidepid=invisible,gid=7 0 0\n", True),
        (ROOT + "proc /proc proc rw,gid=1000,hidepid=2 0 0\n", False),
        (ROOT + "proc /proc proc rw,hidepid=2 0 0\nproc /proc proc rw 0 0\n", False),
        (ROOT, False),
    ],
)
def test_what_is_mounted_last_at_proc_says_whether_it_hides_processes(mounts: str, hidden: bool) -> None:
    assert hides(mounts, {"1000"}) is hidden
