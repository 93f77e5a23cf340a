from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.generators.iperf3 import LARGEST_BLOCK, SMALLEST_BLOCK, Iperf3, block_size
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"

iperf3 = Iperf3()


@pytest.fixture
def contmec() -> Addressing:
    return Addressing(load(SCENARIOS / "contmec.yaml"))


def option(command: list[str], name: str) -> str:
    return command[command.index(name) + 1]


def test_every_transfer_has_a_port_of_its_own(contmec: Addressing) -> None:
    ports = [option(iperf3.receiver(contmec, one, 0.1), "--port") for one in contmec.scenario.traffic]
    assert ports == ["5201", "5202", "5203", "5204"]
    assert option(iperf3.sender(contmec, contmec.scenario.flows[2], "1.2.3.4", 0.1), "--port") == "5203"


def test_the_receiver_keeps_records_of_its_own(contmec: Addressing) -> None:
    command = iperf3.receiver(contmec, contmec.scenario.flows[0], 0.1)
    assert option(command, "--interval") == "0.1"
    assert {"--one-off", "--json"} <= set(command)


def test_a_block_is_small_against_what_a_sample_holds() -> None:
    slow = Addressing(load(SCENARIOS / "contmec.yaml", scale=0.01))
    block = int(option(iperf3.sender(slow, slow.scenario.flows[0], "1.2.3.4", 0.1), "--length"))
    assert block <= 0.1 * 10_000_000 / 8 * 0.01


def test_an_unlimited_tcp_transfer_has_no_bitrate(contmec: Addressing) -> None:
    assert "--bitrate" not in iperf3.sender(contmec, contmec.scenario.disturbances[0], "1.2.3.4", 0.1)


def test_the_offered_load_is_divided_among_the_streams() -> None:
    overrides = ["flows[0].protocol=udp", "flows[0].rate=900M", "flows[0].parallel=3"]
    addressing = Addressing(load(SCENARIOS / "contmec.yaml", overrides))
    command = iperf3.sender(addressing, addressing.scenario.flows[0], "1.2.3.4", 0.1)
    assert option(command, "--bitrate") == "300000000"
    assert "--udp" in command
    assert option(command, "--length") == "1422"  # 1450 less IPv4 and UDP headers


@pytest.mark.parametrize(
    ("output", "errors", "complaint"),
    [
        ('{"error": "unable to connect to server: Connection refused"}', "", "unable to connect"),
        ("", "iperf3: not found\n", "iperf3: not found"),
        ("{cut", "Killed", "Killed"),
        ("[]", "", "no report"),
        ('{"end": {}}', "warning: UDP block size 1422 exceeds TCP MSS 1398", None),
        ('{"end": {}}', "", None),
    ],
)
def test_the_complaint_is_iperf3_s_own(
    output: str, errors: str, complaint: str | None, tmp_path: Path
) -> None:
    (tmp_path / "out").write_text(output)
    (tmp_path / "err").write_text(errors)
    found = iperf3.complaint(tmp_path / "out", tmp_path / "err")
    assert (found is None) if complaint is None else (found is not None and complaint in found)


@given(rate=st.integers(min_value=1, max_value=10**12), interval=st.floats(min_value=0.1, max_value=10))
def test_a_block_hardly_moves_a_sample(rate: int, interval: float) -> None:
    block = block_size(rate, interval)
    assert SMALLEST_BLOCK <= block <= LARGEST_BLOCK
    assert block % 1024 == 0
    assert block == SMALLEST_BLOCK or block * 8 <= 0.005 * rate * interval


def test_blocks_without_a_rate_and_of_datagrams() -> None:
    assert block_size(None, 0.1) == 128 * 1024
    assert block_size(1e9, 0.1) == 61 * 1024
    assert block_size(1e9, 0.1, "udp", 1450) == 1422
