"""The whole program against an API in memory that fails in all ways that an API can."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from edge import leader
from edge.addresses import controller
from edge.addresses.books import FINALIZER, FIRST_SPEC, WAITS, Books
from edge.addresses.cluster import CONFIGS, NODES
from edge.addresses.controller import Options, parse
from edge.http import Json, Server
from edge.log import Logger
from edge.watch import News
from tests.apis import config
from tests.unit.edge.stub import LOST, Running, StubApi, serving
from tests.waiting import until

OURS, VENDORS = CONFIGS
EVENTS = "/api/v1/events"


class Case(Running):
    """An API, and a controller of it that runs in a thread."""

    def __init__(self, api: StubApi) -> None:
        super().__init__(api.url)
        self.api = api

    def run(self, arguments: list[str], stop: threading.Event) -> None:
        options = parse(arguments)
        server = options.server()
        controller.lead(options, server, stop, Logger(self.stream))
        server.close()

    def node(self, name: str, *blocks: str, **labels: str) -> Json:
        spec = {"podCIDR": blocks[0], "podCIDRs": list(blocks)} if blocks else {}
        return self._done("POST", NODES, {"metadata": {"name": name, "labels": labels}, "spec": spec})

    def config(self, name: str, ipv4: str, ipv6: str = "", **labels: str) -> Json:
        return self._done("POST", OURS, config(name, ipv4, ipv6, **labels))

    def change(self, path: str, body: Json) -> Json:
        return self._done("PATCH", path, body)

    def delete(self, path: str) -> None:
        self._done("DELETE", path)

    def _done(self, method: str, path: str, body: Any = None) -> Json:
        status, answer = self.api.do(method, path, body)
        assert status in (200, 201), answer
        return answer

    def until(self, what: Callable[[], object]) -> None:
        until(what, hint=lambda: f"{self.api.blocks()}\n{self.stream.getvalue()}")

    def until_blocks(self, **wanted: str) -> None:
        """Wait until nodes have blocks; several are written with spaces between."""
        self.until(lambda: self.api.blocks() == {name: text.split() for name, text in wanted.items()})

    def condition(self, name: str, kind: str = OURS) -> Json:
        """Return what a config says of itself."""
        conditions = self.api.all(kind)[name].get("status", {}).get("conditions")
        return conditions[0] if conditions else {"reason": ""}

    def until_reason(self, name: str, reason: str) -> Json:
        self.until(lambda: self.condition(name)["reason"] == reason)
        return self.condition(name)

    def events(self, about: str) -> dict[str, str]:
        """Return reasons and messages of what is said of an object."""
        found = [one for one in self.api.all(EVENTS).values() if one["involvedObject"]["name"] == about]
        return {one["reason"]: one["message"] for one in found}


@contextmanager
def case() -> Iterator[Case]:
    with serving() as api:
        made = Case(api)
        try:
            yield made
        finally:
            made.end()


@pytest.fixture
def one(monkeypatch: pytest.MonkeyPatch) -> Iterator[Case]:
    """A case in which nothing is waited for that is for people's sake alone."""
    monkeypatch.setattr(controller, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(controller, "STATUS_SECONDS", 0.02)
    monkeypatch.setattr(controller, "FIRST_RETRY", 0.005)
    with case() as made:
        yield made


def test_at_start_what_nodes_have_is_taken_and_the_others_come_by_creation(one: Case) -> None:
    one.config("all", "10.0.0.0/16:24")
    one.node("z")
    one.node("a")
    one.node("old", "10.0.0.7/24")
    one.start("--reserved=10.0.1.0/24")
    one.until_blocks(z="10.0.2.0/24", a="10.0.3.0/24", old="10.0.0.7/24")
    one.until(lambda: one.api.all(OURS)["all"].get("status", {}).get("given") == 3)
    status = one.api.all(OURS)["all"]["status"]
    assert status["free"] == 252
    assert one.condition("all")["message"] == "3 given, 252 free; nothing of 10.0.1.0/24, which is reserved"
    assert status["nodes"][1] == {"name": "old", "blocks": ["10.0.0.0/24"]}
    assert one.condition("all")["status"] == "True"


def test_who_waits_is_told_why_and_served_by_a_config_a_free_block_or_a_label(one: Case) -> None:
    one.node("a")
    one.start()
    one.until(lambda: one.events("a") == {"CIDRNotAvailable": "there is no config yet: make one"})
    one.config("few", "10.0.0.0/30:30")
    one.until_blocks(a="10.0.0.0/30")
    one.node("b")
    one.until(lambda: "few has no block left" in one.events("b").get("CIDRNotAvailable", ""))
    one.until_reason("few", "Exhausted")
    one.delete(f"{NODES}/a")
    one.until_blocks(b="10.0.0.0/30")
    one.config("small", "10.1.0.0/30:30", size="small")
    one.node("c")
    one.until(lambda: "label the node so" in one.events("c").get("CIDRNotAvailable", ""))
    one.change(f"{NODES}/c", {"metadata": {"labels": {"size": "small"}}})
    one.until_blocks(b="10.0.0.0/30", c="10.1.0.0/30")


def test_a_block_stays_taken_until_its_node_is_gone(one: Case) -> None:
    one.config("one", "10.0.0.0/30:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    one.change(f"{NODES}/a", {"metadata": {"finalizers": ["somebody.else/waits"]}})
    one.delete(f"{NODES}/a")
    one.node("b")
    one.until(lambda: one.events("b"))
    assert one.api.blocks() == {"a": ["10.0.0.0/30"], "b": []}
    one.change(f"{NODES}/a", {"metadata": {"finalizers": []}})
    one.until_blocks(b="10.0.0.0/30")


def test_another_node_of_the_same_name_gets_a_block_of_its_own(one: Case) -> None:
    one.config("all", "10.0.0.0/16:24")
    one.config("small", "10.1.0.0/24:28", size="small")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/24")
    one.delete(f"{NODES}/a")
    one.node("a", size="small")
    one.until_blocks(a="10.1.0.0/28")
    one.node("b")
    one.until_blocks(a="10.1.0.0/28", b="10.0.0.0/24")


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize("status", [500, 503, 429, 409, 403])
def test_what_is_refused_is_tried_again_with_the_same_block(one: Case, status: int) -> None:
    tries: Counter[str] = Counter()

    def fault(method: str, path: str) -> object:
        if method == "PATCH" and path.startswith(NODES):
            tries[path] += 1
            return status if tries[path] <= 3 else None
        return None

    one.api.fault = fault
    one.config("all", "10.0.0.0/29:30")
    one.node("a")
    one.node("b")
    one.start()
    one.until_blocks(a="10.0.0.0/30", b="10.0.0.4/30")


def test_an_answer_that_is_lost_is_read_again_and_nothing_is_given_twice(one: Case) -> None:
    lost: list[str] = []

    def fault(method: str, path: str) -> object:
        if method == "PATCH" and path.startswith(NODES) and path not in lost:
            lost.append(path)
            return LOST
        return None

    one.api.fault = fault
    one.config("all", "10.0.0.0/28:30")
    for name in "abcd":
        one.node(name)
    one.start()
    one.until_blocks(a="10.0.0.0/30", b="10.0.0.4/30", c="10.0.0.8/30", d="10.0.0.12/30")
    one.until(lambda: len(lost) == 4)
    patches = Counter(path for method, path in one.api.asked if method == "PATCH" and "nodes/" in path)
    assert set(patches.values()) == {1}  # the answer was there to be read


def test_who_was_given_a_block_by_somebody_else_keeps_that(one: Case) -> None:
    def fault(method: str, path: str) -> object:
        if method == "PATCH" and path.startswith(f"{NODES}/a") and not one.api.blocks()["a"]:
            one.change(f"{NODES}/a", {"spec": {"podCIDR": "10.0.0.4/30", "podCIDRs": ["10.0.0.4/30"]}})
        return None

    one.api.fault = fault
    one.config("all", "10.0.0.0/29:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.4/30")
    one.node("b")
    one.until_blocks(a="10.0.0.4/30", b="10.0.0.0/30")


@pytest.mark.long(one_in=3)
@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("forget", [False, True])
def test_watches_that_end_lose_nothing(one: Case, half: bool, forget: bool) -> None:
    one.config("all", "10.0.0.0/24:30")
    one.start()
    wanted = {}
    for number in range(6):
        one.api.end_watches(half, forget)
        one.node(f"n{number}")
        wanted[f"n{number}"] = f"10.0.0.{4 * number}/30"
        one.until_blocks(**wanted)


def test_what_happened_while_nobody_watched_is_seen_by_the_list(one: Case) -> None:
    one.config("all", "10.0.0.0/30:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    away = threading.Event()
    one.api.fault = lambda method, path: 503 if path.startswith(NODES) and not away.is_set() else None
    one.api.end_watches(forget=True)
    one.until(lambda: "listed again" in one.stream.getvalue())
    one.delete(f"{NODES}/a")
    one.node("b")
    away.set()
    one.until_blocks(b="10.0.0.0/30")


def test_lists_of_many_pages_are_taken_whole(one: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.watch.PAGE", 2)
    one.config("all", "10.0.0.0/24:30")
    for number in range(5):
        one.node(f"n{number}")
    one.start()
    one.until_blocks(**{f"n{number}": f"10.0.0.{4 * number}/30" for number in range(5)})


def test_a_kind_that_comes_later_is_noticed(one: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edge.watch.ABSENT_SECONDS", 0.02)
    one.api.kinds -= {*CONFIGS}
    one.node("a")
    one.start()
    one.until(lambda: one.events("a"))
    one.api.kinds |= {VENDORS}
    document = config("theirs", "10.0.0.0/30:30")
    path = VENDORS.replace("v1alpha1/", "v1alpha1/namespaces/cluster-x/")
    one.api.do("POST", path, document)
    one.until_blocks(a="10.0.0.0/30")
    one.until(lambda: one.api.all(VENDORS)["theirs"]["metadata"].get("finalizers") == [FINALIZER])
    one.until(lambda: one.condition("theirs", VENDORS)["reason"] == "Exhausted")


def test_two_families_both_or_neither_and_where_one_is_kept_neither(one: Case) -> None:
    one.config("both", "10.0.0.0/28:30", "fd00::/124:126")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30 fd00::/126")
    one.api.families = 1
    one.api.end_watches(forget=True)
    one.until(lambda: sum("limit=" in path for _, path in one.api.asked) > 3)
    one.node("b")
    one.until(lambda: "IPv6DualStack" in one.events("b").get("CIDRNotAvailable", ""))
    assert one.until_reason("both", "OneFamily")["status"] == "False"
    one.until(lambda: "IPv6DualStack" in one.events("both").get("OneFamily", ""))
    assert one.api.blocks()["b"] == []
    one.config("single", "10.1.0.0/28:30")
    one.until_blocks(a="10.0.0.0/30 fd00::/126", b="10.1.0.0/30")
    one.api.families = 2
    one.api.end_watches(forget=True)
    one.until_reason("both", "Giving")


def test_of_one_family_and_two_the_one_that_came_first_says_how_many(one: Case) -> None:
    one.config("z", "10.0.0.0/28:30")
    one.config("a", "10.1.0.0/28:30", "fd00::/124:126")
    one.node("n")
    one.start()
    assert "must have IPv4 alone, as z has, which comes first" in one.until_reason("a", "Mixed")["message"]
    one.until_blocks(n="10.0.0.0/30")
    one.delete(f"{NODES}/n")
    one.delete(f"{OURS}/z")
    one.until_reason("a", "Giving")


def test_where_one_family_is_kept_a_config_of_two_that_came_first_is_in_nobodys_way(one: Case) -> None:
    """Nor if no node ever comes for which it is; one that waits is asked for."""
    one.api.families = 1
    one.config("both", "10.1.0.0/28:30", "fd00::/124:126", size="none is so large")
    one.config("single", "10.0.0.0/28:30")
    one.start()
    one.until_reason("single", "Mixed")
    one.node("n")
    one.until_blocks(n="10.0.0.0/30")
    one.until_reason("both", "OneFamily")
    one.until_reason("single", "Giving")
    one.end()
    one.node("later")
    one.start()
    one.until_blocks(n="10.0.0.0/30", later="10.0.0.4/30")


def test_where_two_families_are_kept_it_is_asked_once_and_the_first_decides(one: Case) -> None:
    refused: list[str] = []

    def fault(method: str, path: str) -> object:
        if "dryRun" in path and len(refused) < 3:
            refused.append(path)
            return 503
        return None

    one.api.fault = fault
    one.config("both", "10.1.0.0/28:30", "fd00::/124:126", size="large")
    one.config("single", "10.0.0.0/28:30")
    one.node("n")
    one.start()
    one.until(lambda: "must have IPv6 too, as both has" in one.events("n").get("CIDRNotAvailable", ""))
    one.until(lambda: sum("dryRun" in path for _, path in one.api.asked) == 4)
    one.delete(f"{OURS}/both")
    one.until_blocks(n="10.0.0.0/30")
    assert sum("dryRun" in path for _, path in one.api.asked) == 4


def test_where_ipv4_is_an_island_configs_of_two_families_have_its_range_and_mask(one: Case) -> None:
    one.config("z", "10.0.0.0/16:24", "fd00::/112:120")
    one.config("a", "10.0.0.0/16:25", "fd01::/113:121", size="small")
    one.config("same", "10.0.0.0/16:24", "fd02::/112:120", rack="r1")
    one.node("n", size="small")
    one.node("m", rack="r1")
    one.start("--island")
    wanted = "must have IPv4 10.0.0.0/16 by /24, as z has, which comes first: where nodes wrap packets"
    assert wanted in one.until_reason("a", "Unlike")["message"]
    one.until(lambda: wanted in one.events("a").get("Unlike", ""))
    one.until_blocks(n="10.0.0.0/24 fd00::/120", m="10.0.1.0/24 fd02::/120")
    one.end()
    one.start("--island=10.0.0.0/16:25")
    one.until_reason("z", "Unlike")
    assert "/25, the cluster's" in one.until_reason("same", "Unlike")["message"]
    one.until_reason("a", "Giving")
    one.end()
    one.start()
    one.until_reason("z", "Giving")


def test_a_config_that_is_reserved_as_a_whole_says_so_and_what_to_do(one: Case) -> None:
    one.config("all", "10.96.0.0/24:28")
    one.node("n")
    one.start("--reserved=10.0.0.0/8", "--reserved=fd00::/8")
    why = "10.96.0.0/24 has no block outside 10.0.0.0/8, which is reserved: make one with another range"
    assert why in one.until_reason("all", "Reserved")["message"]
    one.until(lambda: why in one.events("all").get("Reserved", ""))
    one.until(lambda: why in one.events("n").get("CIDRNotAvailable", ""))
    one.config("v6", "192.168.0.0/24:28", "fd00::/120:124")  # both or neither
    assert "fd00::/120 has no block outside fd00::/8" in one.until_reason("v6", "Reserved")["message"]
    one.config("half", "8.0.0.0/6:9")
    one.until_blocks(n="8.0.0.0/9")


def test_fewer_blocks_than_nodes_is_said_with_numbers(one: Case) -> None:
    one.config("few", "10.0.0.0/29:30", size="small")
    for name in "abcde":
        one.node(name, size="small")
    one.node("other")
    one.start()
    words = "no block is left for 3 that wait, 2 of 2 given: make one with another range"
    one.until(lambda: one.condition("few").get("message") == words)
    one.until(lambda: "few has no block left, 2 of 2 given" in one.events("e").get(WAITS, ""))


def test_an_empty_term_is_for_nobody_and_said_to_be(one: Case) -> None:
    told = config("none", "10.0.0.0/28:30")
    told["spec"]["nodeSelector"] = {"nodeSelectorTerms": [{}]}
    one.api.do("POST", OURS, told)
    one.node("n")
    one.start()
    why = "is for no node, since an empty term of nodeSelectorTerms matches nothing"
    one.until(lambda: one.events("n").get(WAITS) == f"none {why}: make another")
    assert one.until_reason("none", "Giving")["message"] == f"0 given, 4 free; {why}"


def test_a_changed_spec_is_used_no_more_until_it_is_as_it_was(one: Case) -> None:
    one.config("all", "10.0.0.0/28:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    one.until(lambda: FIRST_SPEC in one.api.all(OURS)["all"]["metadata"].get("annotations", {}))
    one.change(f"{OURS}/all", {"spec": {"ipv4": {"cidr": "10.9.0.0/28"}}})
    assert "10.0.0.0/28" in one.until_reason("all", "SpecChanged")["message"]
    one.node("b")
    one.until(lambda: "was changed" in one.events("b").get("CIDRNotAvailable", ""))
    one.until(lambda: "was changed" in one.events("all").get("SpecChanged", ""))
    one.change(f"{OURS}/all", {"spec": {"ipv4": {"cidr": "10.0.0.0/28"}}})
    one.until_blocks(a="10.0.0.0/30", b="10.0.0.4/30")


def test_a_spec_that_was_changed_while_nobody_looked_is_known_by_what_was_written_down(one: Case) -> None:
    one.config("all", "10.0.0.0/28:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    one.until(lambda: FIRST_SPEC in one.api.all(OURS)["all"]["metadata"].get("annotations", {}))
    one.end()
    one.change(f"{OURS}/all", {"spec": {"ipv4": {"cidr": "10.9.0.0/28"}}})
    one.node("b")
    one.start()
    one.until_reason("all", "SpecChanged")
    one.until(lambda: one.events("b"))
    assert one.api.blocks()["b"] == []


def test_a_term_that_fails_leaves_nobody_behind_who_listens(
    one: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Server] = []
    make, take = Options.server, Books.take

    def server(options: Options) -> Server:
        made.append(make(options))
        return made[-1]

    def failing(books: Books, news: News) -> None:
        if len(made) == 2:  # the first is the leader's
            raise RuntimeError("of this term nothing comes")
        take(books, news)

    monkeypatch.setattr(leader, "FAILED_SECONDS", 0.01)
    monkeypatch.setattr(Options, "server", server)
    monkeypatch.setattr(Books, "take", failing)
    one.config("all", "10.0.0.0/28:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    assert "of this term nothing comes" in one.stream.getvalue()
    assert made[1].closed


def test_a_config_is_not_gone_before_its_nodes_are(one: Case) -> None:
    one.config("all", "10.0.0.0/28:30")
    one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    one.until(lambda: one.api.all(OURS)["all"]["metadata"].get("finalizers") == [FINALIZER])
    one.end()
    one.delete(f"{OURS}/all")
    one.node("b")
    one.start()
    one.until_reason("all", "Deleting")
    assert one.api.blocks() == {"a": ["10.0.0.0/30"], "b": []}
    one.delete(f"{NODES}/a")
    one.until(lambda: not one.api.all(OURS))
    assert one.api.blocks() == {"b": []}


def test_a_bad_config_says_what_is_wrong_with_which_field(one: Case) -> None:
    one.config("bad", "10.0.0.1/24:28")
    one.start()
    assert "spec.ipv4.cidr: has host bits set" in one.until_reason("bad", "BadSpec")["message"]
    one.until(lambda: "spec.ipv4.cidr" in one.events("bad").get("BadSpec", ""))
    one.change(f"{OURS}/bad", {"spec": {"ipv4": {"cidr": "10.0.0.0/24"}}})  # nobody had anything of it
    one.node("a")
    one.until_blocks(a="10.0.0.0/28")


def test_what_is_not_ours_is_only_given_blocks(one: Case) -> None:
    one.config("all", "10.0.0.0/28:30")
    before = one.node("a")
    one.start()
    one.until_blocks(a="10.0.0.0/30")
    after = one.api.all(NODES)["a"]
    assert after["spec"] == {"podCIDR": "10.0.0.0/30", "podCIDRs": ["10.0.0.0/30"]}
    assert {**after["metadata"], "resourceVersion": ""} == {**before["metadata"], "resourceVersion": ""}
    written = {path.partition("?")[0] for method, path in one.api.asked if method != "GET"}
    assert {path for path in written if path.startswith(NODES)} == {f"{NODES}/a"}


def test_what_is_refused_for_ever_is_tried_now_and_then_and_in_the_way_of_nothing(
    one: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(method: str, path: str) -> int | None:
        return 403 if "events" in path or (method, path) == ("PATCH", f"{OURS}/all") else None

    def tried(what: str) -> int:
        return sum(method in ("POST", "PATCH") and path.endswith(what) for method, path in one.api.asked)

    monkeypatch.setattr(controller, "LAST_RETRY", 1000.0)
    one.api.fault = refused
    one.config("all", "10.0.0.0/30:30")
    for name in "abcd":
        one.node(name)
    one.start()
    one.until_reason("all", "Exhausted")
    one.until(lambda: tried("events") == 4)  # of the config, and of the nodes that wait
    one.node("e")
    one.until(lambda: tried("events") == 5)
    assert tried(f"{OURS}/all") == 1


def test_leaving_takes_the_finalizers_and_nothing_else(one: Case) -> None:
    one.config("all", "10.0.0.0/28:30")
    one.node("a")
    one.start()
    one.until(lambda: one.api.all(OURS)["all"]["metadata"].get("finalizers") == [FINALIZER])
    one.until_blocks(a="10.0.0.0/30")
    one.end()
    options = parse([f"--api={one.api.url}", "--leave"])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("signal.signal", lambda *_: None)
        assert controller.main([f"--api={options.access.url}", "--leave"]) == 0
    assert one.api.all(OURS)["all"]["metadata"].get("finalizers", []) == []
    assert one.api.blocks() == {"a": ["10.0.0.0/30"]}


def test_events_are_few_however_many_nodes_wait(one: Case) -> None:
    for number in range(60):
        one.node(f"n{number}")
    one.start()
    one.until(lambda: len(one.api.all(EVENTS)) == 60)
    written = [path for method, path in one.api.asked if method in ("POST", "PATCH") and "events" in path]
    assert len(written) == 60  # each once, as long as there is nothing new to say


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--api or --in-cluster"),
        (["--api=http://x:1", "--reserved=10.0.0.1/8"], "--reserved: 10.0.0.1/8 has host bits set"),
        (["--api=http://x:1", "--island=10.0.0.0/16"], "--island: '10.0.0.0/16' is not like 10.60.0.0/16:24"),
        (
            ["--api=http://x:1", "--island=10.0.0.0/16:8"],
            "must be an integer from 16, the range's own, to 30",
        ),
        (["--api=http://x:1", "--island=fd00::/112:120"], "must be an IPv4 network"),
        (["--api=http://x:1", "--lease=x"], "--lease: 'x' is not like"),
        (["--api=http://x:1", "--lease-seconds=0"], "--lease-seconds: '0' is not a number"),
        (["--api=x"], "--api: 'x' is not like"),
        (["--api=https://x:1", "--identity=/nowhere"], "--identity, --authority"),
    ],
)
def test_options_that_cannot_be_end_it_with_a_word(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit, match="2"):
        raise SystemExit(controller.main(arguments))
    assert words in capsys.readouterr().err


def test_a_pod_knows_its_api_by_its_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    told = parse(["--in-cluster", "--authority=/else.crt"])
    assert told.access.url == "https://[fd00::1]:443"
    assert told.access.authority == "/else.crt"
    assert told.access.token.endswith("/serviceaccount/token")
