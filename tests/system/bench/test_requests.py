"""Timed exchanges on a real path: each is told, the lost ones and those of a server that stands still."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import pytest

from bench import pipeline
from bench.analysis.statistics import percentile
from bench.generators import Exchange, exchanger_of, idle_sample
from bench.measurement import calibration, transfers
from bench.measurement.plan import plan
from bench.recording.directory import Recording
from bench.recording.records import Repetition
from testbed.access.place import Place
from testbed.assembly import assemble
from testbed.scenario import load
from testbed.testbed import Testbed
from tests.paths import ROOT
from tests.system.conftest import all_gone, pid_namespace, sandbox_of
from tests.waiting import PATIENCE

SCENARIOS = ROOT / "scenarios"
RATE = 100
STOPPED, LOSSY = "tcp new", "udp kept"
STOP_SECONDS = 0.6
ONE_IN = 10  # datagrams that a rule on the way drops
KINDS = [(protocol, connections) for protocol in ("tcp", "udp") for connections in ("new", "kept")]


@pytest.fixture(scope="module")
def testbed() -> Iterator[Testbed]:
    asked = [
        f"{{name: {protocol} {connections}, from: A-1, to: A-4, rate: {RATE}, duration: 2, "
        f"protocol: {protocol}, connections: {connections}, size: 100, answer: 1000}}"
        for protocol, connections in KINDS
    ]
    overrides = [f"requests=[{', '.join(asked)}]", "flows=[]", "disturbances=[]"]
    up = assemble(load(SCENARIOS / "contmec.yaml", overrides, scale=0.1), "netns", "cni")
    up.up()
    try:
        yield up
    finally:
        up.down()


def run(testbed: Testbed, directory: Path) -> Repetition:
    planned = plan(testbed, testbed.scenario.transfers, 0.1)
    return transfers.run(planned, directory, lambda _seconds, _rates: None)


def read(testbed: Testbed, done: Repetition, directory: Path) -> dict[str, list[Exchange]]:
    found = {}
    for requests in testbed.scenario.requests:
        transfer = done.transfers[requests.label]
        assert transfer.error is None, transfer.error
        file = directory / f"{transfer.slug}.sender.csv.gz"
        found[requests.label] = exchanger_of(testbed.scenario, requests).read_exchanges(file, requests.count)
        said = json.loads((directory / f"{transfer.slug}.receiver.json").read_text())
        answered = sum(one.answered_s is not None for one in found[requests.label])
        assert said["requests"] == answered
    return found


def server_of(receiver: Place, port: int) -> str:
    """Wait until the client has both its connections, and return the server's process id."""
    while receiver.run(["ss", "-Htn", f"sport = :{port}"]).stdout.count("ESTAB") < 1:
        time.sleep(0.01)
    listening = receiver.run(["ss", "-Hltnp", f"sport = :{port}"]).stdout
    found = re.search(r"pid=(\d+)", listening)
    assert found, listening
    return found[1]


def stand_still(testbed: Testbed) -> None:
    """Stop the server of one kind of requests for a while, soon after the first of them."""
    receiver = testbed.networks["A-4"]
    (stopped,) = [one for one in testbed.scenario.requests if one.label == STOPPED]
    server = server_of(receiver, testbed.addressing.port_of(stopped))
    time.sleep(0.5)  # of its two seconds
    receiver.run(["kill", "-STOP", server])
    time.sleep(STOP_SECONDS)
    receiver.run(["kill", "-CONT", server])
    # What leads there had stopped with it (nsenter does, as a shell's job would), and is our child.
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if (state, int(parent)) == ("T", os.getpid()):
                os.kill(int(stat.parent.name), signal.SIGCONT)


def drop(testbed: Testbed) -> None:
    """Let a rule drop one in so many datagrams where they arrive."""
    (lossy,) = [one for one in testbed.scenario.requests if one.label == LOSSY]
    port = testbed.addressing.port_of(lossy)
    rule = f"udp dport {port} numgen inc mod {ONE_IN} 0 drop"
    chain = f"chain arriving {{ type filter hook input priority 0; {rule}; }}"
    testbed.networks["A-4"].run(["nft", "-f", "-"], stdin=f"table ip lossy {{\n{chain}\n}}\n")


@pytest.mark.alone
def test_every_exchange_is_told_whatever_happens_on_its_way(
    testbed: Testbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All kinds at once; the server of one stands still, and datagrams of another are dropped."""
    monkeypatch.setattr("bench.generators.requests.tool.PATIENCE_SECONDS", 1.0)
    drop(testbed)
    with ThreadPoolExecutor() as pool:
        still = pool.submit(stand_still, testbed)
        done = run(testbed, tmp_path)
        still.result()
    found = read(testbed, done, tmp_path)
    count = 2 * RATE
    for label, exchanges in found.items():
        assert [one.due_s for one in exchanges] == [pytest.approx(n / RATE, abs=1e-6) for n in range(count)]
        lost = count // ONE_IN if label == LOSSY else 0
        expected = Counter(answered=count - lost, **({"lost": lost} if lost else {}))
        assert Counter(one.status for one in exchanges) == expected, label
        assert all((one.round_trip_s is not None) == ("tcp" in label) for one in exchanges), label
    waited = [one.answered_s - one.due_s for one in found[STOPPED] if one.answered_s is not None]
    # One in 10 ms was due meanwhile. The others' servers did not stand still.
    assert STOP_SECONDS * 0.9 < max(waited) < STOP_SECONDS * 1.5
    assert sum(time > 0.1 for time in waited) >= 0.9 * (STOP_SECONDS - 0.1) * RATE
    steps = sorted(time for time in waited if time > 0.1)
    assert all(later - one < 0.1 for one, later in pairwise(steps))


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_an_idle_path_is_asked_and_pinged(testbed: Testbed, tmp_path: Path) -> None:
    (requests,) = [one for one in testbed.scenario.requests if one.label == "tcp kept"]
    sample = idle_sample(requests)
    calibration.ask(plan(testbed, [sample], 0.1), tmp_path)
    exchanger = exchanger_of(testbed.scenario, sample)
    for role in ("sender", "echo"):
        exchanges = exchanger.read_exchanges(tmp_path / exchanger.file_name("tcp-kept", role), sample.count)
        assert {one.status for one in exchanges} == {"answered"}
    # The last are our pings: they tell what ping tells, but for what the machine does beside.
    if shutil.which("ping") is None:
        pytest.skip("ping is not installed")
    address = testbed.address_for(requests)
    said = testbed.networks["A-1"].run(["ping", "-n", "-q", "-c", "100", "-i", "0.01", address]).stdout
    (average,) = re.findall(r"= [\d.]+/([\d.]+)/", said)
    median = percentile([one.answered_s - one.sent_s for one in exchanges if one.answered_s], 0.5)
    assert abs(float(average) / 1000 - median) < 0.001


@pytest.mark.alone
@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("rate", [100, 1000, 5000])
def test_what_is_late_is_told(rate: int, tmp_path: Path) -> None:
    """At 100 and 1,000 a second a machine with a processor to spare is held to little; beyond, to a tenth."""
    recording = bench(tmp_path, f"requests[0].rate={rate}", "requests[0].latency=1")
    summary = json.loads(recording.summary_file.read_text())
    (requests,) = [one for one in summary["requests"] if one["name"] == "promised"]
    machine = {cause["phase"] for cause in summary["causes"] if cause["flow"] == "promised"}
    for phase, took in requests["phases"].items():
        allowed = {100: 0.0006, 1000: 0.0003}.get(rate, 0.0)
        assert took["exchanges"] > 0.9 * rate
        assert (phase in machine) == (took["lateness_p99_s"] > max(allowed, took["p99_s"] / 10))
    assert [path["moment"] for path in requests["idle"]] == ["before", "after"]
    assert all(path["overhead_s"] < 0.005 for path in requests["idle"])


SHORT = (
    "flows[0].duration=4", "requests[0].duration=4", "requests[1].duration=4",
    "disturbances[0].start=1", "disturbances[0].duration=2",
)  # fmt: skip


def command(reports: Path, *overrides: str) -> list[str]:
    sets = [word for field in (*SHORT, *overrides) for word in ("--set", field)]
    asked = ["bench", "--scenario", "latency", "--scale", "0.5", "--retry", "0", "--reports", str(reports)]
    return [sys.executable, "-u", "tasks.py", *asked, *sets]


def bench(reports: Path, *overrides: str) -> Recording:
    done = subprocess.run(command(reports, *overrides), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1, 3), done.stdout + done.stderr
    return Recording((reports / "latest").resolve())


@pytest.mark.long(one_in=0)
@pytest.mark.usefixtures("untouched_host")
def test_nothing_is_left_of_requests_that_are_interrupted(tmp_path: Path) -> None:
    run = subprocess.Popen(
        command(tmp_path), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env=dict(os.environ),
    )  # fmt: skip
    assert run.stdout is not None
    assert any("bit/s" in line for line in run.stdout)
    namespace = pid_namespace(sandbox_of(run.pid).pid)
    run.send_signal(signal.SIGINT)
    _, words = run.communicate(timeout=PATIENCE)
    assert run.returncode == 130, words
    assert "Traceback" not in words
    assert all_gone(namespace)


@pytest.mark.long(one_in=0)
def test_the_same_recording_gives_the_same_bytes(tmp_path: Path) -> None:
    recording = bench(tmp_path)
    files = [
        recording.summary_file, recording.exchanges_file, recording.samples_file, recording.report_file,
        *sorted(recording.figures_directory.iterdir()),
    ]  # fmt: skip
    before = {file: file.read_bytes() for file in files}
    assert {file.name for file in files} >= {"exchanges.parquet", "latency.png", "latency.svg"}
    pipeline.analyse(recording)
    assert {file: file.read_bytes() for file in files} == before


@pytest.mark.long(one_in=0)
def test_a_file_of_requests_that_is_missing_makes_the_run_invalid(tmp_path: Path) -> None:
    recording = bench(tmp_path)
    recording.raw_file(0, "promised", "sender", "csv.gz").unlink()
    (recording.raw_directory / "idle" / "unpromised.sender.csv.gz").write_bytes(b"nonsense")
    summary = pipeline.analyse(recording)
    assert summary.verdict == "invalid"
    text = "\n".join(summary.reasons)
    assert "promised, repetition-0: raw/repetition-0/promised.sender.csv.gz: No such file" in text
    assert (
        "unpromised: the idle path is not known: raw/idle/unpromised.sender.csv.gz: not a file of gzip"
        in text
    )
