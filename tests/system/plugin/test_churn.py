"""Two clusters on one node that know no rest: whatever they call, and whatever is killed, the node holds what
a model says (churn_model.py): the promises never exceed the capacity, no cluster costs another anything, and
ledger, classes and map are one after `reconcile`.

CONCORDE_CHURN_STEPS says how many steps to take.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from concorde.node.records import Tree
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from tests import cases
from tests.system.plugin.churn_differences import differences, excess
from tests.system.plugin.churn_model import (
    Add,
    Answer,
    Call,
    Check,
    Del,
    Flush,
    Gc,
    Killed,
    Reconcile,
    Status,
    Step,
    World,
    serial,
)
from tests.system.plugin.churn_sight import (
    CAPACITY,
    FAMILIES,
    PROMISABLE,
    QDISC,
    RESERVE,
    USABLE,
    Promise,
    Sight,
    on_wire,
    rates,
)
from tests.system.plugin.conftest import Document, Node
from tests.system.plugin.inside import Inside
from tests.system.plugin.uplinks import on_uplink

PROGRAM = Path(__file__).with_name("churn.py")
STEPS = cases.count("CONCORDE_CHURN_STEPS", 25, 3000)
STEPS_ON_A_NODE = 25
PODS = {cluster: [f"{cluster}-{number}" for number in range(4)] for cluster in "ab"}
FLUSHES = {
    **{frozenset({family}): ["nft", "delete", "table", family, "concorde"] for family in sorted(FAMILIES)},
    FAMILIES: ["nft", "flush", "ruleset"],
    frozenset({QDISC}): ["tc", "qdisc", "delete", "dev", "eth0", "root"],
}

pods = st.sampled_from(PODS["a"] + PODS["b"])
clusters = st.sampled_from("ab")
# Of 980 Mbit/s; 1,000 never fit.
promises = st.builds(
    Promise,
    st.one_of(st.integers(1, 100), st.integers(1, 300), st.none(), st.integers(1, 300), st.just(1000)),
    st.one_of(st.none(), st.none(), st.integers(100, 1200)),
)
several_promises = st.lists(promises, min_size=2, max_size=6)
# An ADD takes 25 ms, and 100 where others want the processors.
kills = st.builds(Killed, st.integers(0, 30) | st.integers(0, 120), st.booleans())
some_kills = st.none() | kills
Calls = list[tuple[Call, Killed | None]]


def calls_of(cluster: str) -> st.SearchStrategy[Calls]:
    """What a runtime may do at once: several things to different pods, but GC only alone."""
    of_cluster = st.sampled_from(PODS[cluster])
    adds = st.builds(Add, of_cluster, promises)
    dels = st.builds(Del, of_cluster)
    calls = st.one_of(adds, dels, adds, dels, st.builds(Check, of_cluster))
    several = st.lists(
        st.tuples(calls, some_kills), min_size=1, max_size=2, unique_by=lambda drawn: drawn[0].pod
    )
    alone = st.one_of(st.just(Status(cluster)), st.builds(Gc, st.just(cluster)))
    return st.one_of(several, several, st.tuples(st.tuples(alone, some_kills)).map(list))


both_clusters = st.builds(list.__add__, calls_of("a"), calls_of("b"))


class Churn(RuleBasedStateMachine):
    """A node, its two clusters' runtimes, and the worlds it may be in."""

    def __init__(self, plugin: Path, counted: Counter[str]) -> None:
        super().__init__()
        self.counted = counted
        self.node = Node(plugin)
        self.node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
        self.node.add_pod_namespace(*PODS["a"], *PODS["b"])
        self.inside = Inside(self.node, PROGRAM, plugin)
        self.worlds = {World()}
        self.attached: dict[str, tuple[Promise, Document]] = {}  # what runtimes know: ADD's result
        self.story: list[str] = []
        self.watched: list[str] = []
        self.sight = self.ask([])[1]
        self.sound = True

    @initialize(drawn=several_promises)
    def begin(self, drawn: list[Promise]) -> None:
        # Whatever is drawn and however fast the machine is: one that never fits, and one killed as it starts.
        self.take(Add(PODS["b"][3], Promise(1000)))
        self.take_at_once([(Add(PODS["a"][3], Promise(1)), Killed(5, True))])
        self.add_to_both_at_once(drawn)

    @rule(drawn=several_promises)
    def add_to_both_at_once(self, drawn: list[Promise]) -> None:
        self.take(*[Add(PODS["ab"[at % 2]][at // 2], promise) for at, promise in enumerate(drawn)])

    @rule(pod=pods, promise=promises, killed=some_kills)
    def add(self, pod: str, promise: Promise, killed: Killed | None) -> None:
        self.take_at_once([(Add(pod, promise), killed)])

    @rule(pod=pods, promise=promises, killed=some_kills)
    def replace(self, pod: str, promise: Promise, killed: Killed | None) -> None:
        self.take(Del(pod))
        self.take_at_once([(Add(pod, promise), killed)])

    @rule(pod=pods, netns=st.booleans(), previous=st.booleans(), killed=some_kills)
    def delete(self, pod: str, netns: bool, previous: bool, killed: Killed | None) -> None:
        self.take_at_once([(Del(pod, netns, previous), killed)])

    @rule(pod=pods, times=st.integers(2, 3))
    def delete_repeatedly(self, pod: str, times: int) -> None:
        self.take(*[Del(pod)] * times)

    @rule(call=st.builds(Check, pods) | st.builds(Status, clusters))
    def check(self, call: Check | Status) -> None:
        self.take(call)

    @rule(cluster=clusters, forgotten=st.frozensets(pods, max_size=2), killed=some_kills)
    def gc(self, cluster: str, forgotten: frozenset[str], killed: Killed | None) -> None:
        self.take_at_once([(Gc(cluster, forgotten), killed)])

    @rule(killed=some_kills)
    def reconcile(self, killed: Killed | None) -> None:
        self.take_at_once([(Reconcile(), killed)])

    @rule(parts=st.sampled_from(list(FLUSHES)))
    def flush(self, parts: frozenset[str]) -> None:
        self.take(Flush(parts))

    @rule(calls=both_clusters)
    def both_clusters_at_once(self, calls: Calls) -> None:
        self.take_at_once(calls)

    @rule(calls=both_clusters, killed=some_kills)
    def both_clusters_and_a_repair_at_once(self, calls: Calls, killed: Killed | None) -> None:
        self.take_at_once([*calls, (Reconcile(), killed)])

    @invariant()
    def no_more_is_promised_than_the_uplink_has(self) -> None:
        promised = sum(row.rate for row in self.sight.rows.values())
        self.require(promised <= PROMISABLE, f"{promised} of {PROMISABLE} are promised in the ledger")
        for shown in self.watched:
            self.require(not excess(rates(shown)), excess(rates(shown)))

    @invariant()
    def nobody_shares_an_address_or_a_class(self) -> None:
        rows = self.sight.rows.values()
        for taken in ([row.address for row in rows], [row.handle for row in rows if row.handle]):
            self.require(len(set(taken)) == len(taken), f"twice in {taken}")

    def teardown(self) -> None:
        """At last all is put right, and compared; then the node ends."""
        try:
            if self.sound:
                self.finish()
        finally:
            self.inside.close()
            self.node.close()

    def finish(self) -> None:
        self.take(Reconcile())
        # Nothing is missing nor half made in any world now: ledger, classes and map are one.
        self.require(
            all(world == world.repaired() for world in self.worlds) or not self.sight.tree, "not repaired"
        )
        self.take(Gc("a"), Gc("b"))
        self.require(set(self.sight.rows) == set(self.attached), "rows that no runtime knows")
        self.take(Reconcile(), Status("a"), Status("b"))
        self.take(*map(Check, self.attached))
        ends = {result["interfaces"][1]["name"] for _, result in self.attached.values()}
        self.require(self.node.veths() == ends | {"eth0", "eth0-peer"}, f"{self.node.veths()}")

    def take(self, *calls: Call) -> None:
        """Take a step whose calls, at once if there are several, are answered."""
        self.take_at_once([(call, None) for call in calls])

    def take_at_once(self, calls: Calls) -> None:
        self.sound = False
        before, attached = self.sight, frozenset(self.attached)
        answers, self.sight = self.ask(calls)
        self.story += [f"{call} -> {answer}" for call, answer in answers]
        self.counted["steps"] += 1
        self.counted.update(outcome(call, answer) for call, answer in answers)
        followed = serial(self.worlds, answers, Step(attached, self.sight))
        self.require(bool(followed), f"no order of the calls explains their answers in {self.worlds}")
        found = {world: differences(world, self.sight) for world in followed}
        self.require(not all(found.values()), f"the node holds something else: {found}")
        self.worlds = {world for world, texts in found.items() if not texts}
        concerned = {pod for call, _ in calls for pod in call.pods(before.rows)}
        for pod in before.rows.keys() - concerned:
            self.require(self.sight.rows.get(pod) == before.rows[pod], f"{pod} has lost something")
        for call, answer in answers:
            self.learn(call, answer)
        self.sound = True

    def learn(self, call: Call, answer: Answer) -> None:
        """What a call's end tells its runtime."""
        if isinstance(call, Add) and not isinstance(answer, Killed) and "code" not in answer:
            address = answer["ips"][0]["address"].partition("/")[0]
            self.require(self.sight.rows[call.pod].address == address, f"{call.pod} was told {address}")
            self.attached[call.pod] = call.promise, dict(answer)
        elif isinstance(call, Del):
            self.attached.pop(call.pod, None)
        elif isinstance(call, Gc):
            for pod in call.pods(self.attached) - call.valid(self.attached):
                del self.attached[pod]

    def ask(self, calls: Calls) -> tuple[list[tuple[Call, Answer]], Sight]:
        """Have the calls made in the node, and look."""
        commands = [self.command(call, killed) for call, killed in calls]
        told = self.inside.ask({"commands": commands})
        self.watched = told["watched"]
        answers: list[tuple[Call, Answer]] = []
        for (call, killed), answer in zip(calls, told["answers"], strict=True):
            if answer is None:
                assert killed is not None
                answers.append((call, killed))
            else:
                answers.append((call, self.read(call, answer)))
        return answers, Sight(told["sight"])

    def read(self, call: Call, answer: Document) -> Document:
        if isinstance(call, Flush):
            return {}
        self.require(answer["stderr"] == "", f"{call}: {answer['stderr']}")
        if isinstance(call, Reconcile):
            self.require(answer["status"] == 0, f"{answer}")
            return {"text": answer["stdout"]}
        read: Document = json.loads(answer["stdout"] or "{}")
        return read

    def command(self, call: Call, killed: Killed | None) -> Document:
        """A call as the program inside the node takes it."""
        environment = {"PATH": os.environ["PATH"]}
        stdin = ""
        if isinstance(call, Flush):
            argv = FLUSHES[call.parts]
        else:
            argv = [str(self.node.plugin), *(["reconcile"] if isinstance(call, Reconcile) else [])]
            if not isinstance(call, Reconcile):
                environment, stdin = self.cni(call)
        times = None if killed is None else (killed.after / 1000, killed.with_children)
        return {"argv": argv, "environment": environment, "stdin": stdin, "killed": times}

    def cni(self, call: Call) -> tuple[dict[str, str], str]:
        """Environment and configuration as a runtime gives them."""
        promise, pod, netns = Promise(), "none", None
        keys: Document = {}
        if isinstance(call, Gc):
            valid = [{"containerID": pod, "ifname": "eth0"} for pod in sorted(call.valid(self.attached))]
            keys = {"cni.dev/valid-attachments": valid}
        elif isinstance(call, Add):
            pod, promise = call.pod, call.promise
        elif isinstance(call, Check | Del):
            pod = call.pod
            promise, result = self.attached.get(pod, (promise, {"cniVersion": "1.1.0"}))
            if isinstance(call, Check) or call.previous:
                keys = {"prevResult": result}
            if isinstance(call, Del) and not call.netns:
                netns = ""
        cluster = call.cluster if isinstance(call, Gc | Status) else pod[0]
        document = on_uplink(quantity(promise.guarantee), quantity(promise.ceiling), cluster, **keys)
        return self.node.environment(type(call).__name__.upper(), pod, netns), json.dumps(document)

    def require(self, holds: bool, otherwise: str) -> None:
        """Fail with what led to it: a replay may be killed at other moments, and so not fail."""
        assert holds, "\n".join([otherwise, "after", *self.story])


def quantity(mbits: int | None) -> str:
    return "" if mbits is None else f"{mbits}M"


def outcome(call: Call, answer: Answer) -> str:
    if isinstance(answer, Killed):
        end = "killed"
    else:
        end = f"error {answer['code']}" if "code" in answer else "done"
    return f"{type(call).__name__} {end}"


def test_the_model_s_sums_are_those_of_the_tree() -> None:
    """Of a few bits more, tc shows a kilobit more where a sum is just below one."""
    tree = Tree("eth0", CAPACITY, RESERVE, ())
    assert (tree.usable, tree.promisable) == (USABLE, PROMISABLE)
    assert all(on_wire(rate) == tree.on_wire(rate) for rate in range(0, PROMISABLE, 999_983))


@pytest.mark.long
def test_the_node_holds_what_the_model_says_whatever_was_killed(plugin: Path) -> None:
    counted: Counter[str] = Counter()

    @seed(cases.seed())
    def made() -> Churn:
        return Churn(plugin, counted)

    run_state_machine_as_test(
        made,  # type: ignore[arg-type]  # "a class or a function", says its documentation
        settings=settings(
            max_examples=-(-STEPS // STEPS_ON_A_NODE),
            stateful_step_count=STEPS_ON_A_NODE,
            derandomize=True,
            database=None,
            deadline=None,
            print_blob=True,
            report_multiple_bugs=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        ),
    )
    print(sorted(counted.items()))  # noqa: T201 - shown when it fails, or with -s
    cases.about(counted, "Add done", "Add killed", "Add error 105", "Del done", "Check done", "Gc done")
