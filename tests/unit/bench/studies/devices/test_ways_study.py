"""The study of devices: what it is asked for, its arithmetic, and what it makes of rounds that are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.presentation.figures.sheet import PAGE
from bench.recording.records import StudyRequest
from bench.studies.devices import figure, page, results, sheets, ways
from bench.studies.devices.index import Devices, Measured, Row
from bench.studies.devices.records import Clients, Handlers, Held, Round, Visit
from bench.studies.devices.study import CLIENTS, HANDLERS, PROMISES, WAYS, DevicesStudy
from bench.studies.devices.ways import NAMES
from tests.unit.bench.studies.devices import known_ways

NONE_HELD = Held(processes=0, bytes=0, sockets=0, tracked=2)


def asked(**choices: tuple[str, ...]) -> StudyRequest:
    return StudyRequest(study="devices", choices=choices)


@pytest.fixture(scope="module")
def found() -> Devices:
    held = Held(processes=10, bytes=10 * 2**20, sockets=10, tracked=2)
    left = NONE_HELD.model_copy(update={"processes": 1000, "sockets": 2000, "tracked": 2002})
    return Devices(
        rows=[
            Row(case="none", recording="a", verdict="violated", attained={"to the press": 0.5}),
            Row(case="node", recording="b", verdict="held", attained={"to the press": 1.0}),
        ],
        ways=results.summed_up(known_ways.rounds()),
        handlers=[Handlers(way="relay", handlers=10, held=held)],
        clients=[
            Clients(
                way="relay",
                clients=1000,
                answered=1000,
                before=NONE_HELD,
                at_once=left,
                after=NONE_HELD,
                gone_s=31.2,
                waited_s=31.2,
            )
        ],
    )


def test_ways_are_compared_with_those_of_the_same_round(found: Devices) -> None:
    assert [one.way for one in found.ways] == [*NAMES]
    one = found.by_way["translate"]
    assert one.p50_of_direct is not None
    assert one.rate_of_direct is not None
    assert one.cost_of_relay is not None
    assert one.p50_of_direct.median == pytest.approx(0.26 / 0.25)
    assert one.p50_of_direct.share == pytest.approx(0, abs=1e-6)  # however slow the machine was
    assert one.rate_of_direct.median == pytest.approx(7.6 / 8)
    assert one.cost_of_relay.median == pytest.approx((1.1 / 7.6) / (2 / 2), rel=1e-3)
    assert one.p50_s["tcp"].median == pytest.approx(0.26 * 1.2 / 1000)


def test_processors_time_is_what_was_busy_for_what_arrived(found: Devices) -> None:
    relay = found.by_way["relay"]
    assert relay.per_gigabyte_s is not None
    assert relay.per_packet_ns is not None
    # Two processors for 2 s, and 2 Gbit/s less a sixth for as long.
    assert relay.per_gigabyte_s.median == pytest.approx(4 / (0.25 * 2 / 1.2), rel=1e-3)
    assert relay.per_packet_ns.median == pytest.approx(2 / 20_000 * 1e9)


def measured(spoiled: Visit) -> Measured:
    rounds = [Round(round=1, visits=[known_ways.visit("direct"), spoiled])]
    (one,) = (each for each in results.summed_up(rounds) if each.way == spoiled.way)
    return one


def test_what_the_machine_spoiled_has_no_number_and_what_it_did_not_has_one() -> None:
    beside = measured(known_ways.visit("relay", others_s=1.0))
    assert "the flow: other processes took 1.00 s" in beside.invalid[0]
    assert beside.bits_per_second is beside.per_gigabyte_s is beside.rate_of_direct is None
    assert beside.p50_s["tcp"].count == 1
    late = measured(known_ways.visit("relay", late_s=0.002))
    assert late.invalid == [f"round 1: {one}: the generator was 2.0 ms late" for one in ("tcp", "udp")]
    assert late.p50_s == {}
    assert late.p50_of_direct is None
    assert late.bits_per_second
    assert sheets.ways(Devices(ways=[late])).rows[0][1:4] == ["invalid / invalid"] * 2 + ["2.00"]


def test_tables_say_it_all(found: Devices) -> None:
    page = sheets.markdown(found)
    assert "| translate | 0.312 / 0.624 | 0.312 / 0.624 | 6.33 |" in page
    assert "| relay | 10 | 10 | 10.0 |" in page
    assert "| relay | 1,000 | 1,000 / 2,000 / 2,000 | 0 / 0 / 0 | 31 s |" in page
    assert "| none | violated | 50 % |" in page


def test_the_figure_has_a_row_for_each_way(found: Devices) -> None:
    drawn = figure.draw(found, PAGE)
    first, *others = drawn.axes
    assert [label.get_text() for label in first.get_yticklabels()] == [*NAMES]
    assert len(others) == len(figure.PANELS) - 1


def test_quickly_there_are_neither_clients_nor_promises() -> None:
    made = DevicesStudy()
    assert [*made.probes(asked(quick=("",)))] == [WAYS, HANDLERS]
    assert [*made.probes(asked())] == [WAYS, HANDLERS, CLIENTS]
    assert [case.name for case in made.cases(asked(part=(PROMISES,)))] == ["none", "pod", "node"]
    assert not made.cases(asked(part=(WAYS,)))
    assert sum(made.probes(asked()).values()) < 12 * 60


@pytest.mark.parametrize(
    ("choice", "value", "words"),
    [
        ("way", "tunnel", "--way: no way 'tunnel' (ways: gateway, direct,"),
        ("part", "all", "--part: no part 'all' (parts: ways, handlers,"),
        ("repetitions", "0", "--repetitions: must be an integer from 1 to 100, not '0'"),
    ],
)
def test_what_there_is_not_is_refused(choice: str, value: str, words: str) -> None:
    with pytest.raises(LookupError) as refused:
        DevicesStudy().probes(asked(**{choice: (value,)}))
    assert words in str(refused.value)


def test_its_scenarios_are_what_they_should_be() -> None:
    assert ways.scenario().transfers
    many = ways.many_handlers()
    assert {ways.connection(mode, count) for mode in ("translate", "relay") for count in (1, 10, 100)} == {
        *many.connections
    }
    assert ways.many_clients().devices


def test_a_study_that_has_nothing_yet_shows_nothing(tmp_path: Path) -> None:
    made = DevicesStudy()
    (tmp_path / "devices.json").write_text(Devices().model_dump_json())
    assert made.tables(tmp_path) == []
    assert made.valid(tmp_path)


def test_the_page_says_what_was_measured(found: Devices) -> None:
    more = [Handlers(way=way, handlers=100, held=NONE_HELD) for way in ("translate", "relay")]
    clients = [found.clients[0], found.clients[0].model_copy(update={"way": "translate", "gone_s": None})]
    text = page.page(found.model_copy(update={"handlers": more, "clients": clients}))
    assert "new exchanges 0.6 / 1.2 ms (p50 / p99), 1.7 Gbit/s" in text
    assert "That is 1.04 of what an exchange takes" in text
    assert "nothing is left after 31 s and (something is)" in text
    assert "`none`: violated, 50 % to the press; `node`: held, 100 % to the press" in text
