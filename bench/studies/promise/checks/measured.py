"""Checks of what is no recording: something is done on a testbed, and what was kept of it is judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.recording.records import Entry
from bench.studies.promise.check import About, Check, Evidence, Ground, Judgement, Run
from bench.studies.promise.checks.surroundings import Live

OWN_PODS = "it is asked of testbeds of its own, whose pods come and go at its word"
OWN_PORTS = "it takes ports of nodes, which may be in use on machines"
NO_AGENTS = "nothing runs on for its pods' networks here, once a plugin has answered"
REFUSED = (
    "it attacks, which --attack-own-pods asks for: one of the kit's own pods then forges frames as fast as "
    "it can, and others of them and the nodes' tables are its targets"
)


@dataclass(frozen=True)
class Measured(Check):
    """What is done, and how it is judged."""

    about: About
    make: Callable[[Live], Entry]
    judged: Callable[[Evidence], Judgement]
    seconds: float  # see Check, as of the next two
    attacks: bool = False
    on_request: bool = False
    own_ports: bool = False  # whether it needs nodes on whose ports nobody else listens
    restarts: bool = False  # whether it needs something on nodes that may be restarted

    def runs(self, ground: Ground) -> Mapping[str, Run]:
        """Return nothing: ``measure`` is all."""
        return {}

    def lack(self, ground: Ground) -> str | None:
        """Return that nodes, or pods, are other people's."""
        if ground.existing and not self.attacks:
            return OWN_PODS
        if self.own_ports and ground.asked.provider.partition(":")[0] != "netns":
            return OWN_PORTS
        if self.restarts and not ground.agents:
            return NO_AGENTS
        return REFUSED if self.attacks and not ground.attacks else None

    def measure(self, ground: Ground, stage: Callable[[str], None]) -> Entry:
        """Measure it on a testbed that is there for nothing else."""
        stage(self.about.asks)
        return self.make(Live(ground, stage))

    def judge(self, evidence: Evidence) -> Judgement:
        """Return what was found."""
        if evidence.measured is None:
            return Judgement("invalid", "it was not measured")
        return self.judged(evidence)
