"""The pages in a browser: what is seen, found and read there, by mouse and by keyboard alone."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from bench.cli.verbs import experiments
from bench.pipeline import analyse
from bench.recording.directory import Recording
from bench.studies.nightly import nightly
from bench.studies.nightly import trend as trends
from bench.studies.nightly.findings import Acknowledgements
from tests.paths import ROOT
from tests.unit.bench.presentation import pages
from tests.unit.bench.presentation.browser import Browser
from tests.unit.bench.studies.nightly import builders

pytestmark = pytest.mark.long(one_in=0)

MOST_BYTES, MOST_MS = 1_500_000, 2000
SAID = re.compile(
    r"(?P<flow>.*), (?P<start>[\d.]+) to (?P<end>[\d.]+) s: (?P<rate>[\d.]+) (?P<unit>[GMk]?bit/s)"
)
UNITS = {"Gbit/s": 1e9, "Mbit/s": 1e6, "kbit/s": 1e3, "bit/s": 1.0}
WIDTHS = [1400, 400]


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """20 flows of 10 minutes."""
    of = pages.large()
    return pages.write(tmp_path_factory.mktemp("long") / "run", of, pages.samples(of))


@pytest.fixture(scope="module")
def short_run(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Three flows of 10 s, twice."""
    of = pages.large(flows=3, seconds=10, repetitions=2)
    return pages.write(tmp_path_factory.mktemp("short") / "run", of, pages.samples(of, repetitions=2))


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reports = tmp_path_factory.mktemp("reports")
    experiments.draw_figures(str(ROOT / "reports" / "reference" / "matrix"), reports, {})
    return reports / "matrix" / "matrix.html"


@pytest.fixture(scope="module")
def trend(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """25 nights, of which one said nothing, and the last five found a flow slower."""
    nights = [
        builders.silent(number)
        if number == 9
        else builders.night(number, builders.scenario(number, C=0.95 if number >= 20 else 1.0))
        for number in range(25)
    ]
    report = nightly.conclude(nights, {}, Acknowledgements(Path("nightly.yaml")))
    page = tmp_path_factory.mktemp("nightly") / "trend.html"
    page.write_text(trends.render(report), encoding="utf-8")
    return page


@pytest.fixture
def every(recorded: Callable[[str], Recording], matrix: Path, trend: Path) -> list[Path]:
    """A page of each kind."""
    violated = recorded("violated")
    analyse(violated)
    return [violated.report_file, matrix, trend]


def received(recording: Recording, said: str, source: str = "receiver") -> pd.Series:
    """Return the sample that a sentence is about, from the file of all samples."""
    match = SAID.match(said)
    assert match is not None, said
    table = pd.read_parquet(recording.samples_file)
    own = table[(table["flow"] == match["flow"]) & (table["source"] == source)]
    (_, row), *more = own[own["start_s"] == float(match["start"])].iterrows()
    assert not more
    assert row["end_s"] == float(match["end"])
    assert f"{float(match['rate']):.6g}" == f"{row['bits_per_second'] / UNITS[match['unit']]:.6g}"
    return row


def test_ten_minutes_of_20_flows_are_one_page_that_is_soon_there(
    browser: Browser, long_run: Recording
) -> None:
    assert long_run.report_file.stat().st_size < MOST_BYTES
    browser.open(long_run.report_file)
    assert float(browser.ask("document.getElementById('chart').dataset.ready")) < MOST_MS
    assert browser.log("browser") == []
    page = long_run.report_file.as_uri()
    assert [url for url in browser.requests() if url != page and not url.startswith("data:")] == []
    assert browser.ask("performance.getEntriesByType('resource').length") == 0


def test_no_page_asks_for_anything(browser: Browser, every: list[Path]) -> None:
    for page in every:
        browser.open(page)
        assert [
            url for url in browser.requests() if url != page.as_uri() and not url.startswith("data:")
        ] == []
        assert browser.log("browser") == []


def test_hovering_says_what_the_file_of_samples_has(browser: Browser, long_run: Recording) -> None:
    chance = random.Random(18)
    browser.open(long_run.report_file)
    browser.ask("document.querySelector('.u-over').scrollIntoView({block: 'center'})")
    upper = browser.box(".u-over")
    said = set()
    for _ in range(20):
        x, y = chance.uniform(upper["left"], upper["right"]), chance.uniform(upper["top"], upper["bottom"])
        browser.mouse("mouseMoved", x, y)
        text = browser.text("said")
        row = received(long_run, text)
        middle = (row["start_s"] + row["end_s"]) / 2
        assert middle == pytest.approx((x - upper["left"]) / upper["width"] * 600, abs=0.6)
        said.add(text)
    assert len(said) == 20


def test_all_of_it_by_keyboard_alone(browser: Browser, long_run: Recording) -> None:
    browser.open(long_run.report_file)
    browser.tab_to("[plots]")
    first = received(long_run, browser.text("said"))
    browser.press("right")
    second = received(long_run, browser.text("said"))
    assert (second["flow"], second["start_s"]) == (first["flow"], first["end_s"])
    browser.press("down", "left")
    third = received(long_run, browser.text("said"))
    assert third["flow"] == "(2) S-2 -> D-2"
    assert third["start_s"] == pytest.approx(first["start_s"], abs=0.01)
    browser.press("d")
    assert browser.text("view") == "168.00 to 252.00 s"
    browser.press("d")
    assert browser.text("view") == "348.00 to 432.00 s"
    browser.press("home", "+")
    assert browser.text("said").endswith("; quiet")
    browser.press("end", "-", "0")
    assert browser.text("view") == "0.00 to 600.00 s"
    browser.press("d", "home")
    browser.tab_to("These samples as a table")
    browser.press("enter")
    browser.wait("document.querySelectorAll('[data-part=rows] tr').length === 200")
    browser.tab_to("[later]")
    browser.press("enter")
    assert browser.text("which").startswith("201 to 400 of ")
    assert browser.log("browser") == []


def test_what_is_low_and_why_is_said(browser: Browser, long_run: Recording) -> None:
    browser.open(long_run.report_file)
    browser.tab_to("[plots]")
    for _ in range(20):
        browser.press("page down")  # a hundred samples
    low = received(long_run, browser.text("said"))
    assert low["bits_per_second"] < 0.3 * 0.955 * 50e6
    assert browser.text("said").endswith("; disturbed by noise, low")
    for _ in range(8):
        browser.press("page up")
    assert browser.text("said").endswith("; quiet, the machine stood still")


def test_flows_sides_and_repetitions_can_be_chosen(browser: Browser, short_run: Recording) -> None:
    browser.open(short_run.report_file)
    browser.tab_to("[none]")
    browser.press("enter")
    browser.tab_to("(1) S-1 -> D-1")
    browser.press("space")
    browser.tab_to("[plots]")
    before = browser.text("said")
    assert received(short_run, before, "receiver")["repetition"] == 0
    browser.press("down")
    assert SAID.match(browser.text("said"))["flow"] == "(1) S-1 -> D-1"  # type: ignore[index]
    browser.tab_to("receiver")
    browser.press("right")
    assert browser.text("said") == ""
    browser.tab_to("[plots]")
    browser.press("home")
    assert received(short_run, browser.text("said"), "sender")["repetition"] == 0
    browser.tab_to("[repetition]")
    browser.press("1")
    browser.wait("document.querySelector('[data-part=repetition]').value === '1'")
    browser.tab_to("[plots]")
    browser.press("home")
    assert received(short_run, browser.text("said"), "sender")["repetition"] == 1


def test_a_drag_zooms_and_a_double_click_ends_it(browser: Browser, short_run: Recording) -> None:
    browser.open(short_run.report_file)
    browser.ask("document.querySelector('.u-over').scrollIntoView({block: 'center'})")
    upper = browser.box(".u-over")
    y, begin = upper["top"] + 50, upper["left"] + 0.2 * upper["width"]
    end = begin + 0.2 * upper["width"]
    browser.mouse("mouseMoved", begin, y)
    browser.mouse("mousePressed", begin, y, pressed=True)
    browser.mouse("mouseMoved", end, y, pressed=True)
    browser.mouse("mouseReleased", end, y)
    shown = [float(word) for word in re.findall(r"[\d.]+", browser.text("view"))]
    assert shown == pytest.approx([2, 4], abs=0.05)
    browser.ask("document.querySelector('.u-over').dispatchEvent(new MouseEvent('dblclick'))")
    assert browser.text("view") == "0.00 to 10.00 s"


def test_tables_are_sorted_and_copied(browser: Browser, long_run: Recording) -> None:
    browser.open(long_run.report_file)
    origin = {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.command("Browser.grantPermissions", origin)
    flows = "[...document.querySelector('table').querySelectorAll('tbody th')].map((cell) => cell.innerText)"
    assert browser.ask(flows)[0] == "(1) S-1 -> D-1"
    browser.tab_to("mean")
    browser.press("enter")
    browser.press("enter")
    assert browser.ask(flows)[:3] == ["noise (disturbance)", "more noise (disturbance)", "(20) S-20 -> D-20"]
    browser.tab_to("copy as TSV")
    browser.press("enter")
    browser.wait("[...document.querySelectorAll('.copy')].some((b) => b.textContent === 'copied')")
    copied = browser.driver.execute_async_script(
        "const done = arguments[0]; navigator.clipboard.readText().then(done, (e) => done('' + e))"
    )
    lines = [line.split("\t") for line in copied.splitlines()]
    assert lines[0][:5] == ["flow", "phase", "mean", "95 % of the mean", "of expected"]
    assert {len(line) for line in lines} == {13}
    assert len(lines) == 1 + 20 * 3 + 2


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_bars_anybody(browser: Browser, every: list[Path], width: int, dark: bool) -> None:
    for page in every:
        browser.open(page, width, dark)
        browser.ask("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
        assert browser.serious() == []
        assert browser.log("browser") == []


@pytest.mark.parametrize("width", WIDTHS)
def test_everything_is_there_at_every_width(browser: Browser, every: list[Path], width: int) -> None:
    for page in every:
        browser.open(page, width)
        assert browser.ask("document.documentElement.scrollWidth") <= width
        # Each table is scrolled to its end: then its last column is seen, and still its first.
        seen = browser.ask(
            """[...document.querySelectorAll('.wide')].filter((wide) => wide.offsetParent).map((wide) => {
                wide.scrollLeft = 10000;
                const cells = [...wide.querySelector('tr').cells], around = wide.getBoundingClientRect();
                const [first, last] = [cells[0], cells.at(-1)].map((cell) => cell.getBoundingClientRect());
                return first.left >= around.left - 1 && first.right <= last.left + 1
                    && last.right <= innerWidth;
            })"""
        )
        assert len(seen) >= 2
        assert all(seen)


def test_the_first_thing_at_400_pixels_is_the_verdict(browser: Browser, every: list[Path]) -> None:
    report, matrix, trend = every
    browser.open(report, 400)
    assert str(browser.ask("document.body.innerText")).startswith("✗ violated")
    assert browser.box(".outcome")["bottom"] < 100
    assert browser.box(".verdict")["top"] < 250
    browser.open(matrix, 400)
    assert "✗ violated" in str(browser.ask("document.querySelector('table').innerText"))
    assert browser.box("table")["top"] < 150
    assert browser.box("table")["right"] <= 400
    browser.open(trend, 400)
    assert str(browser.ask("document.body.innerText")).startswith("✗ worse")


def test_every_column_is_seen_at_1400_pixels(browser: Browser, every: list[Path]) -> None:
    for page in every:
        browser.open(page, 1400)
        assert browser.ask(
            """[...document.querySelectorAll('.wide')].filter((wide) => wide.offsetParent).every((wide) =>
                wide.scrollWidth <= wide.clientWidth && wide.getBoundingClientRect().right <= innerWidth)"""
        )
    browser.open(every[1], 1400)
    assert "node" in browser.ask("[...document.querySelectorAll('table')].at(-1).rows[0].innerText")


def test_the_trend_draws_each_number_with_axes_and_dates_each_change(browser: Browser, trend: Path) -> None:
    browser.open(trend)
    data = browser.ask("JSON.parse(document.getElementById('trend').textContent)")
    charts = browser.ask(
        """[...document.querySelectorAll('.series')].map((one) => ({
            name: one.querySelector('svg').getAttribute('aria-label'),
            folded: !!one.closest('details'),
            pieces: one.querySelector('.values').getAttribute('d').match(/M/g).length,
            marks: one.querySelectorAll('.change').length,
            texts: [...one.querySelectorAll('text')].map((text) => text.textContent),
        }))"""
    )
    assert len(charts) == len(data["metrics"])
    assert {chart["pieces"] for chart in charts} == {2}  # a night has nothing
    assert all({"2026-11-01", "2026-11-25"} < set(chart["texts"]) for chart in charts)
    assert all(len(chart["texts"]) >= 3 + 2 for chart in charts)  # days, and at least two numbers of the rate
    changed = [chart for chart in charts if chart["marks"]]
    assert [chart["name"] for chart in changed] == [
        "small: A -> C, quiet, night by night",
        "small: A -> C, disturbed, night by night",
    ]
    assert all(chart["texts"][-1] == "2026-11-21 ccccccc" for chart in changed)
    assert [chart["folded"] for chart in charts].index(True) == 4  # what is no flow's rate


def test_no_table_of_the_trend_has_more_than_six_columns(browser: Browser, trend: Path) -> None:
    browser.open(trend)
    columns = browser.ask(
        "[...document.querySelectorAll('table')].map((one) => one.tHead.rows[0].cells.length)"
    )
    assert len(columns) >= 6
    assert max(columns) <= 6
    data = browser.ask("JSON.parse(document.getElementById('trend').textContent)")
    details = "[...document.querySelectorAll('details details table')]"
    shown = browser.ask(f"{details}.map((one) => one.tHead.rows[0].cells.length - 1).reduce((a, b) => a + b)")
    assert shown == len(data["metrics"])


def test_nights_are_sorted_by_their_time(browser: Browser, trend: Path) -> None:
    browser.open(trend)
    nights = "[...document.querySelectorAll('[aria-label=Nights] tbody tr')]"
    assert browser.ask(f"{nights}[0].cells[0].innerText") == "2026-11-25 02:17"
    assert browser.ask(f"{nights}[0].cells[1].innerText") == "✓ held ✗ worse"
    browser.tab_to("night")
    browser.press("enter")
    assert browser.ask(f"{nights}[0].cells[0].innerText") == "2026-11-01 02:17"


def test_on_paper_and_without_scripts_there_is_the_figure(browser: Browser, long_run: Recording) -> None:
    browser.open(long_run.report_file)
    # The width that an IHDR says (PNG, section 11.2.2), and none of the chart's.
    width = int.from_bytes(long_run.figures_directory.joinpath("throughput.png").read_bytes()[16:20])
    pictures = set(re.findall(rb"/Subtype /Image\s+/Width (\d+)", browser.pdf(dark=True)))
    assert pictures == {str(width).encode()}
    browser.media(screen=False, dark=True)
    assert browser.ask("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.box("figure.charted img")["height"] > 200
    assert browser.box("#chart")["height"] == 0
    browser.open(long_run.report_file, scripts=False)
    browser.command("Emulation.setScriptExecutionDisabled", {"value": False})
    assert browser.box("figure.charted img")["height"] > 200
    assert browser.box("#chart")["height"] == 0


def test_what_a_page_links_to_is_there(browser: Browser, long_run: Recording, matrix: Path) -> None:
    for page in (long_run.report_file, matrix):
        browser.open(page)
        links = browser.ask("[...document.querySelectorAll('a')].map((a) => a.getAttribute('href'))")
        assert len(links) >= 3
        assert all((page.parent / link).exists() for link in links)
        for kind in ("summary.json", "samples.parquet", ".pdf"):
            assert any(link.endswith(kind) for link in links)
