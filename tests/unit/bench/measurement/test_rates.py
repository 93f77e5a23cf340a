import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.generators import generator_of
from bench.measurement.plan import Counter, Plan, Planned, Receiving
from bench.measurement.rates import READINGS, RateWatcher
from bench.observations.procfs import sent_bytes
from testbed.access.place import InNamespace, Process
from testbed.scenario import Traffic
from tests.doubles import RecordingNode, Running
from tests.unit.bench.builders import scenario
from tests.waiting import PATIENCE

STAT = "cpu  {} 0 {} {} {} 0 0 {} 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 12\n"


class Machine(RecordingNode):
    """A node that has one reading after the other, half a second apart by its own clock."""

    def __init__(self, name: str, *stats: str) -> None:
        super().__init__(name)
        self.reader = Running()
        self._readings = [f"{100 + 0.5 * number:.2f} 7.00\n{stat}\n" for number, stat in enumerate(stats)]

    def start(self, argv: Sequence[str], *, stdout: Path, stderr: Path, held: bool = False) -> Process:
        """Write the first reading now, and the others while one looks on."""
        stdout.write_text(self._readings.pop(0))
        threading.Timer(0.2, self._go_on, [stdout]).start()
        return self.reader

    def _go_on(self, file: Path) -> None:
        with file.open("a") as stream:
            stream.write("".join(self._readings))


def test_a_host_of_the_nodes_counts_as_busy_though_no_node_knows() -> None:
    idle, busy = STAT.format(0, 0, 0, 0, 0), STAT.format(0, 99, 1, 0, 0)
    node = Machine("worker-02", idle, STAT.format(0, 20, 80, 0, 0))
    host = Machine("this machine", idle, busy)
    traffic = Traffic.model_validate({"name": "flow", "from": "A-1", "to": "A-4", "duration": 1})
    pod = InNamespace("A-4", node, "/run/netns/A-4", "172.16.2.2", "veth")
    planned = Planned(
        traffic,
        generator_of(scenario(), traffic),
        source=pod,
        source_network=pod,
        receivers=(Receiving("A-4", pod, pod, node, Counter("veth", sent_bytes)),),
        address="172.16.2.2",
        receiver=[],
        ready=[],
        sender=[],
    )
    seen = threading.Event()
    rates: list[dict[str, float]] = []

    def on_rates(elapsed: float, found: dict[str, float]) -> None:
        rates.append(found)
        seen.set()

    with RateWatcher(Plan([planned], [host]), on_rates) as watcher:
        watcher.start(time.monotonic())
        assert seen.wait(PATIENCE)
    assert watcher.cpu[0].busy == pytest.approx(0.99)
    assert watcher.cpu[0].end_s - watcher.cpu[0].start_s == pytest.approx(0.5)
    assert rates[0] == {"flow": 0}
    # They are two machines, as far as can be told.
    assert watcher.loads["this machine"].softirq == [0.0]
    assert set(watcher.loads) == {"worker-02", "this machine"}
    assert node.reader.killed
    assert host.reader.killed


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
        reader.communicate(timeout=PATIENCE)  # the output has an end
