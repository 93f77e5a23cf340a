from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from bench.pipeline import analyse
from bench.recording.directory import Recording

Recorded = Callable[[str], Recording]
EVIL = '--><script>alert("x")</script>&amp;{{ 1 }}'


class Elements(HTMLParser):
    """Collects what a browser would see of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.references: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.references += [
            value or ""
            for name, value in attrs
            if name in ("src", "href", "xlink:href", "srcset", "data", "action")
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def page(recording: Recording) -> tuple[str, Elements]:
    analyse(recording)
    html = recording.report_file.read_text(encoding="utf-8")
    elements = Elements()
    elements.feed(html)
    elements.close()
    return html, elements


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_what_was_foreseen_and_which_run_led_to_this_one(recorded: Recorded) -> None:
    recording = recorded("held")
    before = recording.run_file.read_text()
    _, seen = page(recording)
    assert "foreseen" not in seen.text
    assert "It follows" not in seen.text
    assert not {"retry_of", "foreseen"} & set(re.findall(r'"(\w+)":', recording.summary_file.read_text()))

    data = json.loads(before)
    foreseen = [
        {"scale": 1.0, "margin": 1.234, "can_tell": False},
        {"scale": 0.5, "margin": 3.5, "can_tell": True},
    ]
    data["calibrations"] = [{**data["calibration"], "foreseen": foreseen}]
    data["retry_of"] = "20260101T000000Z-first"
    recording.run_file.write_text(json.dumps(data))
    _, seen = page(recording)
    assert (
        "Before the traffic it was foreseen that this machine cannot tell: beside all that disturbs there is "
        "1.23 times what the flows need; at half of every rate it can."
    ) in seen.text
    assert "It follows 20260101T000000Z-first, which proved nothing because of the machine." in seen.text
    summary = json.loads(recording.summary_file.read_text())
    assert summary["retry_of"] == "20260101T000000Z-first"
    assert summary["calibration"]["foreseen"] == foreseen


@pytest.mark.usefixtures("undrawn")
def test_the_page_says_what_made_delays_between_zones_and_how_late_it_was(recorded: Recorded) -> None:
    recording = recorded("violated")
    data = json.loads(recording.run_file.read_text())
    link = {"zone": "north", "delay_s": 0.005}
    counts = {"frames": 12345, "late": 1, "worst_s": 0.0031, "dropped": 0, "lateness": [0, 12345]}
    data["repetitions"][0]["delayed"] = [
        {**link, "out": True, "means": "relay", **counts},
        {**link, "out": False, "means": "netem"},
    ]
    recording.run_file.write_text(json.dumps(data))
    html, _ = page(recording)
    assert "Delays between zones" in html
    rows = [
        re.findall(r"<t[hd][^>]*>([^<]*)</t[hd]>", line)
        for line in html.splitlines()
        if "zone north<" in line
    ]
    assert rows == [
        ["repetition-0, out of zone north", "relay", "5", "12,345", "0.0\xa0%", "0.002", "3.1", "0"],
        ["repetition-0, into zone north", "netem", "5", *"–––––"],
    ]


def test_the_page_says_what_was_promised_and_what_was_found(recorded: Recorded) -> None:
    _, elements = page(recorded("violated"))
    order = [
        "✗ violated",
        "48.98 % of the expected 57.3 Mbit/s",
        "Next, to find out whether neighbours took it",
        "--enforcement node",
        "Promised and observed",
        "57.295",
        "28.062",
        "How it was judged",
        "The machine",
        "./invokew figures 20261120T091416Z-violated-pod",
        "--scenario 20261120T091416Z-violated-pod\n",
        "guarantee: 60M",
        "iperf 3.12",
    ]
    places = [elements.text.find(text) for text in order]
    assert -1 not in places
    assert places == sorted(places)


def test_the_mark_is_at_the_number_that_decided(recorded: Recorded) -> None:
    html, _ = page(recorded("violated"))
    marked = re.findall(r'<td class="(met|missed)">([^<]*)</td>', html)
    plain = [(kind, text.replace("\N{NO-BREAK SPACE}", " ")) for kind, text in marked]
    assert plain[:4] == [
        ("met", "100.17 % ✓"),  # the mean of the first flow, quiet
        ("missed", "94.7 % ✗"),  # the share of its samples
        ("missed", "96.36 % ✗"),
        ("missed", "72.7 % ✗"),
    ]
    assert {(kind, text[-1]) for kind, text in plain} == {("met", "✓"), ("missed", "✗")}


def test_nothing_is_loaded_from_anywhere(recorded: Recorded) -> None:
    recording = recorded("held")
    html, elements = page(recording)
    assert not {"iframe", "object", "embed"} & set(elements.tags)
    for reference in elements.references:
        assert reference.startswith("data:") or (recording.directory / reference).is_file()
    assert "default-src 'none'" in html
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)


@pytest.mark.usefixtures("undrawn")
def test_names_are_text_and_nothing_else(recorded: Recorded) -> None:
    recording = recorded("held")
    for file in (recording.scenario_file, recording.run_file):
        text = file.read_text(encoding="utf-8")
        quoted = json.dumps(EVIL) if file == recording.run_file else "'" + EVIL + "'"
        text = text.replace('"(1) A-1 -> A-4"', quoted).replace("name: (1) A-1 -> A-4", f"name: {quoted}")
        assert EVIL in text or json.dumps(EVIL) in text
        file.write_text(text, encoding="utf-8")
    recording.environment_file.write_text(json.dumps({EVIL: {EVIL: [EVIL, {"a": EVIL}]}}))
    plain = page(recorded("violated"))[1].tags.count("script")
    html, elements = page(recording)
    assert elements.tags.count("script") == html.count("<script") == plain
    assert elements.text.count(EVIL) >= 5


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (
            '{"host": {"cpu": ["a", "b"], "empty": {}, "none": null, "root": false}}',
            ["a, b", "root", "False"],
        ),
        ('{"tc": "line one\\nline two"}', ["line one\nline two"]),
        ('{"links": [{"name": "eth0", "deep": [{"x": [1, 2, 3, 4, 5]}]}]}', ["eth0", "1\n2\n3\n4\n5"]),
        ("[1, 2]", ["1, 2"]),
        ("not json", ["not readable"]),
    ],
)
def test_any_environment_can_be_shown(recorded: Recorded, content: str, shown: list[str]) -> None:
    recording = recorded("violated")
    recording.environment_file.write_text(content)
    _, elements = page(recording)
    for text in shown:
        assert text in elements.text


@pytest.mark.usefixtures("undrawn")
def test_a_missing_environment_is_said(recorded: Recorded) -> None:
    recording = recorded("violated")
    recording.environment_file.unlink()
    assert "No such file" in page(recording)[1].text
