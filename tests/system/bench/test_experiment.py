"""Whole runs at a tenth of the scale and a third of the time, down to the recording they leave."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from bench import pipeline
from bench.analysis.summary import Summary
from bench.console.progress import Display
from bench.measurement import experiment
from bench.measurement.rates import OnRates
from bench.recording import requests
from bench.recording.directory import Recording
from bench.recording.records import Request
from testbed.scenario import Scenario
from tests.system.conftest import sandbox_of

SHORT = [
    "flows[0].duration=3",
    "flows[1].duration=3",
    "disturbances[0].start=1",
    "disturbances[0].duration=1",
    # Other tests run beside this one: leave them some of the machine.
    "disturbances[0].rate=5G",
]


class Watcher(Display):
    """A display that calls a function once, while the traffic flows."""

    def __init__(self, name: str, during: Callable[[], None] | None = None) -> None:
        super().__init__(Console(file=io.StringIO()), name)
        self._during = during

    @contextmanager
    def traffic(self, scenario: Scenario, repetition: int) -> Iterator[OnRates]:
        with super().traffic(scenario, repetition) as shown:

            def on_rates(seconds: float, rates: dict[str, float]) -> None:
                shown(seconds, rates)
                if self._during is not None:
                    during, self._during = self._during, None
                    during()

            yield on_rates


def run(
    reports: Path, overrides: list[str], during: Callable[[], None] | None = None
) -> tuple[Recording, Summary]:
    request = Request(scenario="kubernetes", overrides=(*SHORT, *overrides), scale=0.1, reports=str(reports))
    recording = experiment.run(request, requests.read(request), Watcher("test", during))
    assert recording.request() == request
    return recording, pipeline.analyse(recording)


def in_pod(name: str, *argv: str, node: str = "worker-01") -> Callable[[], None]:
    """Return what runs a command in a pod of a node while the traffic flows."""

    def act() -> None:
        sandbox_of(os.getpid()).node(node).run(["nsenter", f"--net=/run/netns/{name}", "--", *argv])

    return act


def kinds(summary: Summary) -> set[str]:
    return {cause.kind for cause in summary.causes}


def machine_was_the_limit(summary: Summary) -> bool:
    """A run may be invalid for want of a quiet machine, never for another reason here."""
    return summary.verdict == "invalid" and kinds(summary) == {"machine"}


@pytest.mark.alone
def test_a_run_leaves_a_complete_recording(tmp_path: Path) -> None:
    recording, summary = run(tmp_path, ["measurement.repetitions=2"])
    assert summary.verdict == "held" or machine_was_the_limit(summary), summary.reasons
    assert recording.directory.name.endswith(".unfinished")
    final = recording.finish()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [final.run_id, "latest"]

    assert final.scenario().flows[0].duration == 3
    record = final.run_record()
    assert record.add_s is not None
    assert set(record.add_s) == set(final.scenario().pods)
    assert all(0 < seconds < 60 for seconds in record.add_s.values())
    assert record.faults == []
    assert record.calibration is not None
    assert set(record.calibration.bits_per_second) == {"(1) A-1 -> A-4", "(2) A-2 -> A-3"}
    transfers = record.repetitions[0].transfers
    assert set(transfers) == {"(1) A-1 -> A-4", "(2) A-2 -> A-3", "disturbance"}
    for label, transfer in transfers.items():
        assert transfer.error is None
        raw = json.loads(final.raw_file(0, transfer.slug, "receiver").read_text())
        received = raw["end"]["sum_received"]["bytes"]
        # What left the pod by the kernel's count is what arrived, plus headers and what TCP sent again.
        assert transfer.sender_interface_bytes is not None
        assert 1.0 < transfer.sender_interface_bytes / received < 1.10, label
    assert transfers["(1) A-1 -> A-4"].class_bytes is not None
    assert transfers["disturbance"].class_bytes is None
    assert transfers["disturbance"].started_s == pytest.approx(1.0, abs=0.1)
    assert [bool(repetition.cpu) for repetition in record.repetitions] == [True, True]
    assert final.raw_file(1, "1-a-1-a-4", "receiver").is_file()
    assert len(record.calibrations) == 2
    assert (final.raw_directory / "calibration-after").is_dir()

    one, _ = summary.machine
    assert one.softirq is not None
    assert [len(shares) for shares in one.softirq.values()] == [os.cpu_count()]
    assert one.pressure is None or 0 <= one.pressure <= 1
    assert one.dropped is not None
    assert "A-1 eth0 htb 1:" in one.dropped
    assert set(one.retransmits) == set(one.irregular) == set(transfers)

    environment = json.loads(final.environment_file.read_text())
    assert environment["tools"]["iperf3"].startswith("iperf 3.")
    assert set(environment["plugins"]) == {"concorde"}
    assert environment["addresses"]["A-1"] == "172.16.1.2"
    assert environment["nodes"]["worker-01"]["sysctls"]["net.ipv4.ip_forward"] == "1"
    assert any(q["kind"] == "htb" for q in environment["pods"]["A-1"]["qdiscs"])
    for file in ("figures/throughput.svg", "figures/throughput.pdf", "figures/throughput.png", "report.html"):
        assert (final.directory / file).stat().st_size > 1000


@pytest.mark.long(one_in=0)
def test_shaping_removed_by_hand_is_noticed(tmp_path: Path) -> None:
    remove = in_pod("A-1", "tc", "qdisc", "del", "dev", "eth0", "root")
    recording, summary = run(tmp_path, [], remove)
    assert summary.verdict == "invalid"
    assert "state" in kinds(summary)
    assert any("A-1" in fault and "no HTB" in fault for fault in recording.run_record().faults)


@pytest.mark.long(one_in=0)
def test_a_class_halved_by_hand_is_the_kernel_s_state(tmp_path: Path) -> None:
    slower = ["tc", "class", "change", "dev", "eth0", "parent", "1:", "classid", "1:1", "htb"]
    rate = ["rate", "50mbit", "ceil", "50mbit", "burst", "50kb", "cburst", "50kb"]
    _, summary = run(tmp_path, [], in_pod("A-1", *slower, *rate))
    assert summary.verdict == "invalid"
    assert "state" in kinds(summary)
    first = summary.causes[0]
    assert (first.kind, first.repetition) == ("state", 0)
    for named in ("class 1:1", "50Mbit", "100Mbit"):
        assert named in first.text
    short = next(cause for cause in summary.causes if cause.kind != "state")
    assert short.flow == "(1) A-1 -> A-4"
    assert short.observed is not None
    assert short.required is not None
    assert short.observed < short.required


@pytest.mark.long(one_in=0)
def test_a_receiver_that_is_killed_leaves_no_measurement(tmp_path: Path) -> None:
    """Kill iperf3's server in the first pod; it has the only one there."""
    kill = ["sh", "-c", "kill -9 $(ss -Hltnp | sed -n 's/.*pid=\\([0-9]*\\).*/\\1/p')"]
    _, summary = run(tmp_path, [], in_pod("A-4", *kill, node="worker-02"))
    assert summary.verdict == "invalid"
    lost = [cause for cause in summary.causes if cause.flow == "(1) A-1 -> A-4"]
    assert {cause.kind for cause in lost} == {"measurement"}, summary.reasons
    assert kinds(summary) <= {"measurement", "machine"}


@pytest.mark.alone
def test_a_promise_that_is_really_broken_is_violated(tmp_path: Path) -> None:
    """The underlay carries less than is promised, the qdiscs are all in place: the guarantee's own fault."""
    _, summary = run(tmp_path, ["underlay.rate=3G", "enforcement=pod", "disturbances[0].parallel=8"])
    if machine_was_the_limit(summary):
        pytest.skip(f"the machine was the limit: {summary.reasons}")
    assert summary.verdict == "violated", summary.reasons
    assert kinds(summary) <= {"promise", "machine"}
    assert "promise" in kinds(summary)
    # Tests run beside this one: the processors may have been full in one phase and not in the other.
    assert {cause.phase for cause in summary.causes} == {"quiet", "disturbed"}


@pytest.mark.long(one_in=0)
def test_an_interrupted_connection_is_invalid_in_iperf3_s_own_words(tmp_path: Path) -> None:
    refuse = in_pod("A-1", "ip", "link", "set", "eth0", "down")  # at the other flow's first rates
    recording, summary = run(tmp_path, ["flows[0].start=2.5", "disturbances[0].start=1.5"], refuse)
    transfer = recording.run_record().repetitions[0].transfers["(1) A-1 -> A-4"]
    assert transfer.error is not None
    assert "unable to connect" in transfer.error
    assert summary.verdict == "invalid"
    assert any("unable to connect" in reason for reason in summary.reasons)
    flow = next(flow for flow in summary.flows if flow.name == "(1) A-1 -> A-4")
    assert all(phase.mean_bps != 0 for phase in flow.phases.values())
    other = recording.run_record().repetitions[0].transfers["(2) A-2 -> A-3"]
    assert other.error is None


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_udp_and_parallel_streams(tmp_path: Path) -> None:
    overrides = [
        "flows[0].protocol=udp",
        "flows[0].rate=900M",
        "flows[1].parallel=4",
        "disturbances=[]",
        # iperf3 paces datagrams by its own clock: beside other tests it falls a percent behind, and some
        # samples far.
        "thresholds.mean=0.97",
        "thresholds.attainment=0.8",
    ]
    _, summary = run(tmp_path, overrides)
    assert summary.verdict == "held" or machine_was_the_limit(summary), summary.reasons
    udp = next(flow for flow in summary.flows if flow.name == "(1) A-1 -> A-4")
    assert udp.expected_goodput_bps == pytest.approx(90_000_000)


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_payload_counting_gives_the_guarantee_as_goodput(tmp_path: Path) -> None:
    _, summary = run(tmp_path, ["count=payload", "disturbances=[]", "underlay.mtu=9000"])
    assert summary.verdict == "held" or machine_was_the_limit(summary), summary.reasons
    flow = summary.flows[0]
    assert flow.expected_goodput_bps == flow.guarantee_bps == 100_000_000
