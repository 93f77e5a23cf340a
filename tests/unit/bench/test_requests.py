"""A recording with requests, from its raw files to summary, figure, page and table."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console

from bench import pipeline
from bench.analysis import summary
from bench.analysis.exchanges import COLUMNS
from bench.generators import idle_sample
from bench.presentation import tables
from bench.presentation.figures import latency
from bench.presentation.figures.sheet import FORMATS
from bench.presentation.figures.style import files
from bench.recording import archive, atomic, directory
from bench.recording.directory import IDLE, Recording
from bench.recording.records import slugs
from bench.studies.matrix import page
from bench.studies.matrix.index import Matrix, MatrixCase
from testbed.scenario import Requests, Scenario, render_yaml
from tests.unit.bench.builders import record, scenario

FAST, SLOW = 0.0004, 0.012
HEAD = '# {"scheduling": "fifo"}\ndue_s,sent_s,answered_s,status,round_trip_s\n'


def asking() -> Scenario:
    """Two kinds of requests and nothing else, but for what disturbs them."""
    return scenario(
        flows=[],
        requests=[
            {"name": "promised", "from": "B", "to": "C", "rate": 50, "latency": 0.01, "lost": 0},
            {"name": "<b>other</b>", "from": "D", "to": "A", "rate": 20, "protocol": "udp"},
        ],
        title="Requests alone",
    )


def lines(requests: Requests, slow: tuple[float, float] = (0, 0), lost: int = 0) -> str:
    """What the client writes: all are fast but those due in a stretch, and every so many are lost."""
    rows = []
    for number in range(requests.count):
        due = number / requests.rate
        took = SLOW if slow[0] <= due < slow[1] else FAST
        gone = bool(lost) and number % lost == 1
        answered, status = ("", "lost") if gone else (f"{due + took:.7f}", "answered")
        rows.append(f"{due:.7f},{due + 0.00001:.7f},{answered},{status},{'' if gone else '0.000200'}\n")
    return HEAD + "".join(rows)


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(text.encode(), mtime=0))


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    of = asking()
    made = Recording(tmp_path / "run")
    done = record(of, calibration=None)
    for kind, slow, lost in zip(of.requests, ((0, 0), (3, 6)), (0, 10), strict=True):
        slug = done.repetitions[0].transfers[kind.label].slug
        write(made.raw_file(0, slug, "sender", "csv.gz"), lines(kind, slow, lost))
    names = slugs(one.label for one in of.requests)
    for moment in IDLE.values():
        for kind in map(idle_sample, of.requests):
            for role in ("sender", "echo"):
                file = made.raw_directory / moment / f"{names[kind.label]}.{role}.csv.gz"
                write(file, lines(kind, slow=(0, 0.1)).replace("0.000200", "0.000300"))
    disturbance = done.repetitions[0].transfers["noise"]
    disturbance.error = "there is no such file here"
    made.scenario_file.write_text(render_yaml(of))
    atomic.write_json(made.environment_file, {"host": {}})
    atomic.write_model(made.run_file, done)
    return made


def analysed(recording: Recording) -> summary.Summary:
    return pipeline.analyse(recording)


@pytest.mark.usefixtures("undrawn")
def test_all_is_made_of_what_the_client_wrote(recording: Recording) -> None:
    result = analysed(recording)
    assert result.model_dump() == summary.read(recording.summary_file).model_dump()
    promised, other = result.requests
    assert (promised.rate, promised.latency_s, promised.lost_share) == (50, 0.01, 0)
    assert {name: (phase.exchanges, phase.lost, phase.met) for name, phase in promised.phases.items()} == {
        "quiet": (300, 0, True),
        "disturbed": (150, 0, True),
    }
    assert other.guarantee_bps is None
    disturbed = other.phases["disturbed"]
    assert (disturbed.exchanges, disturbed.lost, disturbed.met) == (60, 6, None)
    assert (disturbed.p50_s, disturbed.p90_s, disturbed.p99_s) == (SLOW, SLOW, None)
    assert disturbed.max_s == SLOW
    assert [path.moment for path in promised.idle] == ["before", "after"]
    assert {path.exchange_s for path in promised.idle} == {FAST}
    assert promised.idle[0].echo_s == pytest.approx(FAST - 0.00001)
    assert promised.idle[0].overhead_s == pytest.approx(0.00001)
    assert promised.idle[0].round_trip_s == 0.0003
    # The disturbance has no output here; else it would have held.
    assert {cause.flow for cause in result.causes} == {"noise", None}
    assert {cause.kind for cause in result.causes} == {"measurement"}


@pytest.mark.usefixtures("undrawn")
def test_the_exchanges_are_a_table_of_their_own(recording: Recording) -> None:
    analysed(recording)
    found = pd.read_parquet(recording.exchanges_file)
    assert list(found.columns) == list(COLUMNS)
    assert len(found) == 500 + 200
    assert found["status"].value_counts().to_dict() == {"answered": 680, "lost": 20}
    assert found["phase"].unique().tolist() == ["warm-up", "quiet", "disturbed"]


@pytest.mark.long(one_in=0)
def test_figures_and_page_are_made_and_made_again(recording: Recording) -> None:
    analysed(recording)
    files = [file for file in recording.directory.rglob("*") if file.is_file()]
    names = {file.name for file in files if file.parent == recording.figures_directory}
    assert names == {f"{name}.{kind}" for name in ("latency", "throughput") for kind in FORMATS}
    text = recording.report_file.read_text()
    assert "How long requests took" in text
    assert latency.TITLE in text
    assert "<b>other</b>" not in text
    idle_path = "on the idle path 0.4 ms before the traffic (ping 0.39 ms + 0.01 ms)"
    assert f"&lt;b&gt;other&lt;/b&gt;: {idle_path}" in text
    assert '<a href="exchanges.parquet">' in text
    assert "Promised and observed" in text  # of the disturbance

    before = {file: file.read_bytes() for file in files}
    analysed(recording)
    assert {file: file.read_bytes() for file in files} == before


@pytest.mark.long(one_in=0)
def test_requests_alone_have_one_figure(recording: Recording) -> None:
    alone = recording.scenario().model_copy(update={"disturbances": []})
    recording.scenario_file.write_text(render_yaml(alone))
    analysed(recording)
    names = {file.name for file in recording.figures_directory.iterdir()}
    assert names == {f"latency.{kind}" for kind in FORMATS}
    assert "Promised and observed" not in recording.report_file.read_text()


@pytest.mark.usefixtures("undrawn")
def test_a_terminal_of_80_columns_shows_it(recording: Recording) -> None:
    stream = io.StringIO()
    tables.show(Console(file=stream, width=80), analysed(recording), recording)
    text = stream.getvalue().splitlines()
    begin = next(n for n, line in enumerate(text) if "from due to answered in ms" in line)
    shown = text[begin : begin + 6]
    assert all(len(line) <= 80 for line in shown)
    words = [line.split() for line in shown]
    assert words[1] == ["requests", "/s", "phase", "p50", "p90", "p99", "p99.9", "max", "late", "p99", "lost"]
    assert words[2] == ["promised", "50", "quiet", *["0.4"] * 5, "0.01", "0", "held"]
    assert words[5] == ["disturbed", "12", "12", "lost", "lost", "12", "0.01", "6"]


@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda file: file.unlink(), "sender.csv.gz: No such file"),
        (lambda file: file.write_bytes(file.read_bytes()[:-30]), "sender.csv.gz: it is cut off"),
        (lambda file: write(file, HEAD), "sender.csv.gz: 0 exchanges of 500"),
    ],
)
def test_requests_that_cannot_be_read_make_the_run_invalid(
    recording: Recording, spoil: object, words: str
) -> None:
    slug = recording.run_record().repetitions[0].transfers["promised"].slug
    spoil(recording.raw_file(0, slug, "sender", "csv.gz"))  # type: ignore[operator]
    result = analysed(recording)
    assert result.verdict == "invalid"
    (said,) = [reason for reason in result.reasons if words in reason]
    assert said.startswith("promised, repetition-0: raw/repetition-0/")
    assert result.requests[0].phases == {}


@pytest.mark.usefixtures("undrawn")
def test_an_idle_path_that_is_not_known_makes_the_run_invalid(recording: Recording) -> None:
    (recording.raw_directory / IDLE["after"] / "promised.sender.csv.gz").unlink()
    (recording.raw_directory / IDLE["after"] / "b-other-b.echo.csv.gz").unlink()
    result = analysed(recording)
    said = [reason for reason in result.reasons if "the idle path is not known" in reason]
    assert len(said) == 1
    assert said[0].startswith("promised: the idle path is not known: raw/idle-after/promised.sender.csv.gz")
    assert [path.moment for path in result.requests[0].idle] == ["before"]
    # Where nobody answers pings the path is known all the same, but not what the programs add to it.
    assert [path.overhead_s is None for path in result.requests[1].idle] == [False, True]


@pytest.mark.usefixtures("undrawn")
def test_a_summary_without_requests_has_no_word_of_them(recording: Recording) -> None:
    result = analysed(recording)
    assert "requests" in json.loads(summary.render(result))
    assert "requests" not in json.loads(summary.render(result.model_copy(update={"requests": []})))


@pytest.mark.usefixtures("undrawn")
def test_it_is_packed_and_unpacked(recording: Recording, tmp_path: Path) -> None:
    done = recording.run_record()
    atomic.write_model(recording.run_file, done.model_copy(update={"files": directory.digests(recording)}))
    before = analysed(recording)
    archive.pack(recording.directory, tmp_path / "packed")
    unpacked = Recording(archive.unpack(tmp_path / "packed", tmp_path / "unpacked"))
    assert pipeline.analyse(unpacked) == before


@pytest.mark.usefixtures("undrawn")
def test_a_matrix_has_both_percentiles_of_each_enforcement(recording: Recording, tmp_path: Path) -> None:
    result = analysed(recording)
    cells = [
        MatrixCase(scenario="small", enforcement=name, recording=path)
        for name, path in (("pod", "run"), ("node", None))
    ]
    index = Matrix(rows=cells)
    summaries = {("small", "pod"): result}
    shown = page.requests(index, summaries, "small")
    assert shown is not None
    stream = io.StringIO()
    Console(file=stream, width=80).print(shown)
    words = [line.split() for line in stream.getvalue().splitlines()]
    assert ["promised", "quiet", "0.4", "/", "0.4", "-"] in words
    assert ["disturbed", "12", "/", "lost", "-"] in words
    assert ["6", "lost"] in words
    picture = io.BytesIO()
    Image.new("RGB", (2, 2)).save(picture, "PNG")
    html = page.render(tmp_path, index, summaries, picture.getvalue())
    assert "<td>12 / lost, 6 lost</td><td>-</td>" in html
    nothing = {("small", "pod"): result.model_copy(update={"requests": []})}
    assert page.requests(index, nothing, "small") is None
    assert page.rates(index, nothing, "small").row_count == 1


def test_a_line_has_few_points_where_there_are_many_and_all_of_the_last() -> None:
    import numpy as np

    took = np.append(np.linspace(0.001, 1, 99_990), [np.inf] * 10)
    times, shares = latency.exceeding(took)
    assert len(times) < 2000
    assert times[-1] == 1
    assert shares[-1] == pytest.approx(10 / 100_000)
    assert (np.diff(shares) < 0).all()


def test_no_point_of_a_line_is_left_out_when_it_is_drawn() -> None:
    def drawn() -> Figure:
        figure = Figure()
        figure.add_axes((0, 0, 1, 1)).plot(range(1000))
        return figure

    drawn_as = {every: files(drawn, every_point=every)["svg"].count(b"\nL ") for every in (True, False)}
    assert drawn_as[True] >= 999
    assert drawn_as[False] < 100
