"""The lines of a report that do it again, as a shell takes them: they must ask for what was asked for."""

from __future__ import annotations

import re
import shutil
from html import unescape
from pathlib import Path

import pytest

from bench.analysis.next_steps import NextStep
from bench.pipeline import analyse
from bench.presentation import commands
from bench.recording import atomic, requests
from bench.recording.directory import Recording
from bench.recording.records import Beginning, Request, StudyRequest
from bench.studies import known
from tests.unit.bench.builders import DATA
from tests.unit.bench.presentation.conftest import TypeIn

RUN_ID = "20261120T091416Z-violated-pod"
REQUESTS = {
    "plain": Request(scenario="kubernetes"),
    "reports": Request(scenario="kubernetes", reports="my reports/of $today"),
    "inventory": Request(scenario="kubernetes", provider="ssh:lab/inventory one.yaml"),
    "kubeconfigs": Request(scenario="kubernetes", kubeconfigs=("a=first 'config'", "~/second")),
    "real": Request(scenario="kubernetes", orchestrator="kubernetes", scale=0.05),
    "overrides": Request(
        scenario="kubernetes",
        overrides=("title='it''s $HOME; `x` * \"y\"'", "flows[0].duration=3", "enforcement=none"),
        scale=1e-3,
    ),
}


pytestmark = pytest.mark.usefixtures("undrawn", "elsewhere")


def recorded(request: Request | None, directory: Path) -> Recording:
    """A recording of what was asked for, analysed; None: from before that was recorded."""
    shutil.copytree(DATA / "violated", directory)
    recording = Recording(directory)
    if request is not None:
        atomic.write_model(recording.request_file, request)
    analyse(recording)
    return recording


def lines_of(recording: Recording) -> list[str]:
    """The commands in a report by which it is done again, behind the one that is next."""
    page = recording.report_file.read_text(encoding="utf-8")
    _, _, page = page.partition("Do it again")
    return [unescape(line) for line in re.findall(r"<pre>(\./invokew .*?)</pre>", page, re.DOTALL)]


@pytest.mark.parametrize("request_", [pytest.param(one, id=name) for name, one in REQUESTS.items()])
@pytest.mark.parametrize(
    "kept", [RUN_ID, f"20261120T091000Z-matrix/{RUN_ID}", "kept/short"], ids=["run", "case", "renamed"]
)
@pytest.mark.long(one_in=5)
def test_a_report_says_how_to_ask_for_the_same(request_: Request, kept: str, type_in: TypeIn) -> None:
    recording = recorded(request_, Path(request_.reports) / kept)
    figures, asked, as_run = lines_of(recording)

    found = type_in(figures)
    assert isinstance(found, Recording)
    assert found.directory == recording.directory
    assert type_in(asked) == (request_, requests.read(request_))
    exact = request_.model_copy(update={"scenario": RUN_ID, "overrides": (), "scale": 1.0})
    assert type_in(as_run) == (exact, recording.scenario())


def test_a_report_from_before_says_what_it_does_not_know_and_invents_nothing(type_in: TypeIn) -> None:
    recording = recorded(None, Path("reports") / RUN_ID)
    assert "where its nodes were found" in recording.report_file.read_text(encoding="utf-8")
    figures, as_run = lines_of(recording)
    found = type_in(figures)
    assert isinstance(found, Recording)
    assert found.directory == recording.directory
    assert type_in(as_run) == (Request(scenario=RUN_ID), recording.scenario())


def test_what_was_recorded_before_is_used(type_in: TypeIn) -> None:
    recording = recorded(None, Path("reports") / RUN_ID)
    beginning = Beginning(started_at="2026-11-20T09:14:16Z", provider="ssh:lab.yaml", orchestrator="cni")
    atomic.write_model(recording.beginning_file, beginning)
    analyse(recording)
    assert "where its nodes were found" not in recording.report_file.read_text(encoding="utf-8")
    _, as_run = lines_of(recording)
    assert type_in(as_run) == (Request(scenario=RUN_ID, provider="ssh:lab.yaml"), recording.scenario())


@pytest.mark.parametrize("damage", ["", "{}", '{"scenario": "x", "more": 1}'])
def test_a_request_that_cannot_be_read_any_more_is_none(damage: str) -> None:
    recording = recorded(REQUESTS["inventory"], Path("reports") / RUN_ID)
    recording.request_file.write_text(damage)
    analyse(recording)
    assert "How it was started was not recorded" in recording.report_file.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["matrix", "study matrix"])
def test_a_study_is_asked_for_again_by_its_verb(command: str, type_in: TypeIn) -> None:
    asked = StudyRequest(
        study="matrix",
        choices={"scenario": ("contmec", "my own.yaml"), "enforcement": ("pod",)},
        overrides=("title='a; b'",),
        scale=0.1,
        reports="some where",
    )
    assert type_in(commands.study(asked, command)) == asked


def test_what_a_study_asks_for_or_not_is_typed_without_a_value(type_in: TypeIn) -> None:
    asked = StudyRequest(
        study="promise", choices={"network": ("node",), "attack-own-pods": ("yes",)}, kubeconfigs=("one",)
    )
    flags = known.named("promise").flags
    assert type_in(commands.study(asked, "promise", flags)) == asked
    again = commands.of_step(NextStep(asked, "whether it holds"), flags)
    assert type_in(again.command) == asked
