"""What checks measure that is no recording: something is done on a testbed, and what is kept of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from bench.recording import requests
from bench.studies.promise.attacks import possible, sample
from bench.studies.promise.check import Ground, Stage
from bench.studies.promise.probes import attacking, neighbours
from bench.studies.promise.records import Asked, Rounds, Steps
from testbed.assembly import assemble, on_clusters
from testbed.scenario.units import format_rate
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


@contextmanager
def _testbed(
    ground: Ground, without: Collection[str] = LATER, settings: Collection[str] = (), link: float = 1.0
) -> Iterator[Testbed]:
    """Have the scenario up until the end of the block, without some of its pods.

    ``link``: the share of the scenario's link, and of its promises; one that exists stays what it is.
    Raises RuntimeError, LookupError and ScenarioError.
    """
    asked = ground.asked
    request = asked.case(SCENARIO, (*settings, f"enforcement={ground.network}", *asked.overrides))
    faster = ground.link_bps / LINK_BPS if asked.choices.get("link") else link
    scenario = requests.read(request.model_copy(update={"scale": asked.scale * faster}))
    provider, orchestrator = asked.provider, asked.orchestrator
    if asked.kubeconfigs:
        provider, orchestrator = on_clusters(asked.kubeconfigs)
    with assemble(scenario, provider, orchestrator, without).running(without) as testbed:
        yield testbed


def arriving(ground: Ground, stage: Stage) -> Rounds:
    """Let a promised pod come to a full link, several times."""
    with _testbed(ground) as testbed:
        found = []
        for one in neighbours.arriving(testbed, LATE, LATE, ("promised", "neighbour"), ROUNDS):
            stage(one.name)
            found.append(one)
        return Rounds(rounds=found)


def room(ground: Ground, stage: Stage) -> Steps:
    """Let two pods ask for more than there is."""
    rate = format_rate(int(EITHER * LINK_BPS))
    settings = [f"pods.{pod}.guarantee={rate}" for pod in ("promised", LATE)]
    with _testbed(ground, settings=settings) as testbed:
        return neighbours.room(testbed, "promised", LATE)


def control(ground: Ground, stage: Stage) -> Asked:
    """Let nodes ask each other while a link is full."""
    with _testbed(ground) as testbed:
        workers = testbed.scenario.clusters["a"].workers
        return neighbours.control(testbed, workers[0], workers[1], "promised", "neighbour")


def attacks(ground: Ground, stage: Stage, turn: int | None = None) -> Rounds:
    """Try every attack that there is all for, or those of a turn; on clusters that exist none on others."""
    with _testbed(ground, link=NARROWER) as testbed:
        # All that the promised flow's receiver gets counts as that flow's, so the attacker sends elsewhere.
        scene = attacking.scene(testbed, "attacker", "promised", "far")
        there = possible(scene, only_own=ground.existing)
        tried = there if turn is None else sample(there, turn)
        found = []
        for one in attacking.rounds(testbed, tried, "attacker", scene, "promised", "neighbour"):
            stage(f"{one.name}: {one.sent} frames")
            found.append(one)
        return Rounds(rounds=found)


def some_attacks(ground: Ground, stage: Stage) -> Rounds:
    """Try some of them. The day has its turn, so that whoever asks daily has tried all before long."""
    return attacks(ground, stage, datetime.now(tz=UTC).date().toordinal())


def restarted(ground: Ground, stage: Stage) -> Rounds:
    """Restart what runs on the node of a pod that has a rate."""
    settings = ["pods.promised.ceiling=400M"]
    with _testbed(ground, settings=settings) as testbed:
        return Rounds(rounds=neighbours.restart(testbed, "promised"))


def without_gso(ground: Ground, stage: Stage) -> Rounds:
    """Turn segmentation offload off in pods that send."""
    with _testbed(ground, link=NARROW) as testbed:
        pods = ("promised", "neighbour")
        return Rounds(
            rounds=[neighbours.without_offloads(testbed, "promised", "neighbour", pods, WITHOUT_GSO_S)]
        )


def churn(ground: Ground, stage: Stage) -> Rounds:
    """Let pods go and come by turns."""
    with _testbed(ground, without=LATER[:1], link=NARROW) as testbed:
        return Rounds(rounds=[neighbours.churn(testbed, "promised", "neighbour", COMING, CHURN_S)])


def lacks_own_pods(ground: Ground) -> str | None:
    """Return why a check cannot be asked whose pods come and go, if they are not the kit's own."""
    return (
        "it is asked of testbeds of its own, whose pods come and go at its word" if ground.existing else None
    )


def lacks_own_ports(ground: Ground) -> str | None:
    """Return the same of one that needs nodes on whose ports nobody else listens."""
    if ground.existing or ground.asked.provider.partition(":")[0] == "netns":
        return lacks_own_pods(ground)
    return "it takes ports of nodes, which may be in use on machines"


def lacks_agents(ground: Ground) -> str | None:
    """Return the same of one that needs something on nodes that may be restarted."""
    if ground.existing or ground.agents:
        return lacks_own_pods(ground)
    return "nothing runs on for its pods' networks here, once a plugin has answered"


def lacks_consent(ground: Ground) -> str | None:
    """Return why nobody may be attacked."""
    if ground.attacks:
        return None
    return (
        "it attacks, which --attack-own-pods asks for: one of the kit's own pods then forges frames as fast "
        "as it can, and others of them and the nodes' tables are its targets"
    )
