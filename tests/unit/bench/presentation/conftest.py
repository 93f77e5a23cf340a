"""Debian's Chromium, driven as a person would: by mouse and keyboard."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.bench.presentation.browser import Browser

PROGRAMS = ("chromium", "chromedriver")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Return a browser without a window; without one here the test is skipped."""
    for module in ("selenium", "axe_selenium_python"):
        pytest.importorskip(module, reason=f"there is no {module}; ./invokew test.long installs it")
    for program in PROGRAMS:
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}; ./invokew test.long installs it in Debian, for root")
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
