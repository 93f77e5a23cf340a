"""A copy of the project, in which commands of the pages are typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.parts.marks import files
from tests.pages import PAGES, copied


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = copied(tmp_path_factory.mktemp("copy") / "project")
    for page in PAGES:
        for name, text in files(page.read_text(encoding="utf-8")).items():
            (to / name).write_text(text, encoding="utf-8")
    return to
