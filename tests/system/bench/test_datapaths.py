"""Datapaths between nodes, measured on nodes that are there: what is planted must be seen."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from bench.console.progress import Display
from bench.recording.records import StudyRequest
from bench.studies import loop, packets
from bench.studies.backends import measuring, results
from bench.studies.backends.index import NODES, read
from bench.studies.backends.measuring import PAIR
from bench.studies.backends.probes import nodes, scenarios
from bench.studies.backends.probes.membership import Membership
from bench.studies.backends.records import Streams
from bench.studies.backends.study import BackendsStudy
from testbed.overlays import registry
from testbed.scenario.addressing import Addressing
from testbed.supplies import packages
from testbed.testbed import Testbed
from tests import cases

SHORT = packets.Plan(idle=0.3, lead=0.1, window=0.25, windows=2)
SECOND = 1_000_000_000


def lacking(testbed: Testbed, addressing: Addressing) -> list[str]:
    return registry.of_cluster(addressing, scenarios.CLUSTER).lacking(testbed.nodes)


@pytest.mark.alone
@pytest.mark.usefixtures("untouched_host")
def test_nodes_have_what_another_scenario_says_and_an_outage_that_is_planted_is_seen() -> None:
    scenario = scenarios.of_nodes({"backend": "vxlan"}, 4)
    with scenarios.ground(scenario) as (testbed, together):
        *others, node = scenarios.workers(scenario)
        there, moved = testbed.addressing, Addressing(scenarios.moved(scenario, node))
        without = scenarios.without(scenario, node)
        membership = Membership(scenarios.CLUSTER, testbed.nodes, packages.find)
        subnet = str(there.pod_subnet(scenarios.CLUSTER, node))
        with nodes.probing(testbed, together, others, node) as (talk, probed):
            talk.begin()
            talk.expect("arrive", 10)
            planted = time.monotonic_ns()
            route = testbed.nodes[others[0]].run(["ip", "route", "show", subnet]).stdout.split()
            testbed.nodes[others[0]].run(["ip", "route", "del", subnet])
            time.sleep(0.3)
            testbed.nodes[others[0]].run(["ip", "route", "add", *route])
            mended = time.monotonic_ns()
            talk.begin()
            talk.expect("arrive", 10)
            until = time.monotonic_ns()
            membership.move(node, there, Addressing(without))
            assert lacking(testbed, Addressing(without)) == []
            for other in others:
                assert testbed.nodes[other].run(["ip", "route", "show", subnet]).stdout == ""
            membership.move(node, Addressing(without), there)
            assert lacking(testbed, there) == []
            membership.move(node, there, moved)
            assert lacking(testbed, moved) == []
            talk.begin()
            talk.expect("arrive", 10)
        streams = Streams.model_validate_json(json.dumps(probed))
    # It broke somewhere in the middle of a process that took it away, and came back likewise.
    outage = results.arrival_ns(streams.runs, planted, until, streams.interval_ns)
    assert outage is not None
    assert 0.3 * SECOND < outage < mended - planted + 0.1 * SECOND
    assert len(streams.runs) == 4  # between the one node and two others, both ways
    assert all(runs for runs in streams.runs)


@pytest.fixture(scope="module")
def pair() -> Iterator[Testbed]:
    """Two workers, and a pod on each."""
    with scenarios.ground(scenarios.of_nodes({"backend": "vxlan"}, PAIR)) as (testbed, _):
        yield testbed


# On some processor or other, with whatever else is there.
HOG = "while True: pass"


@pytest.mark.alone
@pytest.mark.long(one_in=20)
@pytest.mark.parametrize("number", range(20))
def test_a_run_beside_a_hog_is_invalid(pair: Testbed, number: int) -> None:
    source, destination = pair.pods.values()
    hog = subprocess.Popen([sys.executable, "-c", HOG], start_new_session=True)
    try:
        found = packets.offer(source, packets.End.of(destination), packets.Offer(64, 5_000), SHORT)
    finally:
        hog.kill()
        hog.wait()
    assert any("processors were busy" in words for words in packets.faults(found)), number


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_packets_that_are_offered_are_counted(pair: Testbed) -> None:
    source, destination = pair.pods.values()

    def judge(factor: int) -> None:
        asked = SHORT._replace(windows=SHORT.windows * factor)
        found = packets.offer(source, packets.End.of(destination), packets.Offer(1400, 2_000), asked)
        assert sum(found.packets) == pytest.approx(2_000 * asked.window * asked.windows, rel=0.1)
        assert found.sent >= sum(found.packets)
        assert len(found.busy) == asked.windows + 1

    cases.with_more_samples(judge)


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_a_slow_path_that_is_planted_is_slow(pair: Testbed) -> None:
    source, destination = pair.pods.values()
    before = packets.throughput(source, packets.End.of(destination), 1).bits_per_second
    source.run(["tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "500mbit", "burst", "64k",
                "latency", "50ms"])  # fmt: skip
    slow = packets.throughput(source, packets.End.of(destination), 1).bits_per_second
    source.run(["tc", "qdisc", "del", "dev", "eth0", "root"])
    assert slow < 510e6 < before


@pytest.mark.alone
@pytest.mark.long(one_in=0)
def test_every_backend_of_this_machine_is_measured_alike(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packets, "OFFERS", (packets.Offer(64, 5_000),))
    monkeypatch.setattr(packets, "Plan", lambda: SHORT)
    study = BackendsStudy()
    asked = StudyRequest(
        study="backends",
        reports=str(tmp_path),
        scale=0.1,
        choices={"repetitions": ("1",), "nodes": ("4",)},
    )
    directory = loop.run(study, asked, partial(Display, Console(file=io.StringIO())))
    found = read(directory)
    able = [name for name in found.backends if name not in found.cannot]
    assert {"vxlan", "host-gw"} <= set(able)
    for name in [name for name in able if NODES in measuring.known()[name].parts]:
        (size,) = found.measured[name].sizes
        events = {event.event: event for event in size.events}
        for event in ("join", "change", "return"):
            assert events[event].arrive_s is not None, (name, event)
        assert events["leave"].arrive_s is None, name
        assert events["leave"].gone_s is not None, name
    for row in found.rows:
        assert (row.recording is None) == (row.backend in found.cannot)
    for name in ("vxlan", "host-gw"):
        assert found.measured[name].first[0].count == 5
        assert found.measured[name].round_trips[0].p50_s
    before = {file: file.read_bytes() for file in directory.rglob("backends.*")}
    study.analyse(directory)
    assert before == {file: file.read_bytes() for file in directory.rglob("backends.*")}
