"""However a run ends, the host is as it was, and what it leaves under reports/ says that it is unfinished."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.providers.netns.sandbox import Sandbox
from tests.system.conftest import ROOT, all_gone, pid_namespace

STAGES = ["pods", "calibration", "traffic"]


def start(reports: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "tasks.py", "bench", "--scenario", "kubernetes", "--scale", "0.05",
         "--set", "disturbances[0].rate=1G", "--reports", str(reports)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def until(run: subprocess.Popen[str], stage: str) -> None:
    """Read what the run says until it has reached a stage."""
    assert run.stdout is not None
    for line in run.stdout:
        if f"kubernetes: {stage}" in line:
            return
    pytest.fail(f"never reached {stage}: {run.stderr.read() if run.stderr else ''}")


def sandbox_of(run: subprocess.Popen[str]) -> Sandbox:
    def parent(pid: int) -> int:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])

    # run -> unshare -> the sandbox's first process
    return next(box for box in Sandbox.all() if parent(parent(box.pid)) == run.pid)


@pytest.mark.usefixtures("untouched_host")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("how", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_nothing_is_left(how: signal.Signals, status: int, stage: str, tmp_path: Path) -> None:
    run = start(tmp_path)
    until(run, stage)
    namespace = pid_namespace(sandbox_of(run).pid)
    run.send_signal(how)
    _, words = run.communicate(timeout=30)
    assert run.returncode == status, words
    assert "Traceback" not in words
    assert all_gone(namespace)
    assert [entry.name.endswith(".unfinished") for entry in tmp_path.iterdir()] == [True]
    if how is not signal.SIGKILL:
        assert "nothing is left running" in words


def test_two_runs_at_once_do_not_meet(tmp_path: Path) -> None:
    runs = [start(tmp_path) for _ in range(2)]
    for run in runs:
        out, words = run.communicate(timeout=120)
        assert run.returncode in (0, 3), out + words  # 3: the machine was too busy for two
    summaries = [json.loads((entry / "summary.json").read_text()) for entry in tmp_path.iterdir()]
    assert len(summaries) == 2
    for summary in summaries:
        assert summary["verdict"] == "held" or all("machine" in r or "proc" in r for r in summary["reasons"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scenario", "nowhere"], "no scenario 'nowhere' (a file, or one of: "),
        (["--set", "flows[0].to=A-9"], "flows[0].to: no pod 'A-9' (pods: A-1, A-2, A-3, A-4"),
        (["--scale", "many"], "many"),
        (["--scale", "0"], "--scale: 0 is no factor"),
        (["--provider", "cloud"], "no provider 'cloud' (providers: netns, ssh, "),
        (["--orchestrator", "swarm"], "no orchestrator 'swarm' (orchestrators: cni"),
        (["--colour"], "No idea what '--colour' is"),
        (["--enforcement", "hope"], "enforcement: input should be"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_bad_input_starts_nothing(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "tasks.py", "bench", "--reports", str(tmp_path / "reports"), *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "reports").exists()
