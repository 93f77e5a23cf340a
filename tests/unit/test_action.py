"""The GitHub Action's steps, run as a runner runs them, with recordings for runs, and without GitHub."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed.scenario import reading
from tests.paths import CONTMEC_SUMMARY, ROOT

ACTION = reading.parse((ROOT / "action.yml").read_text(encoding="utf-8"))
REFERENCE = ROOT / "reports" / "reference"
STATUSES = {"held": 0, "violated": 1, "invalid": 3}
CONCLUSIONS = {"held": "success", "violated": "failure", "invalid": "neutral"}
COMMIT = "c" * 40

# It says what it was asked, and what bench says of the recordings.
INVOKEW = """#!/bin/sh
printf '%s\\n' "$@" >"$RUNNER_TEMP/asked"
pwd >"$RUNNER_TEMP/stood"
cat "$RUNNER_TEMP/document"
exit "$STATUS"
"""
GH = '#!/bin/sh\nprintf "%s\\n" "$@" >"$RUNNER_TEMP/gh"\nexit "${REFUSED:-0}"\n'


def document(*verdicts: str) -> dict[str, Any]:
    """Return what ``bench --json`` says of runs with these verdicts."""
    one = json.loads(CONTMEC_SUMMARY.read_text(encoding="utf-8"))
    return {"schema": 1, "runs": [{"summary": {**one, "verdict": verdict}} for verdict in verdicts]}


@dataclass
class Runner:
    """A runner's directories, on which the action's steps are run one after another until one fails."""

    home: Path

    def run(self, said: dict[str, Any] | None, status: int, *, refused: int = 0, **inputs: str) -> list[int]:
        """Return the steps' statuses, given what bench says and how it ends."""
        (self.home / "document").write_text(json.dumps(said) if said else "")
        statuses: list[int] = []
        for step in ACTION["runs"]["steps"]:
            environment = {
                **os.environ,
                "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
                "GITHUB_ACTION_PATH": str(self.home / "action"),
                "GITHUB_WORKSPACE": str(self.home / "workspace"),
                "GITHUB_REPOSITORY": "somebody/plugin",
                "GITHUB_SERVER_URL": "https://server",
                "GITHUB_RUN_ID": "7",
                "GITHUB_OUTPUT": str(self.home / "output"),
                "GITHUB_STEP_SUMMARY": str(self.home / "page"),
                "RUNNER_TEMP": str(self.home),
                "STATUS": str(status),
                "REFUSED": str(refused),
                **{name: self._meant(value, inputs) for name, value in step.get("env", {}).items()},
            }
            bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
            done = subprocess.run(
                bash,
                cwd=self.home / "workspace",
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            self.said = done.stdout
            statuses.append(done.returncode)
            if done.returncode:
                break
        return statuses

    def _meant(self, value: str, inputs: dict[str, str]) -> str:
        defaults: dict[str, str] = {name: one["default"] for name, one in ACTION["inputs"].items()}
        known = {f"inputs.{name}": text for name, text in (defaults | inputs).items()}
        known["github.event.pull_request.head.sha || github.sha"] = COMMIT
        known["steps.judge.outputs.verdict"] = self.output().get("verdict", "")
        return known[value.removeprefix("${{ ").removesuffix(" }}")]

    def output(self) -> dict[str, str]:
        file = self.home / "output"
        lines = file.read_text().splitlines() if file.exists() else []
        return dict(line.split("=", 1) for line in lines)

    def check(self) -> dict[str, Any]:
        posted: dict[str, Any] = json.loads((self.home / "check.json").read_text())
        return posted

    def words(self, name: str) -> list[str]:
        return (self.home / name).read_text().splitlines()


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    for name in ("bin", "action", "workspace"):
        (tmp_path / name).mkdir()
    (tmp_path / "action" / ".github").symlink_to(ROOT / ".github")
    for name, text in (("action/invokew", INVOKEW), ("bin/gh", GH), ("bin/sudo", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    return Runner(tmp_path)


@pytest.mark.parametrize(("verdict", "last"), [("held", 0), ("violated", 1), ("invalid", 0)])
def test_a_check_has_three_states_and_a_job_two(runner: Runner, verdict: str, last: int) -> None:
    assert runner.run(document(verdict), STATUSES[verdict]) == [0, 0, last]
    assert runner.output()["verdict"] == verdict
    check = runner.check()
    assert (check["status"], check["conclusion"]) == ("completed", CONCLUSIONS[verdict])
    assert (check["head_sha"], check["name"]) == (COMMIT, "bandwidth guarantees")
    assert check["details_url"] == "https://server/somebody/plugin/actions/runs/7"
    posted = runner.words("gh")
    assert posted[:4] == ["api", "--method", "POST", "repos/somebody/plugin/check-runs"]
    assert str(runner.home / "check.json") in posted


@pytest.mark.parametrize(
    ("verdicts", "conclusion"),
    [(("held", "invalid"), "neutral"), (("invalid", "violated"), "failure"), (("held", "held"), "success")],
)
def test_of_several_runs_the_worst_counts(runner: Runner, verdicts: tuple[str, ...], conclusion: str) -> None:
    runner.run(document(*verdicts), 0)
    assert runner.check()["conclusion"] == conclusion


@pytest.mark.parametrize("status", [2, 4, 70])
def test_an_error_is_no_verdict_and_makes_no_check(runner: Runner, status: int) -> None:
    assert runner.run(None, status) == [0, status]
    assert not (runner.home / "check.json").exists()
    assert "verdict" not in runner.output()


def test_without_the_right_to_make_checks_the_job_says_what_it_can(runner: Runner) -> None:
    assert runner.run(document("invalid"), 3, refused=1) == [0, 0, 0]
    assert runner.said.startswith("::warning title=No check::invalid, but this token")
    assert runner.run(document("violated"), 1, refused=1)[-1] == 1


def test_what_the_check_shows_is_on_the_jobs_page_too(runner: Runner) -> None:
    runner.run(document("held"), 0)
    shown = runner.check()["output"]
    assert shown["title"] == "held: contmec"
    assert "| (1) A-1 -&gt; A-4 | quiet | 1,000.0 | 954.9 | 954.9 | 100.0% |" in shown["summary"]
    assert (runner.home / "page").read_text() == f"## {shown['title']}\n\n{shown['summary']}\n"


def test_names_from_a_pull_request_are_shown_and_not_obeyed(runner: Runner) -> None:
    said = document("held")
    said["runs"][0]["summary"]["title"] = "![x](http://a) <img src=y>\n# `z` | @all"
    runner.run(said, 0)
    first = runner.check()["output"]["summary"].splitlines()[0]
    assert "\\!\\[x\\](http://a) &lt;img src=y&gt; \\# \\`z\\` \\| \\@all" in first


def test_more_than_the_api_takes_is_cut(runner: Runner) -> None:
    runner.run(document(*["held"] * 200), 0)
    summary = runner.check()["output"]["summary"]
    assert len(summary) <= 65_535
    assert summary.endswith("it is in the recordings.")


def test_files_of_the_repository_are_found_from_where_the_action_is(runner: Runner) -> None:
    runner.run(document("held"), 0, scenario="my own.yaml", enforcement="node", scale="1", repetitions="5")
    assert runner.words("asked") == [
        "bench", "--json", "--retry=0", f"--reports={runner.home / 'workspace' / 'reports'}", "--scale=1",
        "--repetitions=5", "--scenario=my own.yaml", "--enforcement=node",
    ]  # fmt: skip
    assert runner.words("stood") == [str(runner.home / "workspace")]
    runner.run(document("held"), 0, scenario="contmec")
    assert runner.words("asked")[-1] == "--scenario=contmec"


def test_what_a_user_writes_reaches_a_shell_in_variables_only() -> None:
    for step in ACTION["runs"]["steps"]:
        assert "${{" not in step["run"]


def test_every_input_is_used_and_every_output_made(runner: Runner) -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.(\w+)", text)) == set(ACTION["inputs"])
    runner.run(document("held"), 0)
    assert set(runner.output()) == set(ACTION["outputs"])
