"""What is said of who took what a flow did not get."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.analysis.bottleneck import NOT_FOUND
from bench.recording import atomic, queues
from bench.recording.directory import Recording
from bench.recording.queues import Queue
from bench.recording.records import CountedLink
from bench.studies.promise import attribution
from bench.studies.promise.check import MEASURED, Evidence, Ran, Short
from bench.studies.promise.index import Took
from bench.studies.promise.records import Datapath, Round, Rounds, Watched
from tests.unit.bench.studies.promise.known import RATES


def counted(handle: str, octets: int, drops: int = 0, backlog: int = 0) -> Queue:
    return Queue("eth0", "htb", handle, "root", octets, octets // 1000, drops, backlog, backlog // 1000)


def readings(directory: Path, place: str, *moments: tuple[float, list[Queue]]) -> Recording:
    found = Recording(directory)
    file = found.repetition_directory(0) / queues.file_name(place)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(queues.line(at, list(changed)) for at, changed in moments))
    return found


def took(found: Recording, short: list[Short], links: Sequence[CountedLink] = ()) -> list[Took]:
    run = Ran(found)
    # In place of what would be read (functools.cached_property).
    run.__dict__.update(scenario=RATES, counted=links)
    return attribution.took(Evidence({"run": run}), short)


def taken(found: Recording, *stretches: tuple[float, float]) -> list[tuple[str, str, int, int, int]]:
    (one,) = took(found, [Short("run", "100M", 0, start, end) for start, end in stretches])
    return [(one.place, one.handle, one.bytes, one.drops, one.backlog) for one in one.queues]


def test_only_what_passed_while_a_flow_fell_short_counts_and_the_most_comes_first(tmp_path: Path) -> None:
    found = readings(
        tmp_path,
        "worker-01",
        (0.0, [counted("1:10", 0), counted("1:1", 0), counted("1:2", 7)]),
        (1.0, [counted("1:10", 9000), counted("1:1", 1000)]),
        (2.0, [counted("1:10", 10_000, drops=3, backlog=1500), counted("1:1", 50_000)]),
        (3.0, [counted("1:10", 90_000, drops=9, backlog=9000), counted("1:1", 99_000)]),
    )
    # 1:2 let nothing pass, dropped nothing, and had nothing waiting.
    assert taken(found, (1.0, 2.0)) == [
        ("worker-01", "1:1", 49_000, 0, 0),
        ("worker-01", "1:10", 1000, 3, 1500),
    ]


def test_readings_around_a_stretch_are_those_before_and_after_it(tmp_path: Path) -> None:
    found = readings(tmp_path, "worker-01", *((n / 10, [counted("1:1", n * 1000)]) for n in range(11)))
    assert taken(found, (0.25, 0.41)) == [("worker-01", "1:1", 3000, 0, 0)]
    assert taken(found, (0.0, 0.1), (0.8, 0.9)) == [("worker-01", "1:1", 2000, 0, 0)]
    assert taken(found, (0.95, 5.0)) == [("worker-01", "1:1", 1000, 0, 0)]


def test_a_queue_that_was_made_anew_begins_at_nothing(tmp_path: Path) -> None:
    found = readings(tmp_path, "worker-01", (0.0, [counted("1:1", 5000)]), (1.0, [counted("1:1", 700)]))
    assert taken(found, (0.0, 1.0)) == [("worker-01", "1:1", 700, 0, 0)]


def test_without_readings_nobody_is_named(tmp_path: Path) -> None:
    assert taken(Recording(tmp_path), (0.0, 1.0)) == []


def test_a_flow_is_told_once_with_all_its_stretches(tmp_path: Path) -> None:
    stretches = [("100M", 1.0, 1.5), ("100M", 2.0, 2.1), ("1M", 0.0, 1.0)]
    found = took(Recording(tmp_path), [Short("run", flow, 0, *both) for flow, *both in stretches])
    assert [(one.flow, one.seconds) for one in found] == [("100M", 0.6), ("1M", 1.0)]


def test_queues_stand_in_the_order_of_the_way_and_of_others_what_they_sent(tmp_path: Path) -> None:
    for place in ("worker-02", "switch", "first", "worker-01", "master-01", "fast"):
        device = Queue("eth0", "link", "", "", 0, 0, 0, 0, 0)
        before, after = [counted("1:1", 0), device], [counted("1:1", 10), device._replace(bytes=7)]
        found = readings(tmp_path, place, (0.0, before), (1.0, after))
    assert [place for place, *_ in taken(found, (0.0, 1.0))] == ["first", "worker-01", "switch", "worker-02"]
    (one,) = took(found, [Short("run", "100M", 0, 0.0, 1.0)])
    assert [(other.place, other.bytes) for other in one.others] == [("fast", 7)]


def test_where_it_was_lost_is_told_where_links_were_counted(tmp_path: Path) -> None:
    moments = [(float(at), [counted("1:", at * 1000, drops=at, backlog=1500)]) for at in range(4)]
    found = readings(tmp_path, "first", *moments)
    short = [Short("run", "100M", 0, 1.0, 2.0)]
    link = CountedLink(owner="worker-01", trunk=False, out=True, place="worker-01", device="eth0")
    assert [one.lost for one in took(found, short)] == [None]
    assert [one.lost for one in took(found, short, [link])] == [
        "held at the sender: in first's own queue (1 dropped)"
    ]
    found = readings(tmp_path, "first", *((at, []) for at, _ in moments))
    assert [one.lost for one in took(found, short, [link])] == [NOT_FOUND.text]


def test_of_a_round_it_is_told_by_what_was_kept_of_it(tmp_path: Path) -> None:
    moments = [
        (0.0, [counted("1:1", 0)]),
        (1.0, [counted("1:1", 9000, drops=2)]),
    ]
    one = Round(
        name="flood",
        floor_bps=1e6,
        points=[],
        since_s=0.0,
        until_s=1.0,
        stalls=[],
        saturated=[],
        way=Datapath.of(RATES, "100M"),
        watched=[Watched(place=place, readings=moments) for place in ("worker-01", "master-01", "first")],
    )
    file = tmp_path / "attacks.json"
    atomic.write_model(file, Rounds(rounds=[one, one]))
    (found,) = attribution.took(Evidence({}, file), [Short(MEASURED, "100M", 1, 0.0, 1.0)])
    assert (found.flow, found.recording, found.repetition) == ("100M", "measured/attacks.json", 1)
    assert [(each.place, each.bytes, each.drops) for each in found.queues] == [
        ("first", 9000, 2), ("worker-01", 9000, 2),
    ]  # fmt: skip
