"""However a run ends, the host is as it was, and what it leaves under reports/ says that it is unfinished."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import verbs
from tests.paths import ROOT
from tests.system.conftest import all_gone, pid_namespace, sandbox_of
from tests.waiting import PATIENCE

STAGES = ["pods", "calibration", "traffic"]


# Flows as short as can be; the disturbance is over before they are.
SHORT = [
    word
    for field in (
        "flows[0].duration=2", "flows[1].duration=2", "disturbances[0].start=1", "disturbances[0].duration=1"
    )
    for word in ("--set", field)
]  # fmt: skip


# What goes before the directory of reports.
SMALL = ["bench", "--retry", "0", "--scenario", "kubernetes", "--scale", "0.05"]
SMALL += ["--set", "disturbances[0].rate=1G", "--reports"]


def start(reports: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-u", "tasks.py", *SMALL, str(reports), *arguments],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def until(run: subprocess.Popen[str], stage: str) -> None:
    """Read what the run says until it has reached a stage."""
    assert run.stdout is not None
    for line in run.stdout:
        if f"kubernetes: {stage}" in line:
            return
    pytest.fail(f"never reached {stage}: {run.stderr.read() if run.stderr else ''}")


def until_rates(run: subprocess.Popen[str]) -> None:
    """Read what the run says until it has seen the first rates of its traffic."""
    assert run.stdout is not None
    assert any("bit/s" in line for line in run.stdout)


@pytest.mark.long(one_in=4)
@pytest.mark.usefixtures("untouched_host")
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize(
    ("how", "status"),
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
    ids=["SIGINT", "SIGTERM", "SIGKILL"],
)
def test_nothing_is_left(
    how: signal.Signals, status: int, stage: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    run = start(tmp_path, TMPDIR=str(temporary))
    until(run, stage)
    if stage == "traffic":
        until_rates(run)
    namespace = pid_namespace(sandbox_of(run.pid).pid)
    run.send_signal(how)
    _, words = run.communicate(timeout=PATIENCE)
    assert run.returncode == status, words
    assert "Traceback" not in words
    assert all_gone(namespace)
    assert [entry.name.endswith(".unfinished") for entry in tmp_path.iterdir()] == [True]
    assert list(temporary.iterdir()) == []
    if how is not signal.SIGKILL:
        assert "nothing is left running" in words


def resume(reports: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return verbs.run("bench", "--reports", str(reports), "--resume", *arguments)


@pytest.mark.long(one_in=0)
@pytest.mark.usefixtures("untouched_host")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_run_goes_on_where_it_stopped(how: signal.Signals, tmp_path: Path) -> None:
    run = start(tmp_path, "--repetitions", "3", *SHORT)
    until(run, "traffic for 2 s, repetition 3 of 3")
    (directory,) = tmp_path.iterdir()
    run.send_signal(signal.SIGSTOP)  # or it might be over before somebody else has asked
    busy = resume(tmp_path, directory.name)
    assert busy.returncode == 2
    assert "is being worked on" in busy.stderr
    run.send_signal(how)
    run.send_signal(signal.SIGCONT)
    out, _ = run.communicate(timeout=PATIENCE)
    if how is signal.SIGINT:
        assert f"2 of 3 repetitions are recorded; to go on: ./invokew bench --resume {directory}" in out
    before = {file: file.read_bytes() for file in directory.glob("raw/repetition-[01]/*")}
    assert len(before) > 2

    done = resume(tmp_path, directory.name.removesuffix(".unfinished"))
    # Whatever the verdict is: other tests have the processors too.
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    assert "repetition 3 of 3" in done.stdout
    assert "repetition 2 of 3" not in done.stdout
    recording = (tmp_path / "latest").resolve()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [recording.name, "latest"]
    assert before == {directory / file.relative_to(recording): file.read_bytes()
                      for file in recording.glob("raw/repetition-[01]/*")}  # fmt: skip
    record = json.loads((recording / "raw" / "run.json").read_text())
    assert len(record["repetitions"]) == 3
    assert "2 of 3 repetitions were made before" in record["notes"][0]
    again = resume(tmp_path, recording.name)
    assert again.returncode == 2
    assert "is complete" in again.stderr


def test_what_cannot_be_gone_on_with_is_refused(tmp_path: Path) -> None:
    nothing = resume(tmp_path, "nowhere")
    assert nothing.returncode == 2
    assert "--resume: no run 'nowhere' (unfinished: none)" in nothing.stderr
    other = resume(tmp_path, "nowhere", "--enforcement", "node")
    assert other.returncode == 2
    assert "the run goes on as it was begun" in other.stderr


@pytest.mark.long(one_in=0)
def test_two_runs_at_once_do_not_meet(tmp_path: Path) -> None:
    for run in [verbs.start(*SMALL, str(tmp_path), *SHORT) for _ in range(2)]:
        done = run.communicate()
        # They take each other's processors, and nothing else.
        assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    summaries = [json.loads((entry / "summary.json").read_text()) for entry in tmp_path.glob("2*")]
    assert len(summaries) == 2
    for summary in summaries:
        assert all(phase["samples"] for flow in summary["flows"] for phase in flow["phases"].values())
        assert any(note.startswith("another run went on on this machine") for note in summary["notes"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--scenario", "nowhere"], "no scenario 'nowhere' (a file, or one of: "),
        (["--set", "flows[0].to=A-9"], "flows[0].to: no pod 'A-9' (pods: A-1, A-2, A-3, A-4"),
        (["--scale", "many"], "many"),
        (["--scale", "0"], "--scale: must be above 0"),
        (["--provider", "cloud"], "no provider 'cloud' (providers: netns, ssh, "),
        (["--orchestrator", "swarm"], "no orchestrator 'swarm' (orchestrators: cni"),
        (["--colour"], "no option --colour"),
        (["--enforcement", "hope"], "enforcement: input should be"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
@pytest.mark.long(one_in=3)
def test_bad_input_starts_nothing(arguments: list[str], words: str, tmp_path: Path) -> None:
    done = verbs.run("bench", "--reports", str(tmp_path / "reports"), *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "reports").exists()
