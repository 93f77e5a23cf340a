"""What a user types, from the first command to the verdict."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.providers.netns import sandbox
from testbed.providers.netns.sandbox import Sandbox
from tests.e2e.conftest import invoke, until
from tests.paths import ROOT

STARTER = """
from pathlib import Path
from testbed.assembly import assemble
from testbed.scenario import load
testbed = assemble(load(Path("scenarios/kubernetes.yaml"), scale=0.1), "netns", "kubernetes")
testbed.up()
print(testbed.provider.sandbox.pid, flush=True)
input()
"""


@pytest.mark.usefixtures("untouched_host")
def test_what_a_killed_harness_leaves_ends_with_it_or_is_removed_by_the_next() -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    mine = sandbox.name_of(pid)
    assert cgroups_named(mine)
    starter.send_signal(signal.SIGKILL)
    starter.communicate()
    until(lambda: not Path(f"/proc/{pid}").exists())
    # The next may be another test's, and have removed it by now, or be about to.
    Sandbox.start("next.test").stop()
    until(lambda: not cgroups_named(mine))


def cgroups_named(name: str) -> list[Path]:
    points = sandbox.mount_points(Path("/proc/self/mounts").read_text(encoding="utf-8"))
    return [place for point in points if (place := Path(point) / name).exists()]


def test_without_programs_it_says_how_to_get_them_and_starts_nothing(tmp_path: Path) -> None:
    done = invoke("bench", "--orchestrator", "kubernetes", CONCORDE_CACHE=str(tmp_path))
    assert done.returncode == 2
    assert "run ./invokew kubernetes.get" in done.stderr
    assert "nodes and underlay" not in done.stdout
