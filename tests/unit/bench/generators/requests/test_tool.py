"""What is read of the times that the client of requests leaves, and what it is asked for."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bench.generators import Exchange, RawDataError, exchanger_of
from bench.generators.requests.tool import COLUMNS, PYTHON
from testbed.scenario import Scenario
from testbed.scenario.addressing import FIRST_PORT, Addressing
from tests.unit.bench.builders import scenario

HEAD = '# {"scheduling": "fifo"}\n' + ",".join(COLUMNS) + "\n"
LINES = (
    "0.0000000,0.0000100,0.0002000,answered,0.000150",
    "0.1000000,0.1000000,,lost,",
    "0.2000000,0.2000000,0.9000000,late,",
    "0.3000000,0.3400000,,ECONNREFUSED,",
)


def asking(**fields: object) -> Scenario:
    return scenario(requests=[{"from": "B", "to": "C", "rate": 10, **fields}])


TOOL = exchanger_of(asking(), asking().requests[0])


def written(file: Path, text: str) -> Path:
    file.write_bytes(gzip.compress(text.encode()))
    return file


def test_every_exchange_is_read_with_what_became_of_it(tmp_path: Path) -> None:
    file = written(tmp_path / "out", HEAD + "\n".join(LINES) + "\n")
    assert TOOL.read_exchanges(file, 4) == [
        Exchange(0.0, 0.00001, 0.0002, "answered", 0.00015),
        Exchange(0.1, 0.1, None, "lost", None),
        Exchange(0.2, 0.2, 0.9, "late", None),
        Exchange(0.3, 0.34, None, "ECONNREFUSED", None),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not the times of requests; it begins ''"),
        ("iperf3: error", "not the times of requests; it begins 'iperf3: error'"),
        ("# {}\ndue,sent\n", "the columns are not due_s,sent_s"),
        ("# {}\n", "the columns are not due_s,sent_s"),
        (HEAD, "0 exchanges of 2"),
        (HEAD + LINES[0] + "\n", "1 exchanges of 2"),
        (HEAD + "\n".join(LINES[:3]), "3 exchanges of 2"),
        (HEAD + LINES[1] + "\n" + LINES[0], "not in the order in which they were due"),
        (HEAD + LINES[0] + "\n" + LINES[0], "not in the order in which they were due"),
        (HEAD + "0,0,0,answered", "not the times of requests: not enough values"),
        (HEAD + "0,0,0,answered,,,", "not the times of requests: too many values"),
        (HEAD + "x,0,0,answered,", "not the times of requests: could not convert"),
        (HEAD + "nan,0,0,answered,", "a time that is none"),
        (HEAD + "0,inf,,lost,", "a time that is none"),
        (HEAD + "-1,0,,lost,", "a time that is none"),
        (HEAD + "0,0,0.1,answered,-1", "a time that is none"),
        (HEAD + "0.2,0.1,,lost,", "before it was due"),
        (HEAD + "0.1,0.2,0.15,answered,", "an answer before its request"),
        (HEAD + "0,0,,answered,", "'answered' is not what became of it"),
        (HEAD + "0,0,0.1,lost,", "'lost' is not what became of it"),
        (HEAD + "0,0,,,", "'' is not what became of it"),
        (HEAD + "0,0,,a\x1b[0m,", "is not what became of it"),
        (HEAD + "0,0,,\u00e9,", "no plain text"),
    ],
)
def test_what_holds_no_measurement_says_why(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(RawDataError) as caught:
        TOOL.read_exchanges(written(tmp_path / "out", text), 2)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"no gzip", "not a file of gzip"),
        (gzip.compress((HEAD + "\n".join(LINES)).encode(), mtime=0)[:-20], "it is cut off"),
        (gzip.compress((HEAD + "\n".join(LINES)).encode(), mtime=0)[:12], "it is cut off"),
    ],
)
def test_a_broken_file_says_why(content: bytes, words: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(content)
    with pytest.raises(RawDataError, match=words):
        TOOL.read_exchanges(tmp_path / "out", 4)


def test_a_file_that_is_missing_says_so(tmp_path: Path) -> None:
    with pytest.raises(RawDataError, match="No such file"):
        TOOL.read_exchanges(tmp_path / "none", 4)


def test_both_ends_are_told_the_same(tmp_path: Path) -> None:
    of = asking(protocol="udp", size=100, answer=200, duration=3)
    addressing, requests = Addressing(of), of.requests[0]
    server = TOOL.receiver(addressing, requests)
    client = TOOL.sender(addressing, requests, "172.16.2.2")
    assert server[:3] == client[:3] == [PYTHON, "-IS", "-c"]
    answering, asked = json.loads(server[-1]), json.loads(client[-1])
    # After the ports of all traffic: two flows and a disturbance.
    assert answering == {
        "protocol": "udp", "port": FIRST_PORT + 3, "size": 100, "answer": 200, "connections": "kept",
        "congestion": "cubic",
        "served": False,
    }  # fmt: skip
    assert asked == {**answering, "rate": 10, "count": 30, "patience": 5, "address": "172.16.2.2"}


def test_what_goes_wrong_is_the_last_word_on_standard_error(tmp_path: Path) -> None:
    (tmp_path / "errors").write_text("\nTraceback\nOSError: no room\n")
    assert TOOL.complaint(tmp_path / "out", tmp_path / "errors") == "OSError: no room"
    (tmp_path / "errors").write_text("\n")
    assert TOOL.complaint(tmp_path / "out", tmp_path / "errors") is None


def test_the_server_writes_something_else_than_the_client() -> None:
    assert (TOOL.suffix_of("sender"), TOOL.suffix_of("receiver")) == ("csv.gz", "json")
