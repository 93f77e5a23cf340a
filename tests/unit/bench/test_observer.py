import threading
import time
from types import SimpleNamespace
from typing import cast

import pytest

from bench.observer import Observer, cpu_use, sent_bytes
from testbed.nodes import Result
from testbed.scenario import Traffic
from testbed.testbed import Testbed

STAT = "cpu  {} 0 {} {} {} 0 0 {} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 12\n"


def test_idle_and_waiting_are_not_busy() -> None:
    before = STAT.format(100, 100, 1000, 50, 7)
    after = STAT.format(130, 140, 1020, 60, 7)
    use = cpu_use(1.0, 1.5, before, after)
    assert use.busy == pytest.approx(0.7)
    assert use.steal == 0
    assert (use.start_s, use.end_s) == (1.0, 1.5)


def test_what_the_hypervisor_takes_is_busy_and_named() -> None:
    use = cpu_use(0, 1, STAT.format(0, 0, 0, 0, 0), STAT.format(10, 10, 30, 0, 50))
    assert use.steal == pytest.approx(0.5)
    assert use.busy == pytest.approx(0.7)


def test_no_tick_between_two_readings_is_no_division_by_zero() -> None:
    same = STAT.format(1, 1, 1, 1, 1)
    assert cpu_use(0, 0, same, same).steal == 0


def test_sent_bytes_are_the_ninth_number() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
        "    lo: 1 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16\n"
        "veth1234:11 2 3 4 5 6 7 8 1900 10 11 12 13 14 15 16\n"
        "cpu  1 2 3\n"
    )
    assert sent_bytes(text) == {"lo": 900, "veth1234": 1900}


class Machine:
    """A place that has one answer after the other, and the last one for ever."""

    def __init__(self, name: str, *stats: str) -> None:
        self.name = name
        self._answers = iter(stats)
        self._last = ""

    def run(self, argv: list[str]) -> Result:
        """Answer whatever is asked."""
        self._last = next(self._answers, self._last)
        return Result(0, self._last, "")


def test_a_machine_beneath_the_nodes_counts_as_busy_though_no_node_knows() -> None:
    idle, busy = STAT.format(0, 0, 0, 0, 0), STAT.format(0, 99, 1, 0, 0)
    node = Machine("worker-02", idle, STAT.format(0, 20, 80, 0, 0))
    beneath = Machine("this machine", idle, busy)
    testbed = SimpleNamespace(
        provider=SimpleNamespace(beneath=[beneath]),
        nodes={"worker-02": node},
        scenario=SimpleNamespace(node_of=lambda name: "worker-02"),
        place=lambda name: SimpleNamespace(host_interface="veth"),
    )
    transfer = SimpleNamespace(destination="A-4", label="flow")
    seen = threading.Event()
    rates: list[dict[str, float]] = []

    def on_rates(elapsed: float, found: dict[str, float]) -> None:
        rates.append(found)
        seen.set()

    with Observer(cast(Testbed, testbed), cast("list[Traffic]", [transfer]), on_rates) as observer:
        observer.start(time.monotonic())
        assert seen.wait(10)
    assert observer.cpu[0].busy == pytest.approx(0.99)
    assert rates[0] == {"flow": 0}
