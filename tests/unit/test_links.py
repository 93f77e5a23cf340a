"""Every link from a page of the project to one of its files leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.paths import ROOT

PAGES = sorted(
    page
    for place in ("*.md", "docs/**/*.md", "plugin/**/*.md", "playbooks/**/*.md", "tests/**/*.md")
    for page in ROOT.glob(place)
)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)
# [words](target) and ![words](target), the words with brackets of code left out.
LINK = re.compile(r"\]\(([^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|//")


def targets(page: Path) -> list[str]:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    return [target for target in LINK.findall(text) if not ELSEWHERE.match(target)]


def anchor(heading: str) -> str:
    """Return what a heading is linked by, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return {anchor(heading) for heading in re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for target in targets(page):
        path, _, heading = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{target}: no such file"
        assert found.is_relative_to(ROOT), f"{target}: not the project's"
        if heading and found.suffix == ".md":
            assert heading in anchors(found), f"{target}: no such heading"


def test_pictures_of_recordings_are_shown() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in targets(page)
        if target.endswith((".png", ".svg"))
    }
    reference = ROOT / "reports" / "reference"
    assert len(shown) >= 2
    assert {file for kind in ("png", "svg") for file in reference.rglob(f"*.{kind}")} == shown
