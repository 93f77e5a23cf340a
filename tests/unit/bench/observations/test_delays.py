"""What is recorded of trunks that take time, and of those that do not say; how late a relay was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from bench.observations import delays
from bench.recording import records
from bench.recording.records import Fault
from testbed.links.trunks import Counted, Delayed


@dataclass
class Trunk:
    """See testbed.links.trunks.Running."""

    told: list[Delayed] = field(default_factory=list)
    silent: bool = False
    asked: int = 0

    def fault(self) -> None:
        return None

    def delayed(self) -> Sequence[Delayed]:
        self.asked += 1
        if self.silent:
            raise RuntimeError("zone north: the relay does not answer: gone")
        return self.told


COUNTED = Counted(frames=100, late=1, worst_s=0.002, dropped=0, lateness=[90, 10])


def test_each_direction_is_recorded_with_what_it_counted() -> None:
    told, faults = delays.ask([Trunk([Delayed("north", True, "relay", 0.005, COUNTED)])])
    assert faults == []
    assert told is not None
    (one,) = told
    assert (one.zone, one.out, one.means, one.delay_s) == ("north", True, "relay", 0.005)
    assert (one.frames, one.late, one.worst_s, one.dropped) == (100, 1, 0.002, 0)
    assert one.lateness == [90, 10]


def test_what_does_not_count_is_recorded_without_counts() -> None:
    told, _ = delays.ask([Trunk([Delayed("north", False, "netem", 0.005, None)])])
    assert told is not None
    assert (told[0].means, told[0].frames, told[0].late) == ("netem", None, None)


def test_where_no_trunk_takes_time_there_is_nothing_to_record() -> None:
    assert delays.ask([]) == delays.ask([Trunk()]) == (None, [])


def test_who_does_not_answer_is_a_fault_and_the_others_are_recorded() -> None:
    good = Trunk([Delayed("south", True, "relay", 0.005, COUNTED)])
    told, faults = delays.ask([Trunk(silent=True), good])
    assert faults == [Fault(kind="state", text="zone north: the relay does not answer: gone")]
    assert told is not None
    assert [one.zone for one in told] == ["south"]
    assert delays.begin([Trunk(silent=True)]) == faults


def test_to_begin_is_to_ask_so_that_it_counts_anew() -> None:
    trunk = Trunk()
    assert delays.begin([trunk]) == []
    assert trunk.asked == 1


def counted(**fields: object) -> records.Delayed:
    return records.Delayed.model_validate(
        {"zone": "south", "out": False, "means": "relay", "delay_s": 0.01, **fields}, strict=False
    )


@pytest.mark.parametrize(("share", "seconds"), [(0.5, 4e-6), (0.9, 4e-6), (0.99, 16e-6), (1.0, 16e-6)])
def test_a_share_of_the_frames_is_no_later_than_a_power_of_two_of_microseconds(
    share: float, seconds: float
) -> None:
    assert delays.lateness(counted(lateness=[0, 40, 50, 0, 10]), share) == seconds


def test_nobody_knows_how_late_a_kernel_s_delay_is() -> None:
    netem = counted(means="netem")
    assert delays.lateness(netem, 0.99) is None
    assert delays.late_share(netem) is None
    assert delays.direction(netem) == "into zone south"


def test_of_no_frames_none_is_late() -> None:
    idle = counted(frames=0, late=0, lateness=[0, 0])
    assert delays.lateness(idle, 0.99) is None
    assert delays.late_share(idle) is None
