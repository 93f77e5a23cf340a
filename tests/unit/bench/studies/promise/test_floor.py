"""What the checks of floors make of what was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.recording import atomic, queues
from bench.recording.queues import Queue
from bench.recording.records import Entry, Stall, Stretch, StudyRequest
from bench.studies.promise.check import MEASURED, Check, Evidence, Ground, Judgement, all_checks
from bench.studies.promise.checks import floor, robust  # noqa: F401 - they register their checks
from bench.studies.promise.records import Asked, Asking, Datapath, Round, Rounds, Step, Steps, Watched
from bench.studies.promise.study import PromiseStudy
from testbed.scenario import descriptions
from tests.unit.bench.studies.promise.known import cause, flow, ran

FLOOR = 100e6
HELD = [(1.0, 3.0)]
ENDURED = ("some-attacks", "attacks", "churn", "without-gso")


def check(name: str) -> Check:
    return next(one for one in all_checks() if one.name == name)


def points(*stretches: tuple[float, float]) -> list[tuple[float, float]]:
    """What had arrived every 10 ms, of so many shares of the floor for so many seconds."""
    found, at, bits = [(0.0, 0.0)], 0.0, 0.0
    for share, seconds in stretches:
        for _ in range(round(seconds / 0.01)):
            at, bits = at + 0.01, bits + share * FLOOR * 0.01
            found.append((round(at, 4), bits))
    return found


def one(*stretches: tuple[float, float], stalls: tuple[tuple[float, float], ...] = ()) -> Round:
    return Round(
        name="round",
        floor_bps=FLOOR,
        points=points(*stretches),
        since_s=1.0,
        until_s=2.9,
        stalls=[Stall(start_s=begin, end_s=end) for begin, end in stalls],
        saturated=[],
    )


def judged(name: str, measured: Entry, directory: Path) -> Judgement:
    file = directory / f"{name}.json"
    atomic.write_model(file, measured)
    return check(name).judge(Evidence({}, file))


def soon(rounds: list[Round]) -> Judgement:
    return floor.soon(dict(enumerate(rounds)), MEASURED, "late")


def test_a_floor_holds_soon_if_it_does_in_every_round() -> None:
    slow = one((1, 1.0), (0.5, 0.1), (1, 2))
    assert soon([one(*HELD)] * 5).found == "held"
    found = soon([*[one(*HELD)] * 6, slow])
    assert found.found == "violated"
    assert found.words == "after 90 ms at the latest; too late in 1 of 7 rounds"
    assert found.numbers[-1].most == 0.05
    (short,) = found.short
    assert (short.run, short.flow, short.repetition, short.start_s) == (MEASURED, "late", 6, 1.0)
    assert short.end_s == pytest.approx(1.09)


def test_a_floor_that_never_holds_is_violated() -> None:
    assert soon([one((1, 1), (0.5, 3))] * 5).found == "violated"


def test_rounds_in_which_the_machine_stood_still_are_not_counted() -> None:
    stood = one((1, 1.5), (0, 0.1), (1, 2), stalls=((1.5, 1.6),))
    assert soon([*[one(*HELD)] * 5, stood, stood]).found == "held"
    found = soon([*[one(*HELD)] * 4, stood, stood, stood])
    assert found.found == "invalid"
    assert found.words.endswith("in 3 more the machine had no time to spare, or left the link with room")


def left(rates: list[float]) -> dict[str, object]:
    """What left the sender's node: so much in each of many tenths of a second, from the round's beginning."""
    way = Datapath(flow="late", sender="late", leaves="worker", arrives="other", nodes=[], others=[])
    readings, passed = [], 0
    for number, rate in enumerate([1e9, *rates]):
        passed += int(rate / 80)
        counted = Queue("eth0", queues.DEVICE, "", "", passed, 0, 0, 0, 0)
        readings.append((round(1 + number * 0.1, 1), [counted]))
    return {"way": way, "watched": [Watched(place="worker", readings=readings)]}


def test_a_link_with_room_was_not_taken_by_a_neighbour() -> None:
    short = one((1, 1.5), (0.8, 0.1), (1, 2))
    roomy = short.model_copy(update=left([1e9] * 5 + [0.9e9] + [1e9] * 13))
    crowded = short.model_copy(update=left([1e9] * 19))
    assert soon([*[one(*HELD)] * 5, roomy]).found == "held"
    assert soon([*[one(*HELD)] * 5, crowded]).found == "violated"
    elsewhere = short.model_copy(update=left([1e9] * 12 + [0.9e9] + [1e9] * 6))
    assert soon([*[one(*HELD)] * 5, elsewhere]).found == "violated"


def test_a_link_that_has_room_all_along_is_somebodys_limit() -> None:
    limited = one((1, 1.2), (0.8, 1.5), (1, 2)).model_copy(update=left([1e9] * 2 + [0.9e9] * 15 + [1e9] * 2))
    assert soon([*[one(*HELD)] * 5, limited]).found == "violated"


def test_what_the_machine_does_not_explain_is_violated() -> None:
    broken = one((1, 1.5), (0, 0.1), (1, 1), (0, 0.1), (1, 2), stalls=((1.5, 1.6),))
    assert soon([*[one(*HELD)] * 5, broken]).found == "violated"


@pytest.mark.parametrize(
    ("came", "found"),
    [
        ((False, True, False), "held"),
        ((True, True, False), "violated"),
        ((False, False, False), "violated"),
        ((True, True, True), "violated"),
    ],
)
def test_room_is_what_does_not_fit_refused_and_what_does_let_in(
    came: tuple[bool, bool, bool], found: str, tmp_path: Path
) -> None:
    steps = [Step(pod="late", came=each, words="" if each else "no room") for each in came]
    assert judged("room", Steps(steps=steps, faults=[]), tmp_path).found == found
    told = judged("room", Steps(steps=steps, faults=["a class is gone"]), tmp_path)
    assert (told.found, told.words.endswith("; a class is gone")) == ("violated", True)
    assert [(number.value, number.least) for number in told.numbers] == [
        ((not came[0]) + (not came[2]), 2), (came[1], 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("took", "found"),
    [
        ([0.001] * 60, "held"),
        ([0.001] * 59 + [None], "violated"),
        ([0.001] * 50 + [0.2] * 10, "violated"),
        ([None] * 60, "violated"),
    ],
)
def test_control_traffic_is_answered_in_time(took: list[float | None], found: str, tmp_path: Path) -> None:
    asking = Asking(port=22, from_node="worker-02", to_node="worker-01", took_s=took)
    assert judged("control-traffic", Asked(waited_s=3.0, askings=[asking]), tmp_path).found == found


def test_of_what_was_not_measured_nothing_is_said() -> None:
    for name in ("room", "control-traffic", "protection-from-add", *ENDURED):
        assert check(name).judge(Evidence({})).found == "invalid"


def test_whose_receivers_grant_claims_what_incast_asks_and_nobody_else() -> None:
    assert check("incast").claim == "arrival"
    claiming = [name for name in descriptions.shipped() if "arrival" in descriptions.of_name(name).claims]
    assert claiming == ["fabric"]
    promised = flow("promised", FLOOR, FLOOR, FLOOR)
    promised.phases["disturbed"] = promised.phases["quiet"].model_copy(
        update={"met": True, "attainment": 1.0}
    )
    runs = {"TCP": ran([promised]), "UDP": ran([promised])}
    assert check("incast").judge(Evidence(runs)).found == "held"
    runs["UDP"] = ran([flow("promised", FLOOR, FLOOR, FLOOR)])
    assert check("incast").judge(Evidence(runs)).found == "invalid"


def test_of_flows_beside_others_only_what_was_beside_them_counts() -> None:
    promised = flow("promised", FLOOR, FLOOR, 3 * FLOOR)
    quiet = promised.phases["quiet"]
    promised.phases["disturbed"] = quiet.model_copy(
        update={"mean_bps": 0.4 * FLOOR, "met": False, "attainment": 0.1, "repetitions": []}
    )
    found = check("full-link-10").judge(Evidence({"beside": ran([promised])}))
    assert found.found == "violated"
    assert "40 % of the expected" in found.words


def test_a_doubt_speaks_for_a_floor_that_was_missed() -> None:
    promised = flow("promised", FLOOR, FLOOR, 3 * FLOOR)
    promised.phases["disturbed"] = promised.phases["quiet"].model_copy(
        update={"mean_bps": 0.4 * FLOOR, "met": False, "attainment": 0.1, "repetitions": []}
    )
    doubted = ran([promised], [cause("machine", "promised, disturbed: the machine stood still")])
    found = check("full-link-10").judge(Evidence({"beside": doubted}))
    assert found.found == "invalid"
    assert found.words.endswith("the machine stood still")
    found = check("incast").judge(Evidence({"TCP": doubted, "UDP": doubted}))
    assert found.words.count("40 % of the expected") == 2
    assert found.found == "invalid"
    assert found.words.endswith("the machine stood still")


@pytest.mark.parametrize("name", ENDURED)
def test_what_is_endured_is_the_floor_all_the_time(name: str, tmp_path: Path) -> None:
    assert judged(name, Rounds(rounds=[one(*HELD)]), tmp_path).found == "held"
    assert judged(name, Rounds(rounds=[one(*HELD), one((0.94, 3))]), tmp_path).found == "violated"
    short = one((1.2, 1.5), (0.5, 0.2), (1.2, 2))
    assert judged(name, Rounds(rounds=[short]), tmp_path).found == "violated"
    left = one(*HELD).model_copy(update={"faults": ["a class belongs to nobody"]})
    assert judged(name, Rounds(rounds=[left]), tmp_path).found == "violated"


def test_who_is_asked_is_who_sent_while_an_attacked_flow_had_too_little(tmp_path: Path) -> None:
    found = judged("attacks", Rounds(rounds=[one(*HELD), one((1.2, 1.5), (0.5, 0.2), (1.2, 2))]), tmp_path)
    assert [(short.run, short.repetition) for short in found.short] == [(MEASURED, 1)] * 2
    assert [short.start_s for short in found.short] == pytest.approx([1.5, 1.6])


def test_an_attack_by_a_machine_without_time_to_attack_is_none(tmp_path: Path) -> None:
    few = one(*HELD).model_copy(update={"sent": 100})
    assert judged("attacks", Rounds(rounds=[few]), tmp_path).found == "invalid"
    for sent, found in ((10_000, "held"), (2_000, "held"), (1_999, "invalid")):  # of two seconds
        many = one(*HELD).model_copy(update={"sent": sent, "until_s": 3.0})
        assert judged("attacks", Rounds(rounds=[many]), tmp_path).found == found


def test_a_machine_without_time_to_spare_breaks_no_promise(tmp_path: Path) -> None:
    busy = one((1.2, 1.5), (0.5, 0.2), (1.2, 2))
    busy = busy.model_copy(update={"saturated": [Stretch(start_s=1.5, end_s=1.7)]})
    assert judged("churn", Rounds(rounds=[busy]), tmp_path).found == "invalid"


def test_that_the_attacker_keeps_a_processor_busy_is_no_excuse(tmp_path: Path) -> None:
    broken = one((1.2, 1.5), (0.5, 0.2), (1.2, 2)).model_copy(update={"sent": 10**6})
    busy = broken.model_copy(update={"saturated": [Stretch(start_s=1.0, end_s=3.0)]})
    assert judged("attacks", Rounds(rounds=[busy]), tmp_path).found == "violated"
    stood = broken.model_copy(update={"stalls": [Stall(start_s=1.5, end_s=1.7)]})
    assert judged("attacks", Rounds(rounds=[stood]), tmp_path).found == "invalid"


def test_packets_that_the_machine_dropped_are_nobodys_violation(tmp_path: Path) -> None:
    short = one((1, 1.5), (0.5, 1), (1, 2)).model_copy(update={"sent": 10**5})
    assert judged("attacks", Rounds(rounds=[short]), tmp_path).found == "violated"
    found = judged("attacks", Rounds(rounds=[short.model_copy(update={"lost": 3})]), tmp_path)
    assert (found.found, found.words.rpartition("; ")[2]) == (
        "invalid", "the machine itself dropped 3 packets meanwhile",
    )  # fmt: skip


def ground(**choices: tuple[str, ...]) -> Ground:
    asked = StudyRequest(study="promise", choices=choices, kubeconfigs=("a.conf",))
    return Ground(asked, "node", 10**9, existing=True, attacks="attacks" in choices)


def test_on_clusters_that_exist_nobody_is_attacked_unless_that_is_asked_for() -> None:
    lack = check("attacks").lack(ground())
    assert lack is not None
    assert "--attack-own-pods" in lack
    assert "nodes' tables are its targets" in lack
    assert check("attacks").lack(ground(attacks=("own-pods",))) is None
    assert check("churn").lack(ground(attacks=("own-pods",))) is not None


def test_a_link_that_is_asked_for_is_promised_by_half() -> None:
    asked = Ground(StudyRequest(study="promise", choices={"link": ("2G",)}), "node", 2 * 10**9)
    assert check("full-link-1").runs(asked)["beside"].settings == ("pods.promised.guarantee=1G",)


@pytest.mark.parametrize("named", [{"profile": ("robust",)}, {"check": ("attacks",)}])
def test_attacks_on_clusters_that_exist_are_bad_input_unless_they_are_asked_for(
    named: dict[str, tuple[str, ...]],
) -> None:
    choices = {**named, "link": ("1G",)}
    asked = StudyRequest(study="promise", choices=choices, kubeconfigs=("a.conf",))
    with pytest.raises(LookupError, match="attacks: it attacks, which --attack-own-pods asks for"):
        PromiseStudy().cases(asked)
