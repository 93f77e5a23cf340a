from __future__ import annotations

from bench.generators import promised
from testbed.scenario.files import load
from tests.paths import ROOT


def said(*settings: str) -> list[str]:
    return list(promised.of(load(ROOT / "scenarios/congested.yaml", settings)).notes)


def test_of_each_promised_flow_is_said_whether_its_answers_are_admitted() -> None:
    (none,) = said()
    assert none == (
        "acknowledgements are not admitted at the receiver: (1) A-1 -> A-4 (none of 1G),"
        " (2) A-2 -> A-3 (none of 3G), (3) B-1 -> B-2 (none of 4G)"
    )
    some, others = said("pods.A-4.answers=35M", "pods.A-3.answers=30M")
    assert some == "acknowledgements are admitted at the receiver: (1) A-1 -> A-4 (35M of 1G, 3.5 %)"
    assert "(2) A-2 -> A-3 (30M of 3G, 1 %), (3)" in others


def test_a_network_that_promises_nothing_admits_nothing_and_udp_is_not_acknowledged() -> None:
    assert said("enforcement=none") == []
    assert said(*(f"flows[{n}].{key}" for n in range(3) for key in ("protocol=udp", "rate=1G"))) == []
