"""Debian's Chromium, driven as a person would: by mouse and keyboard; and command lines, typed in."""

from __future__ import annotations

import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import pipeline
from bench.cli import program
from bench.measurement import experiment
from bench.recording.records import Request
from bench.studies import loop
from testbed.scenario import Scenario
from tests.unit.bench.presentation.browser import Browser

TypeIn = Callable[[str], object]

PROGRAMS = ("chromium", "chromedriver")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser without a window; without one here the test is skipped."""
    for module in ("selenium", "axe_selenium_python"):
        pytest.importorskip(module, reason=f"there is no {module}; ./invokew test.long installs it")
    for one in PROGRAMS:
        if shutil.which(one) is None:
            pytest.skip(f"there is no {one}; ./invokew test.long installs it in Debian, for root")
    driver = started()
    yield Browser(driver)
    driver.quit()


def started() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    # The sandbox wants user namespaces, which a container may not have; the pages are our own.
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let relative paths be below a directory of the test's own, and signals do what they did."""
    monkeypatch.chdir(tmp_path)
    before = {one: signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)}
    yield
    for one, handler in before.items():
        signal.signal(one, handler)


@pytest.fixture
def type_in(monkeypatch: pytest.MonkeyPatch) -> TypeIn:
    """Return what runs a line as a shell would, up to what it begins, which is returned."""
    begun: list[object] = []

    def begin(what: object, *_others: object) -> None:
        begun.append(what)
        raise RuntimeError("enough")

    def run(request: Request, scenario: Scenario, *_others: object, **_more: object) -> None:
        begin((request, scenario))

    monkeypatch.setattr(experiment, "run", run)
    monkeypatch.setattr(pipeline, "analyse", begin)
    monkeypatch.setattr(loop, "run", lambda _study, asked, _displays: begin(asked))

    def type_in(line: str) -> object:
        typed, *words = shlex.split(line)
        assert typed == "./invokew"
        monkeypatch.setattr(sys, "argv", ["invokew", *words])
        with pytest.raises(SystemExit) as end:
            program.main()
        assert end.value.code == 4, line  # it was begun
        return begun.pop()

    return type_in
