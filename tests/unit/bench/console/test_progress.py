import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from bench.console import progress
from bench.console.progress import Display, format_bits
from testbed.scenario import load
from tests.paths import ROOT

SCENARIO = load(ROOT / "scenarios" / "kubernetes.yaml")


def test_plain_lines_where_there_is_no_terminal() -> None:
    stream = io.StringIO()
    with Display(Console(file=stream), "kubernetes").traffic(SCENARIO, 0) as on_rates:
        for tick in range(1, 7):
            on_rates(tick * 0.5, {"(1) A-1 -> A-4": 955e6, "disturbance": 12.4e9})
    lines = stream.getvalue().splitlines()
    assert lines[0] == "kubernetes: traffic for 10 s"
    assert lines[1].startswith("   2.0 s  (1) A-1 -> A-4: 955 Mbit/s  (2) A-2 -> A-3: not seen meanwhile")
    assert "disturbance: 12.40 Gbit/s" in lines[1]
    assert len(lines) == 2  # one line every two seconds
    assert "\x1b" not in stream.getvalue()


def test_what_comes_to_one_pod_is_shown_as_one() -> None:
    scenario = load(ROOT / "scenarios" / "promise" / "rates.yaml")
    stream = io.StringIO()
    with Display(Console(file=stream), "rates").traffic(scenario, 0) as on_rates:
        on_rates(2.0, {"all to remote": 1.36e9, "same node": 97e6})
    assert stream.getvalue().splitlines()[1] == "   2.0 s  all to remote: 1.36 Gbit/s  same node: 97 Mbit/s"


def test_a_terminal_shows_rates_in_place() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with Display(console, "kubernetes").traffic(SCENARIO, 0) as on_rates:
        on_rates(5.0, {"(1) A-1 -> A-4": 955e6})
    assert "955 Mbit/s" in stream.getvalue()


def test_rates_for_people() -> None:
    assert format_bits(0) == "0 Mbit/s"
    assert format_bits(238_700) == "239 kbit/s"
    assert format_bits(953_000_000) == "953 Mbit/s"
    assert format_bits(3_820_000_000) == "3.82 Gbit/s"


def test_what_takes_long_says_how_far_it_is_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    clock = iter(range(0, 1000, 10))
    ticking = SimpleNamespace(monotonic=lambda: float(next(clock)))
    monkeypatch.setattr(progress, "time", ticking)
    with progress.counted("made again") as counted:
        for done in (0, 2, 4, 6, 8):
            counted(done, 8)
    out, told = capsys.readouterr()
    assert out == ""
    assert told.splitlines() == [
        "made again: 0 of 8 runs",
        "made again: 2 of 8 runs, about 1 min left",
        "made again: 4 of 8 runs, about 30 s left",
        "made again: 6 of 8 runs, about 15 s left",
    ]
