"""How many requests each pod of a service has seen: by what its server wrote, and told with the others."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from bench.analysis import exchanges, summary, verdict
from bench.presentation import tables
from bench.recording.directory import Recording
from bench.recording.records import Repetition, Transfer
from tests.unit.bench.builders import record, scenario

OF = scenario(
    services={"web": {"cluster": "a", "pods": ["C", "D"]}},
    flows=[],
    disturbances=[],
    requests=[{"from": "A", "to": "web", "rate": 1, "duration": 2, "connections": "new"}],
)
LABEL = "A -> web"


def recorded(directory: Path, *counts: dict[str, str]) -> exchanges.Readings:
    """Return what is read of repetitions in which servers wrote this, by pod."""
    recording = Recording(directory)
    rows = "".join(f"{due},{due},{due}.001,answered,\n" for due in (0, 1))
    text = f"# {{}}\ndue_s,sent_s,answered_s,status,round_trip_s\n{rows}"
    for number, said in enumerate(counts):
        recording.repetition_directory(number).mkdir(parents=True)
        sender = recording.raw_file(number, "a-web", "sender", "csv.gz")
        sender.write_bytes(gzip.compress(text.encode()))
        for pod, what in said.items():
            recording.raw_file(number, f"a-web.{pod.lower()}", "receiver").write_text(what)
    transfers = {LABEL: Transfer(slug="a-web", started_s=0)}
    repetitions = [Repetition(transfers=transfers, cpu=[]) for _ in counts]
    return exchanges.read(recording, OF, record(OF).model_copy(update={"repetitions": repetitions}))


def seen(count: int) -> str:
    return json.dumps({"requests": count, "connections": count})


def test_of_all_repetitions_together_each_pods_are_told(tmp_path: Path) -> None:
    found = recorded(tmp_path, {"C": seen(2), "D": seen(0)}, {"C": seen(1), "D": seen(1)})
    assert found.endpoints == {LABEL: {"C": 3, "D": 1}}
    (told,) = summary.requests_of(OF, (), {}, found.endpoints)
    assert told.model_dump()["endpoints"] == {"C": 3, "D": 1}
    of = summary.build(OF, record(OF), [], verdict.Verdict("invalid", [], []), (), [told])
    stream = io.StringIO()
    Console(file=stream, width=80).print(*tables.paths(of))
    assert stream.getvalue() == "A -> web: requests that each pod has seen: C 3, D 1\n"


def test_what_goes_to_a_pod_says_nothing_of_it() -> None:
    (told,) = summary.requests_of(scenario(requests=[{"from": "A", "to": "C", "rate": 1}]), (), {})
    assert "endpoints" not in told.model_dump()


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"C": seen(2)}, "a-web.d.receiver.json: "),
        (
            {"C": seen(2), "D": "{}"},
            "a-web.d.receiver.json: not the counts of a server: KeyError('requests')",
        ),
        ({"C": "", "D": seen(2)}, "a-web.c.receiver.json: not the counts of a server: JSONDecodeError("),
    ],
)
def test_a_server_that_says_nothing_makes_the_run_invalid(
    tmp_path: Path, said: dict[str, str], words: str
) -> None:
    found = recorded(tmp_path, said)
    assert found.endpoints == {}
    assert any(words in str(fault) for fault in found.faults), found.faults
