"""Ways to a device, shortly: each brings what is sent, and what proxy pods hold is seen."""

from __future__ import annotations

import pytest

from bench.studies.devices import measuring, ways
from bench.studies.devices.measuring import Lengths
from bench.studies.devices.ways import BY_NAME, RELAY, TRANSLATE
from bench.studies.ground import ground
from bench.studies.packets import Plan

SHORT = Lengths(0.2, 1, Plan(idle=0.1, lead=0.1, window=0.2, windows=1))


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize(
    "names", [("direct", "translate"), ("relay-far", "host"), ("gateway", "translate-far")]
)
def test_each_way_brings_all_that_is_sent(names: tuple[str, ...]) -> None:
    with ground(ways.scenario()) as testbed:
        found = measuring.visits(testbed, [BY_NAME[name] for name in names], SHORT, 1)
    assert [visit.way for visit in found.visits] == [*names]
    for visit in found.visits:
        assert {one.protocol: (one.count, one.lost) for one in visit.exchanged} == dict.fromkeys(
            ("tcp", "udp"), (40, {})
        )
        assert visit.flow.bytes > 0
        assert sum(visit.offered.packets) > 0


@pytest.mark.long(one_in=0)
def test_a_relay_is_a_process_for_each_handler_and_a_translation_is_none() -> None:
    with ground(ways.many_handlers()) as testbed:
        found = {(one.way, one.handlers): one.held for one in measuring.at_rest(testbed)}
    for handlers in ways.HANDLERS:
        assert found[TRANSLATE, handlers].processes == 0
        assert found[RELAY, handlers].processes == handlers
        assert found[RELAY, handlers].sockets == handlers


@pytest.mark.long(one_in=0)
def test_a_client_by_udp_is_a_process_of_a_relay_and_a_flow_of_the_kernel(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ways, "CLIENTS", 20)
    monkeypatch.setattr(measuring, "GONE_SECONDS", 0.0)
    with ground(ways.many_clients()) as testbed:
        translated, relayed = measuring.clients(testbed, lambda _: None)
    assert translated.answered == relayed.answered == 20
    assert translated.at_once.processes == 0
    assert relayed.at_once.processes - relayed.before.processes == 20
    assert translated.at_once.tracked - translated.before.tracked >= 20
    assert translated.gone_s is None
