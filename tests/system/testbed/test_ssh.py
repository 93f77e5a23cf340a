"""Testbeds on machines that are reached by SSH: what is made there, and that exactly this is taken away."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench import pipeline
from bench.analysis.summary import Summary
from bench.measurement import experiment
from bench.recording.directory import Recording
from bench.recording.records import Request
from testbed.assembly import assemble
from testbed.providers.ssh import connection, inventory
from testbed.providers.ssh.provider import MachinesError, clear
from testbed.scenario import Scenario, load, render_yaml
from testbed.scenario.model import Service
from testbed.testbed import Testbed
from tests.paths import ROOT
from tests.system.bench.test_experiment import Watcher
from tests.system.testbed import machines
from tests.system.testbed.machines import Machines
from tests.system.testbed.test_testbed import MEBIBYTE, crossed, three_workers

State = dict[str, dict[str, object]]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    machines.require()
    with Machines(three_workers(), tmp_path_factory.mktemp("machines")).lent() as up:
        yield up


@pytest.fixture
def before(there: Machines) -> State:
    return there.state()


def small(*overrides: str) -> Scenario:
    """The paper's plain cluster at rates, and for a time, that leave the machine to others."""
    short = [f"flows[{index}].duration=2" for index in range(2)]
    short += ["disturbances[0].start=1", "disturbances[0].duration=1", "disturbances[0].rate=5G"]
    return load(ROOT / "scenarios" / "kubernetes.yaml", [*short, *overrides], scale=0.01)


def assembled(there: Machines, scenario: Scenario) -> Testbed:
    return assemble(scenario, f"ssh:{there.inventory()}", "cni")


def bench(
    there: Machines, scenario: Scenario, reports: Path, during: Callable[[], None] | None = None
) -> tuple[dict[str, object], Summary]:
    inventory = there.inventory(machines.USER)
    request = Request(scenario=scenario.name, provider=f"ssh:{inventory}", reports=str(reports))
    recording = experiment.run(request, scenario, Watcher("test", during))
    return json.loads(recording.environment_file.read_text()), pipeline.analyse(recording)


@pytest.mark.long(one_in=0)
def test_a_whole_run_leaves_a_recording_and_the_machines_as_they_were(
    there: Machines, before: State, tmp_path: Path
) -> None:
    environment, summary = bench(there, small(), tmp_path)
    # Whatever the verdict is - other tests have the processors too - all that was to cross has crossed.
    for flow in summary.flows:
        assert all(phase.samples > 0 and phase.mean_bps > 0 for phase in flow.phases.values()), (
            summary.reasons
        )
    assert (summary.provider, summary.orchestrator) == ("ssh", "cni")
    (recording,) = map(Recording, tmp_path.iterdir())
    assert recording.asked_scenario() == small()
    for name, node in recording.scenario().nodes.items():
        assert (str(node.address), node.uplink) == (there.address(name), "eth0")
    clocks = environment["clocks"]
    assert isinstance(clocks, dict)
    assert set(clocks) == set(small().nodes)
    assert all(abs(clock["offset_s"]) < 0.5 and 0 < clock["round_trip_s"] < 1 for clock in clocks.values())
    assert there.state() == before


@pytest.mark.long(one_in=0)
def test_a_connection_cut_during_a_flow_makes_the_run_invalid(
    there: Machines, before: State, tmp_path: Path
) -> None:
    _, summary = bench(there, small("disturbances=[]"), tmp_path, lambda: there.cut("worker-02"))
    assert summary.verdict == "invalid"
    # Whoever notices first: what is known of the machine, or the sender that has lost its receiver.
    lost = r"\(1\) A-1 -> A-4.*(worker-02: the connection was lost after \d|control socket has closed)"
    assert any(re.search(lost, reason) for reason in summary.reasons), summary.reasons
    assert there.state() == before


@pytest.mark.long(one_in=0)
def test_clusters_may_overlap_on_one_of_three_machines(there: Machines, before: State) -> None:
    services = {"web": Service(cluster="a", pods=["A-4"], port=5301)}
    testbed = assembled(there, three_workers().model_copy(update={"services": services}))
    testbed.up()
    try:
        links = {
            name: set(re.findall(r"^\S+?(?=@|\s)", str(state["links"]), re.MULTILINE))
            for name, state in there.state().items()
        }
        assert {"flannel.1", "flannel.2", "cni-a", "cni-b"} <= links["worker-02"]
        assert "flannel.2" not in links["worker-01"]
        assert "flannel.1" not in links["worker-03"]
        b1, b2 = testbed.pods["B-1"], testbed.pods["B-2"]
        assert crossed(b1, b2, b2.address) == MEBIBYTE
        a1, a4 = testbed.pods["A-1"], testbed.pods["A-4"]
        assert crossed(a1, a4, a4.address) == MEBIBYTE
        assert crossed(a1, a4, str(testbed.addressing.service("web"))) == MEBIBYTE
        assert testbed.check() == []
    finally:
        testbed.down()
    assert there.state() == before


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize(
    "overrides",
    [["enforcement=node", "underlay.rate=9G"], ["enforcement=bandwidth"]],
    ids=["node", "bandwidth"],
)
def test_every_enforcement_is_taken_away_again(there: Machines, before: State, overrides: list[str]) -> None:
    if "bandwidth" in overrides[0] and not Path("/usr/lib/cni/bandwidth").exists():
        pytest.skip("no reference plugins on this machine: apt-get install containernetworking-plugins")
    testbed = assembled(there, small(*overrides))
    testbed.up()
    assert testbed.check() == []
    assert there.state() != before
    testbed.down()
    assert there.state() == before


OBSTACLES = {
    "there is an interface docker0 already": ("ip link add docker0 type bridge", "ip link del docker0"),
    "there is a network namespace A-2 already": ("ip netns add A-2", "ip netns del A-2"),
    "there is an nftables table ip containers already": (
        "nft add table ip containers",
        "nft delete table ip containers",
    ),
    "there is /run/concorde already": ("mkdir /run/concorde", "rmdir /run/concorde"),
    "there is a route to 172.16.9.0/24 already": (
        "ip route add 172.16.9.0/24 dev eth0",
        "ip route del 172.16.9.0/24",
    ),
    "eth0 has an MTU of 1400, the scenario one of 1500": (
        "ip link set eth0 mtu 1400",
        "ip link set eth0 mtu 1500",
    ),
}


def test_what_is_not_ours_is_named_and_nothing_is_touched(there: Machines) -> None:
    node = there.nodes["worker-01"]
    for make, _ in OBSTACLES.values():
        node.run(make.split())
    try:
        before = there.state()
        with pytest.raises(MachinesError) as caught:
            assembled(there, small()).up()
        assert there.state() == before
    finally:
        for _, unmake in reversed(OBSTACLES.values()):
            node.run(unmake.split())
    assert str(caught.value).startswith("worker-01: ")
    for words in OBSTACLES:
        assert words in str(caught.value)


@pytest.mark.long(one_in=0)
def test_an_address_that_no_interface_has(there: Machines, before: State) -> None:
    file = there.inventory(underlay_address="10.0.2.15")
    with pytest.raises(MachinesError, match=r"master-01: no interface has the address 10\.0\.2\.15 \(lo 127"):
        assemble(small(), f"ssh:{file}", "cni").up()
    assert there.state() == before


@pytest.mark.long(one_in=0)
def test_a_machine_in_use_is_left_to_who_uses_it(there: Machines, before: State) -> None:
    testbed = assembled(there, small())
    testbed.up()
    during = there.state()
    with pytest.raises(MachinesError, match=r"worker-01: it is in use: run kubernetes-\S+ of \S+, since"):
        assembled(there, small()).up()
    assert there.state() == during
    testbed.down()
    assert there.state() == before


@pytest.mark.long(one_in=0)
def test_a_machine_that_is_gone_is_cleared_later(
    there: Machines, before: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    testbed = assembled(there, small())
    testbed.up()
    there.stop_sshd("worker-01")
    there.cut("worker-01")
    with pytest.raises(MachinesError) as caught:
        testbed.down()
    there.start_sshd("worker-01")
    words = str(caught.value)
    assert "worker-01: " in words
    assert "refused: nothing listens at port 22" in words
    assert "nothing was taken away there: " in words
    assert "network namespace A-1" in words
    assert "worker-02" not in words
    assert {name for name, state in there.state().items() if state != before[name]} == {"worker-01"}
    left = clear(inventory.read(there.inventory()))
    assert left == {name: [] for name in there.nodes}
    assert there.state() == before


@pytest.mark.long(one_in=0)
def test_a_connection_that_ended_for_us_only_does_not_keep_us_out(
    there: Machines, before: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over there the old connection's processes still run: nobody has told that machine."""
    monkeypatch.setattr(connection, "SILENCE_SECONDS", 0.6)
    monkeypatch.setattr(connection, "ALIVE_SECONDS", 0.2)
    testbed = assembled(there, small())
    testbed.up()
    there.silence("worker-01")
    time.sleep(1.5)
    there.speak("worker-01")
    testbed.down()
    assert there.state() == before


@pytest.mark.long(one_in=0)
@pytest.mark.parametrize("cure", ["down", "the next run"])
def test_what_a_killed_harness_left(there: Machines, before: State, tmp_path: Path, cure: str) -> None:
    scenario = tmp_path / "small.yaml"
    scenario.write_text(render_yaml(small("flows[0].duration=30", "flows[1].duration=30")))
    file = there.inventory(machines.USER)
    run = subprocess.Popen(
        [*there.prefix, sys.executable, "-u", "tasks.py", "bench", "--scenario", str(scenario),
         "--provider", f"ssh:{file}", "--retry", "0", "--reports", str(tmp_path / "reports")],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert run.stdout is not None
    said = ""
    for line in run.stdout:
        said += line
        if "traffic" in line:
            break
    else:
        pytest.fail(said)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    left = there.state()
    assert {"worker-01", "worker-02"} <= {name for name in left if left[name] != before[name]}
    if cure == "down":
        done = subprocess.run(
            [*there.prefix, sys.executable, "tasks.py", "down", "--provider", f"ssh:{file}"],
            cwd=ROOT, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "nothing of a testbed is left on master-01" in done.stdout
    else:
        testbed = assembled(there, small())
        testbed.up()
        testbed.down()
    assert there.state() == before
    assert there.nodes["worker-01"].run(["pgrep", "-f", "iperf3"], check=False).status != 0


@pytest.mark.long(one_in=0)
def test_ssh_opens_the_way_for_people(there: Machines) -> None:
    done = subprocess.run(
        [*there.prefix, sys.executable, "tasks.py", "ssh", "worker-01",
         "--provider", f"ssh:{there.inventory()}", "--", "echo 'a  b'", "$HOME"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == "a  b /run\n", done.stderr  # as its own shell reads the words together


def test_bad_input_starts_nothing(there: Machines) -> None:
    file = there.inventory()
    nodes = {"other": small().nodes["worker-01"], **three_workers().nodes}
    other = three_workers().model_copy(update={"nodes": nodes})
    with pytest.raises(
        LookupError, match=r"inventory.yaml: no host 'other' for this node \(hosts: master-01"
    ):
        assemble(other, f"ssh:{file}", "cni")
    with pytest.raises(LookupError, match="--provider ssh needs to know the machines"):
        assemble(small(), "ssh", "cni")
