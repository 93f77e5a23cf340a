"""What packets cost, of readings whose answer is known."""

from __future__ import annotations

import pytest

from bench.analysis.statistics import percentile
from bench.studies import packets
from bench.studies.backends import results
from bench.studies.machine import spent
from bench.studies.packets import Offered
from bench.studies.study import Spread
from tests.unit.bench.studies.backends import known


def test_busy_is_what_is_neither_idle_nor_stolen() -> None:
    found = spent(known.reading(1, 0.5), known.reading(3, 1.5, stolen=0.2))
    assert found.processors == 2
    assert found.seconds == pytest.approx(2)
    assert found.busy_s == pytest.approx(1.0)
    assert found.stolen_s == pytest.approx(0.2)
    assert found.busy == pytest.approx(0.5)


def test_a_packet_costs_what_is_above_idle() -> None:
    # 0.8 s for 40,000 packets in 4 s are 20 us; 0.05 processors of it would have been busy anyway: 5 us less.
    assert packets.per_packet_ns(known.offered(0.8)) == pytest.approx(20_000)
    assert packets.per_packet_ns(known.offered(0.8, idle=0.05)) == pytest.approx(15_000)


def test_a_second_that_the_host_had_other_things_to_do_is_not_the_packets() -> None:
    one = known.offered(0.8)
    ends = [known.reading(2 + n, 1 + 0.2 * n + (0.5 if n > 3 else 0)) for n in range(6)]
    slow = one.model_copy(update={"busy": ends, "packets": [10_000] * 5})
    assert packets.per_packet_ns(slow) == pytest.approx(20_000)


def test_a_quiet_machine_is_valid() -> None:
    assert list(packets.faults(known.offered(0.8, idle=0.05))) == []


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (known.offered(0.8, idle=1.0, after=0), "1.00 processors were busy before it"),
        (known.offered(0.8, idle=0, after=0.2), "0.20 processors were busy after it"),
        (known.offered(0.8, others=3.5), "other processes took 3.50 s of processors in 7.00 s"),
        (known.offered(0.8, stolen=0.5), "the hypervisor took 0.50 s"),
        (known.offered(0.8, packets=30_000), "75.0 % of that were received"),
    ],
)
def test_what_says_nothing_about_packets_is_no_number(one: Offered, words: str) -> None:
    (found,) = results.packet_costs([known.cost(one)])
    assert found.ns is None
    assert len(found.invalid) == 1
    assert words in found.invalid[0]
    assert found.invalid[0].startswith("round 1: 64 B at 10000/s: ")


def test_valid_rounds_count_without_the_others() -> None:
    rounds = [known.cost(known.offered(busy), number=n) for n, busy in enumerate((0.8, 0.88, 0.84), start=1)]
    rounds.append(known.cost(known.offered(2.4, idle=0.9), number=4))
    (found,) = results.packet_costs(rounds)
    assert found.ns is not None
    assert found.ns.count == 3
    assert found.ns.median == pytest.approx(21_000)
    assert found.ns.share == pytest.approx(2 / 21)
    assert len(found.invalid) == 2


def test_sizes_and_rates_are_kept_apart() -> None:
    found = results.packet_costs([known.cost(known.offered(0.8), known.offered(1.0, size=1400))])
    assert [(one.size, one.rate) for one in found] == [(64, 10_000), (1400, 10_000)]


def test_throughputs_are_compared_round_by_round() -> None:
    rounds = [
        known.throughput(1, vxlan=[30, 40, 41], host_gw=[44, 44, 20]),
        known.throughput(2, vxlan=[50, 50, 50], host_gw=[60, 55, 55]),
    ]
    found, invalid = results.throughputs(rounds)
    assert invalid == []
    assert found == {"vxlan": {1: 40e9, 2: 50e9}, "host-gw": {1: 44e9, 2: 55e9}}
    shares = results.shares(found["host-gw"], found["vxlan"])
    assert shares is not None
    assert shares.least == pytest.approx(1.1)
    assert shares.most == pytest.approx(1.1)


def test_a_round_beside_a_hog_counts_for_nobody() -> None:
    rounds = [known.throughput(1, others=0.9, vxlan=[30]), known.throughput(2, others=None, vxlan=[40])]
    found, invalid = results.throughputs(rounds)
    assert found == {"vxlan": {2: 40e9}}
    assert invalid == ["round 1: vxlan: other processes took 0.90 s of processors in 1.00 s"]


def test_percentiles_are_values_that_were_measured() -> None:
    values = [float(number) for number in range(1, 101)]
    assert [percentile(values, share) for share in (0.5, 0.95, 0.99, 1.0)] == [50, 95, 99, 100]
    assert percentile([7.0], 0.99) == 7
    assert Spread.of([]) is None
