"""Checks of what is no recording: something is done on a testbed, and what was kept of it is judged."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from bench.recording import requests
from bench.recording.records import Entry
from bench.studies.promise.attacks import Attack, possible, sample
from bench.studies.promise.check import About, Check, Evidence, Ground, Judgement, Run
from bench.studies.promise.probes import attacking, neighbours
from bench.studies.promise.probes import control as asking
from bench.studies.promise.records import Asked, Rounds, Steps
from testbed.assembly import assemble, on_clusters
from testbed.scenario.quantities import format_rate
from testbed.testbed import Testbed

SCENARIO = "promise/beside"
LINK_BPS = 10**9  # the scenario's
LATE = "late"  # a pod, and its flow
LATER = (LATE, "coming-1", "coming-2", "coming-3")  # pods that come, or not
COMING = LATER[1:]
ROUNDS = 7
CHURN_S, WITHOUT_GSO_S = 5.0, 4.0
# Of the scenario's link, where the testbed makes it: whether a promise endures is a question of the link, and
# two slow processors fill this one with ease, beside an attack as well.
NARROW = 0.25
# The same beside the smallest frames, of which a processor has as much work as of large ones.
NARROWER = 0.1
# Of the link: either of two pods fits it, and not both.
EITHER = 0.55


@dataclass(frozen=True)
class Live:
    """What a measurement is given."""

    ground: Ground
    stage: Callable[[str], None]

    @contextmanager
    def testbed(
        self, without: Collection[str] = LATER, settings: Collection[str] = (), link: float = 1.0
    ) -> Iterator[Testbed]:
        """Have the scenario up until the end of the block, without some of its pods.

        ``link``: the share of the scenario's link, and of its promises; one that exists stays what it is.
        Raises RuntimeError, LookupError and ScenarioError.
        """
        asked = self.ground.asked
        network = f"enforcement={self.ground.network}"
        request = asked.case(SCENARIO, (*settings, network, *asked.overrides))
        faster = self.ground.link_bps / LINK_BPS if asked.choices.get("link") else link
        request = request.model_copy(update={"scale": asked.scale * faster})
        scenario = requests.read(request)
        provider, orchestrator = asked.provider, asked.orchestrator
        if asked.kubeconfigs:
            provider, orchestrator = on_clusters(asked.kubeconfigs)
        with assemble(scenario, provider, orchestrator, without).running(without) as testbed:
            yield testbed


def arriving(live: Live) -> Rounds:
    """Let a promised pod come to a full link, several times."""
    with live.testbed() as testbed:
        found = []
        for one in neighbours.arriving(testbed, LATE, LATE, ("promised", "neighbour"), ROUNDS):
            live.stage(one.name)
            found.append(one)
        return Rounds(rounds=found)


def room(live: Live) -> Steps:
    """Let two pods ask for more than there is."""
    rate = format_rate(int(EITHER * LINK_BPS))
    settings = [f"pods.{pod}.guarantee={rate}" for pod in ("promised", LATE)]
    with live.testbed(settings=settings) as testbed:
        return neighbours.room(testbed, "promised", LATE)


def control(live: Live) -> Asked:
    """Let nodes ask each other while a link is full."""
    with live.testbed() as testbed:
        workers = testbed.scenario.clusters["a"].workers
        return asking.measure(testbed, workers[0], workers[1], "promised", "neighbour")


def attacks(live: Live) -> Rounds:
    """Try every attack that there is all for; on clusters that exist those that reach nobody else."""
    return _tried(live, lambda there: there)


def some_attacks(live: Live) -> Rounds:
    """Try some of them. The day has its turn, so that whoever asks daily has tried all before long."""
    today = datetime.now(tz=UTC).date().toordinal()
    return _tried(live, lambda there: sample(there, today))


def _tried(live: Live, choose: Callable[[Sequence[Attack]], Sequence[Attack]]) -> Rounds:
    with live.testbed(link=NARROWER) as testbed:
        # All that the promised flow's receiver gets counts as that flow's, so the attacker sends elsewhere.
        seen = attacking.scene(testbed, "attacker", "promised", "far")
        tried = choose(possible(seen, only_own=live.ground.existing))
        found = []
        for one in attacking.rounds(testbed, tried, "attacker", seen, "promised", "neighbour"):
            live.stage(f"{one.name}: {one.sent} frames")
            found.append(one)
        return Rounds(rounds=found)


def restarted(live: Live) -> Rounds:
    """Restart what runs on the node of a pod that has a rate."""
    settings = ["pods.promised.ceiling=400M"]
    with live.testbed(settings=settings) as testbed:
        return Rounds(rounds=neighbours.restart(testbed, "promised"))


def without_gso(live: Live) -> Rounds:
    """Turn segmentation offload off in pods that send."""
    with live.testbed(link=NARROW) as testbed:
        pods = ("promised", "neighbour")
        return Rounds(
            rounds=[neighbours.without_offloads(testbed, "promised", "neighbour", pods, WITHOUT_GSO_S)]
        )


def churn(live: Live) -> Rounds:
    """Let pods go and come by turns."""
    with live.testbed(without=LATER[:1], link=NARROW) as testbed:
        return Rounds(rounds=[neighbours.churn(testbed, "promised", "neighbour", COMING, CHURN_S)])


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
