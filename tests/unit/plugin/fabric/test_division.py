"""A link is divided: by max-min fairness, above what is promised, and at once."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import pytest
from concorde.fabric import division
from concorde.fabric.division import Claim, Downlink, max_min

from tests import cases
from tests.unit.plugin.fabric.fluid import Fabric, Load, between, greedy, idle, on_and_off, steady

GBIT = 1e9
NAN = float("nan")
LINKS = pytest.mark.parametrize("capacity", [GBIT, GBIT / 5])
LOOPS = pytest.mark.parametrize("loop", [0.010, 0.020])
# What other nodes send beside a promise.
NOISES = pytest.mark.parametrize(
    "noise", [greedy, on_and_off(GBIT, 0.030, 0.015)], ids=["all the time", "on and off"]
)


def by_linear_programming(free: Sequence[float], demands: Sequence[Sequence[float]]) -> list[list[float]]:
    """Divide many links by one linear programme.

    Of all ways to divide a link, the max-min fair one gives the k least together the most, for every k. Their
    sum is the most of k t - sum(max(t - x, 0)) over t (Ogryczak and Tamir, "Minimizing the sum of the k
    largest functions in linear time", 2003); so all those sums are maximised at once.
    """
    from scipy import optimize, sparse  # only here: it takes a second

    def column(count: int) -> sparse.csr_array:
        return sparse.csr_array([[1.0]] * count)

    costs: list[float] = []
    bounds: list[tuple[float | None, float | None]] = []
    rows: list[sparse.csr_array] = []
    most: list[float] = []
    for rate, wanted in zip(free, demands, strict=True):
        n = len(wanted)
        # Parts x, then t of each k, then how far each part lies below each t.
        costs += [0.0] * n + [-(k + 1.0) for k in range(n)] + [1.0] * (n * n)
        bounds += [(0.0, min(one, rate)) for one in wanted] + [(None, None)] * n + [(0.0, None)] * (n * n)
        below = sparse.hstack(
            [
                -sparse.kron(column(n), sparse.identity(n)),
                sparse.kron(sparse.identity(n), column(n)),
                -sparse.identity(n * n),
            ]
        )
        total = sparse.hstack([column(n).T, sparse.csr_array((1, n + n * n))])
        rows.append(sparse.vstack([total, below]))
        most += [rate] + [0.0] * (n * n)
    solved = optimize.linprog(costs, A_ub=sparse.block_diag(rows, "csr"), b_ub=most, bounds=bounds)
    assert solved.success, solved.message
    parts, at = [], 0
    for wanted in demands:
        n = len(wanted)
        parts.append([float(part) for part in solved.x[at : at + n]])
        at += n + n + n * n
    return parts


@pytest.mark.long
def test_the_division_is_that_of_a_linear_programme() -> None:
    chance = random.Random(cases.seed())
    free: list[float] = []
    demands: list[list[float]] = []
    for _ in range(cases.count("CONCORDE_DIVISIONS", few=100, full=1000)):
        free.append(chance.choice([0.0, chance.uniform(0, 100)]) if chance.random() < 0.1 else 100.0)
        demands.append([])
        for _ in range(chance.randint(1, 5)):
            demands[-1].append(chance.choice([math.inf, 0.0, 10.0, chance.uniform(0, 100)]))
    for rate, wanted, expected in zip(free, demands, by_linear_programming(free, demands), strict=True):
        parts = max_min(rate, dict(enumerate(wanted)))
        assert [parts[at] for at in range(len(wanted))] == pytest.approx(expected, abs=1e-5), (rate, wanted)


@pytest.mark.long
def test_the_division_by_senders_is_that_of_two_linear_programmes() -> None:
    chance = random.Random(cases.seed())
    demands: list[dict[str, dict[int, float]]] = [
        {
            sender: {number: chance.choice([math.inf, chance.uniform(0, 60)]) for number in range(claims)}
            for sender, claims in (("a", chance.randint(0, 4)), ("b", chance.randint(1, 4)), ("c", 1))
        }
        for _ in range(cases.count("CONCORDE_DIVISIONS", few=100, full=1000))
    ]
    named = [[sender for sender in of_it if of_it[sender]] for of_it in demands]
    pairs = zip(demands, named, strict=True)
    claimed = [[list(of_it[sender].values()) for sender in own] for of_it, own in pairs]
    links = [100.0] * len(demands)
    totals = [[sum(claims) for claims in of_it] for of_it in claimed]
    whole = [part for of_it in with_the_rest(links, by_linear_programming(links, totals)) for part in of_it]
    claims = [of_sender for of_it in claimed for of_sender in of_it]
    expected = iter(with_the_rest(whole, by_linear_programming(whole, claims)))
    for of_it, own in zip(demands, named, strict=True):
        parts = division.by_senders(100.0, of_it)
        assert parts.keys() == set(own)
        for sender in own:
            found = [parts[sender][number] for number in of_it[sender]]
            assert found == pytest.approx(next(expected), abs=1e-4), of_it


def with_the_rest(free: Sequence[float], parts: Sequence[Sequence[float]]) -> list[list[float]]:
    """What nobody demands, all have alike."""
    return [
        [part + (rate - sum(of_it)) / len(of_it) for part in of_it]
        for rate, of_it in zip(free, parts, strict=True)
    ]


def test_nothing_is_divided_among_nobody() -> None:
    assert max_min(1.0, {}) == {}


# Rounds by hand: what is reported, and what ceilings follow.


def told(link: Downlink, now: float, **senders: Mapping[int, Claim]) -> dict[str, dict[int, float]]:
    for sender, claims in senders.items():
        link.report(sender, claims, now)
    return link.divide(now)


def hungry(guarantee: float = 0.0, rate: float = 100e6) -> Claim:
    return Claim(guarantee, rate, waiting=1 << 20)


def test_best_effort_of_nodes_and_the_excess_of_a_promise_share_alike() -> None:
    link = Downlink(GBIT, margin=0.97)
    ceilings = told(link, 1.0, a={16: hungry(500e6)}, b={1: hungry()}, c={1: hungry()})
    assert ceilings == {
        "a": {16: pytest.approx(500e6 + 470e6 / 3)},
        "b": {1: pytest.approx(470e6 / 3)},
        "c": {1: pytest.approx(470e6 / 3)},
    }
    assert [link.reserved, link.foreign, link.free] == pytest.approx([500e6, 0, 470e6])


def test_a_node_that_names_its_best_effort_twice_has_no_more_of_it() -> None:
    ceilings = told(Downlink(GBIT), 1.0, a={1: hungry(), 2: hungry()}, b={1: hungry()})
    assert sum(ceilings["a"].values()) == pytest.approx(ceilings["b"][1])


@pytest.mark.parametrize("claims", [1, 100, 1000])
def test_a_node_that_names_many_tiny_promises_has_no_more_of_what_is_free(claims: int) -> None:
    tiny = {number: hungry(1) for number in range(16, 16 + claims)}
    ceilings = told(Downlink(GBIT, promised=0.1 * GBIT), 1.0, a=tiny, b={1: hungry()}, c={1: hungry()})
    assert ceilings["b"][1] == ceilings["c"][1] == pytest.approx(0.97 * GBIT / 3, rel=1e-5)
    assert sum(ceilings["a"].values()) == pytest.approx(0.97 * GBIT / 3, rel=1e-5)


def test_a_promise_that_wakes_is_reserved_at_once_and_what_it_leaves_within_200_ms() -> None:
    link = Downlink(GBIT)
    small = {16: Claim(500e6, rate=100e6)}
    told(link, 1.0, a={16: Claim(500e6)}, b={1: hungry()})
    assert link.reserved == 0
    told(link, 1.01, a=small)
    assert link.reserved == 500e6
    seen = []
    for at in range(1, 26):
        told(link, 1.01 + at * 0.01, a=small)
        seen.append(link.reserved)
    assert seen[0] == pytest.approx(475e6)
    assert seen[:14] == sorted(seen[:14], reverse=True)
    assert seen[17] == pytest.approx(division.GROWS_WITHIN * 100e6, rel=0.02)


@pytest.mark.parametrize("claim", [Claim(500e6, rate=300e6), Claim(500e6, rate=100e6, waiting=1 << 20)])
def test_a_promise_that_nears_what_is_reserved_or_waits_has_all_of_it_again(claim: Claim) -> None:
    link = Downlink(GBIT)
    for at in range(50):
        told(link, at * 0.01, a={16: Claim(500e6, rate=100e6)})
    assert link.reserved < 120e6
    seen = []
    for at in range(50, 52):
        told(link, at * 0.01, a={16: claim})
        seen.append(link.reserved)
    assert max(seen) == 500e6


def test_what_says_only_that_it_is_there_wakes_no_promise() -> None:
    link = Downlink(GBIT)
    for at in range(100):
        alive = at % 50 == 0
        told(link, at * 0.01, a={16: Claim(500e6, rate=8 * 74 / 0.01 if alive else 0)}, b={1: hungry()})
        assert link.reserved < 0.001 * GBIT


@pytest.mark.parametrize(
    ("guarantee", "claims"),
    [
        (50e6, [Claim(50e6, 52e6), Claim(50e6), Claim(50e6), Claim(50e6)]),
        (500e6, [Claim(500e6, 250e6, 20000), Claim(500e6, 250e6)]),
    ],
    ids=["a large packet now and then", "something in its queue now and then"],
)
def test_what_comes_in_bursts_is_not_reserved_anew_each_time(guarantee: float, claims: list[Claim]) -> None:
    link = Downlink(GBIT)
    for at in range(120):
        told(link, at * 0.01, a={16: claims[at % len(claims)]}, b={1: hungry()})
        if at >= 40:
            assert 0 < link.reserved < 0.6 * guarantee
            assert not link.hurries(at * 0.01)


def test_what_nobody_wants_all_may_take() -> None:
    assert told(Downlink(GBIT), 1.0, a={1: Claim()}, b={1: Claim()}) == {
        "a": {1: pytest.approx(0.485 * GBIT)},
        "b": {1: pytest.approx(0.485 * GBIT)},
    }


@pytest.mark.parametrize("claim", [Claim(200e6), Claim(200e6, 1e6), hungry(200e6), Claim(200e6, 1, 1, True)])
def test_a_promised_class_is_never_below_its_promise(claim: Claim) -> None:
    link = Downlink(GBIT)
    for at in range(300):
        others = {number: hungry(900e6) for number in range(30, 40)}
        ceilings = told(link, at * 0.01, a={16: claim}, b=others, c={1: hungry()})
        assert ceilings["a"].get(16, 200e6) >= 200e6


def test_what_is_limited_elsewhere_leaves_its_part_to_others() -> None:
    link = Downlink(GBIT)
    for at in range(40):
        limited = Claim(0, rate=100e6, waiting=1 << 20, limited=True)
        ceilings = told(link, at * 0.01, a={1: limited}, b={1: hungry()})
    assert ceilings["a"][1] == pytest.approx(division.GROWS * 100e6, rel=0.01)
    assert sum(ceilings["a"].values()) + sum(ceilings["b"].values()) == pytest.approx(0.97 * GBIT)


def test_what_went_quiet_is_remembered_for_a_second() -> None:
    link = Downlink(GBIT)
    parts = {}
    for at in range(130):
        busy = hungry() if at <= 10 else Claim()
        ceilings = told(link, at * 0.01, a={1: busy}, b={1: hungry()})
        parts[at] = ceilings["a"][1]
    half = 0.485 * GBIT
    assert parts[10] == parts[19] == pytest.approx(half)
    assert parts[30] == parts[109] == pytest.approx(half / 10)
    assert parts[112] == pytest.approx(division.START * GBIT)


def test_a_class_that_is_no_longer_named_is_idle_and_then_forgotten() -> None:
    link = Downlink(GBIT)
    told(link, 0.0, a={1: hungry(), 2: hungry(), 16: hungry(100e6)})
    assert told(link, 0.2, a={1: hungry()})["a"].keys() == {1, 2}
    assert link.reserved == 0
    assert told(link, 1.2, a={1: hungry()})["a"].keys() == {1}


def test_who_is_silent_is_foreign_and_what_it_sends_is_taken_off() -> None:
    link = Downlink(GBIT)
    for at in range(60):
        now = at * 0.01
        if at < 20:
            link.report("gone", {1: hungry(rate=300e6)}, now)
        link.arrived({"gone": 300e6, "b": 400e6}, now)
        link.report("b", {1: hungry(rate=400e6)}, now)
        ceilings = link.divide(now)
        assert ("gone" in ceilings) == (at < 20 + 30)
    assert link.foreign == pytest.approx(300e6, rel=0.02)
    assert ceilings["b"][1] == pytest.approx(670e6, rel=0.02)
    for at in range(60, 100):
        link.arrived({"b": 400e6}, at * 0.01)
        told(link, at * 0.01, b={1: hungry(rate=400e6)})
    assert link.foreign < 0.001 * GBIT


@pytest.mark.parametrize(
    ("said", "arrives", "foreign"),
    [(400e6, 419e6, 0), (400e6, 300e6, 0), (100e6, 400e6, 290e6), (900e6, 800e6, 612e6)],
    ids=["headers", "lost on the way", "says less", "takes more than it was given"],
)
def test_only_what_is_neither_noise_nor_granted_is_foreign(
    said: float, arrives: float, foreign: float
) -> None:
    link = Downlink(GBIT)
    for at in range(200):
        now = at * 0.01
        link.arrived({"a": arrives}, now)
        told(link, now, a={1: hungry(rate=said)}, b={1: hungry(rate=400e6)})
    assert link.foreign == pytest.approx(foreign, rel=0.05, abs=1e6)


def test_what_is_reported_two_rounds_late_is_not_foreign() -> None:
    link = Downlink(GBIT)
    arrives = [0.0] * 20 + [450e6] * 40 + [0.0] * 20
    for at, rate in enumerate(arrives):
        link.arrived({"a": rate}, at * 0.01)
        told(link, at * 0.01, a={1: hungry(rate=arrives[max(at - 2, 0)])})
        assert link.foreign < 0.02 * GBIT


def test_best_effort_starts_and_reports_where_all_is_promised_away() -> None:
    link = Downlink(GBIT)
    full = {number: hungry(100e6) for number in range(16, 26)}
    others = {f"node-{number}": {1: hungry()} for number in range(20)}
    ceilings = told(link, 1.0, a=full, **others)
    floors = [ceilings[name][1] for name in others]
    assert min(floors) > 0.0005 * GBIT
    assert sum(floors) <= (1 - link.margin) * GBIT


def test_idle_nodes_cost_a_hundredth_of_the_link_all_together() -> None:
    link = Downlink(GBIT)
    others: dict[str, dict[int, Claim]] = {f"node-{number}": {1: Claim()} for number in range(19)}
    ceilings = told(link, 1.0, busy={1: hungry()}, **others)
    assert ceilings["busy"][1] >= (0.97 - 0.01) * GBIT
    assert min(ceilings[name][1] for name in others) >= 0.0005 * GBIT


@pytest.mark.parametrize(("others", "hurries"), [(0.97, True), (0.5, False)])
def test_rounds_are_short_while_a_promise_wakes_on_a_full_link(others: float, hurries: bool) -> None:
    link = Downlink(GBIT)
    seen = []
    for at in range(120):
        claim = hungry(100e6) if 30 <= at < 80 else Claim(100e6)
        told(link, at * 0.01, a={16: claim, 1: Claim(0, others * GBIT, 20000)})
        seen.append(link.hurries(at * 0.01))
    assert [seen[at] for at in (29, 30, 45, 55, 79, 90)] == [False, hurries, hurries, False, False, False]
    assert not Downlink(GBIT).hurries(1.0)


@pytest.mark.parametrize("quiet", [{16: Claim(100e6), 1: hungry()}, {1: hungry()}], ids=["idle", "not named"])
def test_a_promise_that_sleeps_is_not_told_what_it_has_anyway(quiet: dict[int, Claim]) -> None:
    link = Downlink(GBIT)
    busy = {16: hungry(100e6), 1: hungry()}
    assert told(link, 1.0, a=busy)["a"][16] > 100e6
    assert told(link, 1.15, a=quiet)["a"].keys() == {1}
    assert told(link, 1.17, a=busy)["a"].keys() == {16, 1}


def test_where_nothing_is_free_no_promise_is_told_what_it_has_anyway() -> None:
    full = {number: hungry(100e6) for number in range(16, 26)}
    assert told(Downlink(GBIT, promised=GBIT), 1.0, a=full)["a"] == {}


def test_it_is_told_when_a_promise_wakes_and_not_when_anything_else_does() -> None:
    link = Downlink(GBIT)
    full = Claim(0, 0.9 * GBIT, 20000)
    assert not link.report("a", {16: Claim(100e6), 1: full}, 0.00)
    assert link.report("a", {16: hungry(100e6), 1: full}, 0.01)
    assert not link.report("a", {16: hungry(100e6), 1: full}, 0.02)


def test_a_link_sleeps_once_nothing_but_chatter_came_for_two_seconds() -> None:
    link = Downlink(GBIT)
    assert link.asleep(0.0)
    told(link, 10.0, a={1: hungry()})
    assert not link.asleep(11.9)
    link.report("a", {1: Claim()}, 12.0)
    link.arrived({"a": 1e5}, 12.0)
    assert link.asleep(12.1)
    link.arrived({"a": 1e7}, 12.2)
    assert not link.asleep(14.1)


# Whoever lies.


@pytest.mark.parametrize(
    "lie",
    [
        {1: Claim(0, NAN, NAN)},
        {1: Claim(-1e9, -1e9, -5)},
        {1: Claim(math.inf, math.inf, math.inf)},
        {16: Claim(NAN, math.inf, NAN)},
        {number: Claim(GBIT, GBIT, 1 << 60) for number in range(5000)},
        {number: Claim(0, GBIT, 1 << 60) for number in range(5000)},
    ],
    ids=["no numbers", "below nothing", "without end", "a promise of no number", "promises", "claims"],
)
def test_a_liar_takes_nobodys_promise_and_no_floor(lie: dict[int, Claim]) -> None:
    link = Downlink(GBIT, promised=500e6)
    for at in range(30):
        now = at * 0.01
        link.arrived({"liar": NAN, "a": 300e6, "b": -1}, now)
        ceilings = told(link, now, liar=lie, a={16: hungry(300e6)}, b={1: hungry()})
    assert ceilings["a"][16] >= 300e6
    assert ceilings["b"][1] >= 0.0009 * GBIT
    assert all(math.isfinite(rate) and rate >= 0 for of_it in ceilings.values() for rate in of_it.values())
    assert link.reserved <= 500e6
    assert len(ceilings["liar"]) <= division.MOST_CLAIMS


def test_a_liar_that_names_others_each_time_fills_no_memory() -> None:
    link = Downlink(GBIT)
    for at in range(20):
        told(link, at * 0.01, liar={at * 1000 + number: hungry() for number in range(1000)})
    assert len(link.divide(0.2)["liar"]) <= 2 * division.MOST_CLAIMS


def test_a_promise_beyond_what_is_promised_here_is_not_reserved() -> None:
    link = Downlink(GBIT, promised=100e6)
    ceilings = told(link, 1.0, liar={16: hungry(GBIT)}, b={1: hungry()})
    assert link.reserved == 100e6
    assert ceilings["b"][1] == pytest.approx(870e6 / 2)


@pytest.mark.parametrize(
    ("arrives", "reserved"),
    [(450e6, 900e6), (0, 500e6), (None, 500e6)],
    ids=["uses it", "says so", "was never here"],
)
def test_what_is_used_beyond_what_is_promised_here_is_not_given_again(
    arrives: float | None, reserved: float
) -> None:
    link = Downlink(GBIT, promised=500e6)
    for at in range(100):
        now = at * 0.01
        link.arrived({"a": 450e6} if arrives is None else {"a": 450e6, "liar": arrives}, now)
        liar = {16: hungry(GBIT / 2, rate=450e6)}
        told(link, now, liar=liar, a={16: hungry(500e6, rate=450e6)}, b={1: hungry()})
    assert link.reserved == pytest.approx(reserved, rel=0.03)


# What ceilings make of a link.


def incast(capacity: float, loop: float, promised: Load, noise: Load = greedy) -> Fabric:
    made = Fabric(capacity, loop)
    made.add("a", 16, promised, 0.5 * capacity)
    made.add("b", 1, noise)
    made.add("c", 1, noise)
    return made


@LINKS
@LOOPS
@pytest.mark.parametrize("used", [0.0, 0.25, 0.5, 1.0], ids=["idle", "half used", "full", "more"])
def test_the_link_is_in_use_whatever_a_promise_needs(capacity: float, loop: float, used: float) -> None:
    link = incast(capacity, loop, steady(used * capacity) if used else idle)
    link.run(1.0)
    assert 0.93 * capacity <= link.rate(0.4, 1.0) <= 0.98 * capacity
    assert link.rate(0.4, 1.0, link.classes["a", 16]) >= 0.98 * min(used, 0.5 + 0.47 / 3) * capacity


@LINKS
@LOOPS
@NOISES
def test_a_promise_that_comes_back_has_nine_tenths_in_its_first_100_ms(
    capacity: float, loop: float, noise: Load
) -> None:
    shares = []
    for begin in (0.201, 0.206, 0.211, 0.216):
        link = incast(capacity, loop, between(begin, math.inf, greedy), noise)
        link.run(begin + 0.1)
        shares.append(link.rate(begin, begin + 0.1, link.classes["a", 16]) / (0.5 * capacity))
    assert min(shares) >= 0.9, shares


@LOOPS
def test_the_port_has_drained_150_ms_after_a_promise_came_back(loop: float) -> None:
    link = incast(GBIT, loop, between(0.205, math.inf, greedy))
    link.run(0.25)
    assert link.queued > 0.003  # seconds
    link.run(0.105)
    for _ in range(20):
        link.run(0.01)
        assert link.queued < 0.001


@LINKS
@LOOPS
def test_others_have_the_link_100_ms_after_a_promised_flow_stopped(capacity: float, loop: float) -> None:
    link = incast(capacity, loop, between(0, 0.4, greedy))
    link.run(0.8)
    assert link.rate(0.5, 0.8, link.classes["b", 1], link.classes["c", 1]) >= 0.95 * capacity


@LINKS
@LOOPS
@NOISES
def test_what_does_not_change_is_divided_alike_from_ten_rounds_on(
    capacity: float, loop: float, noise: Load
) -> None:
    link = incast(capacity, loop, greedy, noise)
    link.run(loop * 100)
    first = link.ceilings[10]
    for ceilings in link.ceilings[11:]:
        assert ceilings == {of: pytest.approx(rate, rel=0.03) for of, rate in first.items()}


@LINKS
@LOOPS
def test_one_message_in_ten_may_be_lost(capacity: float, loop: float) -> None:
    link = incast(capacity, loop, greedy)
    link.lost = random.Random(cases.seed())
    link.run(1.0)
    assert link.rate(0.2, 1.0, link.classes["a", 16]) >= 0.64 * capacity
    assert link.rate(0.2, 1.0) >= 0.93 * capacity


@LINKS
@NOISES
def test_a_node_that_does_not_report_costs_best_effort_and_no_promise(capacity: float, noise: Load) -> None:
    link = incast(capacity, 0.010, greedy, noise)
    link.add("foreign", 1, greedy, reports=False, safe=0.3 * capacity)
    link.run(1.0)
    assert link.rate(0.2, 1.0, link.classes["a", 16]) >= 0.5 * capacity
    assert link.rate(0.4, 1.0) >= 0.93 * capacity
    assert link.downlink.foreign == pytest.approx(0.3 * capacity, rel=0.25)


def test_twenty_nodes_and_250_promises_leave_nothing_unused() -> None:
    link = Fabric(GBIT)
    for node in range(20):
        link.add(f"node-{node}", 1, greedy)
        for pod in range(12 if node else 22):
            link.add(f"node-{node}", 16 + pod, greedy if pod == 0 else idle, 3e6)
    link.run(0.4)
    assert link.rate(0.2, 0.4) >= 0.93 * GBIT
    promised = [one for (_, minor), one in link.classes.items() if minor == 16]
    assert min(link.rate(0.2, 0.4, one) for one in promised) >= 3e6


def test_who_says_that_all_was_promised_to_it_leaves_others_what_was_promised_to_them() -> None:
    link = Downlink(GBIT, promised=0.5 * GBIT)
    for at in range(40):
        liars = {number: Claim(GBIT, 400e6, 1 << 20) for number in (16, 17)}
        ceilings = told(link, at * 0.01, a={16: hungry(0.5 * GBIT)}, b=liars, c={1: hungry()})
    assert sum(ceilings["b"].values()) <= 0.52 * GBIT
    assert ceilings["a"][16] >= 0.5 * GBIT * 0.94
