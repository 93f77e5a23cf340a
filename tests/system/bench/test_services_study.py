"""Requests to a service while something happens to it: each is answered, and counted by who answered."""

from __future__ import annotations

import io
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from bench.console.progress import Display
from bench.recording.records import StudyRequest
from bench.studies import loop
from bench.studies.services import study
from bench.studies.services.index import read


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize(("case", "changes"), [("switched", 1), ("restart", 12)])
def test_what_happens_to_a_service_keeps_nobody_from_counting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str, changes: int
) -> None:
    monkeypatch.setattr(study, "ATTEMPTS", 1)
    choices: dict[str, tuple[str, ...]] = {"case": (case,), "mode": ("auto",)}
    asked = StudyRequest(study="services", duration=1, scale=0.5, reports=str(tmp_path), choices=choices)
    made = study.ServicesStudy()
    directory = loop.run(made, asked, partial(Display, Console(file=io.StringIO())))
    found = read(directory).measured[case]["auto"]
    assert found.hinted == {"north": 2, "south": 2, "west": 2}
    assert found.changes == changes
    assert found.between_bytes > 0  # for it was off at times
    answered = round(sum(found.load.values()) * found.even)
    assert found.requests == 300
    assert answered <= found.requests <= answered + found.lost  # what is lost may have been seen
    if case == "switched":
        assert found.lost == 0
    before = {file: file.read_bytes() for file in directory.rglob("services.*")}
    made.analyse(directory)
    assert before == {file: file.read_bytes() for file in directory.rglob("services.*")}
