import pytest

from bench.observations.procfs import cpu_use, packets_dropped, pressure, received_bytes, sent_bytes, softirq

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


def test_software_interrupts_are_counted_for_each_processor() -> None:
    before = "cpu  0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0\ncpu1 5 0 0 5 0 0 0 0\n"
    after = "cpu  9 0 0 9 0 0 9 0\ncpu0 10 0 0 60 0 0 30 0\ncpu1 5 0 0 105 0 0 0 0\n"
    assert softirq(before, after) == pytest.approx([0.3, 0.0])


# As the kernel says it (Documentation/accounting/psi.rst), behind what else is read.
PRESSURE = STAT + "some avg10=1.23 avg60=0.50 avg300=0.10 total={}\nfull avg10=0 avg60=0 avg300=0 total=9\n"


def test_pressure_is_the_share_of_time_in_which_something_waited() -> None:
    before, after = (PRESSURE.format(0, 0, 0, 0, 0, total) for total in (1_000_000, 1_500_000))
    assert pressure(before, after, 2.0) == pytest.approx(0.25)
    assert pressure(before, after, 0.499) == 1.0


def test_pressure_that_the_kernel_does_not_tell_is_not_known() -> None:
    without, told = STAT.format(0, 0, 0, 0, 0), PRESSURE.format(0, 0, 0, 0, 0, 7)
    assert pressure(without, without, 2.0) is None
    assert pressure(without, told, 2.0) is None


def test_received_bytes_are_the_first_number_and_sent_bytes_the_ninth() -> None:
    text = (
        "Inter-|   Receive                                                |  Transmit\n"
        " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
        "    lo: 1 2 3 4 5 6 7 8 900 10 11 12 13 14 15 16\n"
        "veth1234:11 2 3 4 5 6 7 8 1900 10 11 12 13 14 15 16\n"
        "cpu  1 2 3\n"
    )
    assert sent_bytes(text) == {"lo": 900, "veth1234": 1900}
    assert received_bytes(text) == {"lo": 1, "veth1234": 11}


def test_packets_without_room_are_the_second_number_of_each_processor() -> None:
    softnet = "0002f8c5 00000003 00000000\n0001aaaa 0000000a 00000001\n"
    assert packets_dropped(softnet) == 13
