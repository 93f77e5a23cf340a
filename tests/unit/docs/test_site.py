"""The site is made of the pages without a warning, and every link within it leads somewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlparse

import pytest
from sphinx.util.tags import Tags

from bench.cli.table import VERBS
from bench.console.statuses import MEANINGS
from docs.parts import figures
from docs.parts import site as parts
from testbed.scenario import render_schema
from tests import once
from tests.pages import PAGES
from tests.paths import ROOT

pytestmark = pytest.mark.timeout(330)  # whichever comes first builds the site


@pytest.fixture(scope="module")
def known(site: Path) -> dict[Path, Page]:
    """Return all pages of the site, read."""
    return {file: Page(file) for file in sorted(site.rglob("*.html")) if "_static" not in file.parts}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site once for all these tests; its figures are drawn by ``./invokew docs`` alone."""
    return once.made(tmp_path_factory, "site", _build)


def _build(to: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-c", "docs", ".", str(to)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


class Page(HTMLParser):
    """What a page links to, what can be linked to on it, and its words."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.words: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.anchors.add(found.get("id") or "")
        for name in ("href", "src"):
            if found.get(name):
                self.links.append(str(found[name]))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def test_links_within_the_site_lead_to_pages_and_headings_that_exist(
    site: Path, known: dict[Path, Page]
) -> None:
    assert len(known) >= len(PAGES)
    for file, page in known.items():
        for link in page.links:
            target = urlparse(link)
            if target.scheme or target.netloc:
                continue
            found = (file.parent / unquote(target.path)).resolve() if target.path else file
            assert found.is_file(), f"{file.name}: {link}"
            assert found.is_relative_to(site), f"{file.name}: {link} leads out of the site"
            if target.fragment and found in known:
                assert unquote(target.fragment) in known[found].anchors, f"{file.name}: {link}"


def test_every_page_is_on_it_and_is_found_from_the_first(site: Path, known: dict[Path, Page]) -> None:
    expected = {site / page.relative_to(ROOT).with_suffix(".html") for page in PAGES}
    assert expected <= known.keys()
    first = site / "docs" / "index.html"
    linked = {(first.parent / urlparse(link).path).resolve() for link in known[first].links}
    assert expected <= linked | {first}
    assert "docs/index.html" in (site / "index.html").read_text(encoding="utf-8")


def test_the_reference_has_every_verb_option_field_and_status(site: Path, known: dict[Path, Page]) -> None:
    reference = {name: known[site / "docs" / "reference" / f"{name}.html"] for name in NAMES}
    commands = reference["commands"].text
    for verb in VERBS.values():
        assert verb.name.replace(".", "-") in reference["commands"].anchors
        assert all(option.flag in commands for option in verb.options if not option.place)
    assert "<class" not in commands
    fields = reference["scenario-fields"].text
    schema = json.loads(render_schema())
    for part in (schema, *schema["$defs"].values()):
        for field, of in part.get("properties", {}).items():
            assert f" {field} " in fields
            assert " ".join(of.get("description", "").split()) in fields
    for status, words in MEANINGS.items():
        assert f"{status} {words.replace('`', ' ').split()[0]}" in reference["exit-statuses"].text


NAMES = ("commands", "scenario-fields", "exit-statuses")


def test_blocks_of_commands_are_blocks(known: dict[Path, Page]) -> None:
    assert [str(file) for file, page in known.items() if any("```" in word for word in page.words)] == []


def test_nothing_is_loaded_from_elsewhere(known: dict[Path, Page]) -> None:
    for file in known:
        text = file.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]*\ssrc=\"(?:https?:)?//", text), file
        assert not re.findall(r"<link[^>]*stylesheet[^>]*href=\"(?:https?:)?//", text), file


def test_figures_of_all_pages_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: set[str] = set()
    monkeypatch.setattr(figures, "draw", lambda pages: drawn.update(figures.asked_for(pages)))
    parts.draw(SimpleNamespace(tags=Tags([parts.DRAWN])))  # type: ignore[arg-type] # all that it asks of Sphinx
    there = {key for page in PAGES for key in figures.asked_for(page.read_text(encoding="utf-8"))}
    assert drawn == there
    assert "services-services" in there
