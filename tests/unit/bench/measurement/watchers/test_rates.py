import subprocess
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from bench.measurement.procfs import cpu_use, sent_bytes
from bench.measurement.watchers.rates import READINGS, Observer
from testbed.access.place import Result
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
    """A place that has one reading after the other, half a second apart by its own clock."""

    def __init__(self, name: str, *stats: str) -> None:
        self.name = name
        self._readings = [f"{100 + 0.5 * number:.2f} 7.00\n{stat}\n" for number, stat in enumerate(stats)]

    def run(self, argv: list[str]) -> Result:
        """Do nothing, and at once."""
        assert argv == ["true"]
        return Result(0, "", "")

    def start(self, argv: list[str], *, stdout: Path, stderr: Path) -> SimpleNamespace:
        """Write the first reading now, and the others while one looks on."""
        stdout.write_text(self._readings.pop(0))
        threading.Timer(0.2, self._go_on, [stdout]).start()
        return SimpleNamespace(kill=lambda: None)

    def _go_on(self, file: Path) -> None:
        with file.open("a") as stream:
            stream.write("".join(self._readings))


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
    assert observer.cpu[0].end_s - observer.cpu[0].start_s == pytest.approx(0.5)
    assert rates[0] == {"flow": 0}


def test_reading_ends_with_whoever_began_it() -> None:
    reader = subprocess.Popen(
        ["sh", "-c", 'sh -c "$1" sh 0.1 & read -r _', "sh", READINGS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with reader:
        assert reader.stdout is not None
        assert reader.stdout.readline()
        reader.kill()
        reader.wait()  # a process is there until someone has asked how it ended
        reader.communicate(timeout=20)  # the output has an end
