"""The workflows' own steps, run as a runner runs them, on a machine of stand-ins."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.scenario import reading
from tests.paths import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
REFERENCE = ROOT / "reports" / "reference" / "contmec"

# Tests and privileges are for the runner; what happens at night is done with a recording in place of a run.
INVOKEW = f"""#!/bin/sh
echo "invokew $*" >>said
judged=${{JUDGED:-}}
case "$*" in
    *.*\\ --shard\\ */* | *.*\\ --percent\\ 10 | programs.get) exit ;;
    test) exit "${{TESTED:-0}}" ;;
    "nightly --machine") [ -z "$judged" ] || exec echo 0123456789ab ;;
    *)
        [ -z "$judged" ] || exit "$judged"
        set -- "$@" --replay {REFERENCE}
        ;;
esac
exec {sys.executable} {ROOT}/tasks.py "$@"
"""
SUDO = '#!/bin/sh\necho "sudo $*" >>said\n'


def jobs(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = reading.parse(file.read_text(encoding="utf-8"))["jobs"]
    return found


def steps(file: Path) -> Iterator[dict[str, Any]]:
    for job in jobs(file).values():
        yield from job["steps"]


@dataclass
class Runner:
    """Runs the steps of a job one after another, until one fails, as GitHub does."""

    home: Path

    def run(self, file: Path, job: str, **variables: str) -> dict[str, int]:
        """Return the status of each step that was run, by its name."""
        statuses: dict[str, int] = {}
        for step in jobs(file)[job]["steps"]:
            always = str(step.get("if", "")).startswith("always()")
            if "run" not in step or (any(statuses.values()) and not always):
                continue
            done = subprocess.run(
                ["bash", "-e", "-c", step["run"]],
                cwd=self.home,
                env={
                    **os.environ,
                    **variables,
                    "PATH": f"{self.home}:{os.environ['PATH']}",
                    "GITHUB_OUTPUT": str(self.home / "output"),
                    "GITHUB_STEP_SUMMARY": str(self.home / "summary"),
                },
                capture_output=True,
                text=True,
                check=False,
            )
            statuses[step["name"]] = done.returncode
            self.said(done.stdout + done.stderr)
        return statuses

    def said(self, words: str = "") -> str:
        """Return all that was said, with what is said now."""
        file = self.home / "said"
        with file.open("a") as stream:
            stream.write(words)
        return file.read_text()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / ".ci").mkdir()
    for name, text in (("invokew", INVOKEW), ("sudo", SUDO), (".ci/run", SUDO)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return Runner(tmp_path)


NIGHTLY = ROOT / ".github" / "workflows" / "nightly.yml"
STEPS = ["Allow user namespaces", "Test", "Which machine is this?", "Run and judge", "Tell"]


@pytest.mark.long(one_in=0)
def test_a_night_runs_judges_and_tells(runner: Runner) -> None:
    assert runner.run(NIGHTLY, "nightly") == dict.fromkeys(STEPS, 0)
    assert re.fullmatch(r"machine=[0-9a-f]{12}\n", (runner.home / "output").read_text())
    assert (runner.home / "summary").read_text().startswith("# ✓ Every guarantee held\n")
    assert len(list((runner.home / "reports" / "history").glob("*.jsonl"))) == 1
    exports = {file.name for file in (runner.home / "reports" / "nightly").iterdir()}
    assert exports == {"nightly.md", "junit.xml", "bigger.json", "smaller.json", "trend.html"}


@pytest.mark.parametrize(("judged", "status"), [(1, 1), (3, 0), (4, 4), (5, 5), (70, 70)])
def test_a_night_fails_for_the_right_reason_only(runner: Runner, judged: int, status: int) -> None:
    assert runner.run(NIGHTLY, "nightly", JUDGED=str(judged)) == {
        **dict.fromkeys(STEPS, 0),
        "Run and judge": status,
    }
    assert ("::warning title=No statement::" in runner.said()) is (judged == 3)


def test_nothing_is_measured_if_a_test_fails(runner: Runner) -> None:
    done = runner.run(NIGHTLY, "nightly", TESTED="1")
    assert done == {"Allow user namespaces": 0, "Test": 1, "Tell": 0}
    assert not (runner.home / "reports").exists()


TEST = ROOT / ".github" / "workflows" / "test.yml"


@pytest.mark.parametrize(("file", "job"), [(file, job) for file in (NIGHTLY, TEST) for job in jobs(file)])
@pytest.mark.long(one_in=3)
def test_every_job_runs_and_says_how_long_it_may(runner: Runner, file: Path, job: str) -> None:
    done = runner.run(file, job, SHARD="2/4")
    assert done
    assert set(done.values()) == {0}
    assert 10 <= jobs(file)[job]["timeout-minutes"] <= 60


def commands(text: str) -> set[str]:
    """Return the tests that are run, and how much of them."""
    return set(re.findall(r"./invokew (test[.\w]*(?: --(?:percent|shard) \S+)?)", text))


def test_a_change_is_tested_by_what_continuous_integration_runs() -> None:
    run = (ROOT / ".ci" / "run").read_text()
    assert "CONCORDE_LONG=10 ./invokew test\n" in run  # the second, in the run of the first
    phases = commands(run) - {"test.setup"} | {"test.long --percent 10"}
    assert phases == {"test", "test.long --percent 10", "test.alone --percent 10", "test.e2e"}
    assert commands(TEST.read_text()) == phases


def test_all_of_what_a_change_is_tested_by_a_tenth_of_is_run_at_night() -> None:
    assert commands(NIGHTLY.read_text()) == {
        "test", 'test.long --shard "$SHARD"', 'test.alone --shard "$SHARD"'
    }  # fmt: skip
    for job in ("long", "alone"):
        parts = jobs(NIGHTLY)[job]["strategy"]["matrix"]["shard"]
        assert parts == [f"{number}/{len(parts)}" for number in range(1, len(parts) + 1)]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_actions_are_pinned_by_commit(file: Path) -> None:
    used = [step["uses"] for step in steps(file) if "uses" in step]
    assert used
    for action in used:
        assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", action)


def test_a_history_is_kept_under_the_name_it_is_looked_for() -> None:
    cached = [step for step in steps(NIGHTLY) if "actions/cache/" in step.get("uses", "")]
    restored, saved = (step["with"] for step in cached)
    assert restored["path"] == saved["path"] == "reports/history"
    assert restored["key"] == saved["key"]
    assert restored["key"].startswith(restored["restore-keys"])
    assert "steps.which.outputs.machine" in restored["restore-keys"]
