"""What makes traffic; one tool a module: its commands, and how its output is read.

A scenario asks for a generator by name, and ``register`` makes one known. A file outside this project can do
that too: docs/examples/exchange_generator.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from bench.generators.generator import (
    Exchange,
    Exchanger,
    Generator,
    RawDataError,
    Record,
    Tool,
    idle_sample,
)
from bench.generators.iperf3 import Iperf3
from bench.generators.requests.tool import RequestsTool
from testbed.registry import Registry
from testbed.scenario import Requests, Scenario, Traffic, rules, texts, traffic_rules
from testbed.scenario.faults import Fault

__all__ = [
    "Exchange",
    "Exchanger",
    "Generator",
    "RawDataError",
    "Record",
    "Tool",
    "exchanger_of",
    "generator_of",
    "guaranteed",
    "idle_sample",
    "is_guaranteed",
    "register",
]

DEFAULT = Iperf3.name  # of flows and disturbances that name none
DEFAULT_EXCHANGER = RequestsTool.name  # of requests that name none

Kind = TypeVar("Kind", Generator, Exchanger)

TOOLS = Registry[Generator | Exchanger]("generator", word="generator")


def register(tool: Generator | Exchanger) -> None:
    """Let scenarios ask for a tool by its name. Raises ValueError if the name is taken."""
    TOOLS.register(tool.name, tool)


def generator_of(scenario: Scenario, traffic: Traffic) -> Generator:
    """Return what makes a transfer's traffic, as the scenario sets it. Raises LookupError for no such."""
    return _tool(Generator, scenario, traffic.generator or DEFAULT)  # type: ignore[type-abstract]


def exchanger_of(scenario: Scenario, requests: Requests) -> Exchanger:
    """Return what makes requests, as the scenario sets it. Raises LookupError for no such."""
    name = requests.generator or DEFAULT_EXCHANGER
    return _tool(Exchanger, scenario, name, of=" of requests")  # type: ignore[type-abstract]


def _tool(kind: type[Kind], scenario: Scenario, name: str, of: str = "") -> Kind:
    tool = TOOLS.configured(name, scenario.settings) if name in TOOLS else None
    if not isinstance(tool, kind):
        there = ", ".join(other for other, one in TOOLS.items() if isinstance(one, kind))
        raise LookupError(f"no generator {name!r}{of} (generators: {there})")
    return tool


def is_guaranteed(scenario: Scenario, flow: Traffic) -> bool:
    """Tell whether a flow can be held against a guarantee.

    Its pod was promised one, and its generator sends all that it may. Raises LookupError for an unknown
    generator.
    """
    return scenario.guarantee_of(flow) is not None and generator_of(scenario, flow).saturates


def guaranteed(scenario: Scenario) -> list[Traffic]:
    """Return the flows that can be held against a guarantee; see ``is_guaranteed``."""
    return [flow for flow in scenario.flows if is_guaranteed(scenario, flow)]


def _faults(scenario: Scenario) -> Iterator[Fault]:
    """The rule of which generators there are, and what each can do."""
    for at, traffic in traffic_rules.enumerated(scenario):
        try:
            tool = generator_of(scenario, traffic)
        except LookupError as error:
            yield Fault((*at, "generator"), str(error))
            continue
        for field, words in tool.faults(traffic):
            yield Fault((*at, field), f"generator {tool.name!r}: {words}")
        size = tool.most_bytes(traffic, scenario.measurement.interval)
        if size > texts.MOST_BYTES:
            yield Fault(
                (*at, "duration"),
                f"its output may have {size:,} bytes, and at most {texts.MOST_BYTES:,} are read; "
                "choose a shorter duration, fewer streams (parallel) or a longer measurement.interval",
            )
    for index, requests in enumerate(scenario.requests):
        try:
            exchanger = exchanger_of(scenario, requests)
        except LookupError as error:
            yield Fault(("requests", index, "generator"), str(error))
            continue
        for field, words in exchanger.faults(requests):
            yield Fault(("requests", index, field), f"generator {exchanger.name!r}: {words}")


register(Iperf3())
register(RequestsTool())
rules.add(_faults)
