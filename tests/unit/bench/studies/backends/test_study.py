"""A study of backends: what it is asked for, and what it makes of files that are known."""

from __future__ import annotations

import io
import json
import shutil
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from bench.console.progress import Display
from bench.presentation.figures.sheet import PAGE
from bench.recording import atomic
from bench.recording.records import StudyRequest
from bench.studies import loop
from bench.studies.backends import measuring, sheets
from bench.studies.backends.index import Backends, read
from bench.studies.backends.measuring import Datapath
from bench.studies.backends.records import Cost, Event, Nodes
from bench.studies.backends.study import BackendsStudy
from bench.studies.study import figure_files
from testbed.scenario import load
from tests.unit.bench.studies.backends import known
from tests.unit.bench.studies.backends.known import MS, SECOND

NO_IPIP = "ipip: the kernel needs CONFIG_NET_IPIP"


def lacks(way: Datapath) -> str | None:
    return NO_IPIP if way.cluster["backend"] == "ipip" else None


def asked(**choices: tuple[str, ...]) -> StudyRequest:
    return StudyRequest(study="backends", choices=choices)


def test_every_backend_is_a_case_on_a_full_link() -> None:
    cases = BackendsStudy(lacks).cases(asked())
    assert {case.row.backend for case in cases} >= {"vxlan", "host-gw", "ipip", "bgp"}
    for case in cases:
        if case.row.backend == "ipip":
            assert (case.scenario, case.row.reason) == (None, NO_IPIP)
            continue
        assert case.scenario is not None
        assert case.promised == (case.row.part == "guarantee")
        assert case.scenario.enforcement == ("node" if case.promised else "none")
        assert {cluster.backend for cluster in case.scenario.clusters.values()} == {case.row.backend}


def test_settings_are_measured_where_they_matter() -> None:
    study = BackendsStudy(lacks)
    named = "bgp, no graceful restart"
    assert study.cases(asked(backend=(named,))) == []
    way = measuring.known()[named]
    assert way.overrides("a") == ("clusters.a.backend=bgp", "clusters.a.bgp.graceful_restart=false")
    scenario = load(Path("scenarios/congested.yaml"), way.overrides("a"))
    assert scenario.clusters["a"].bgp is not None
    assert not scenario.clusters["a"].bgp.graceful_restart


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"backend": ("pigeons",)}, r"--backend: no backend 'pigeons' \(backends: vxlan, .*bgp"),
        (
            {"part": ("costs",)},
            r"--part: no part 'costs' \(parts: guarantee, round-trip, throughput, cost, first, nodes\)",
        ),
        ({"nodes": ("2",)}, "--nodes: must be an integer from 3 to 200, not '2'"),
        ({"nodes": ("many",)}, "--nodes: must be an integer from 3 to 200, not 'many'"),
        ({"repetitions": ("0",)}, "--repetitions: must be an integer from 1 to 1000, not '0'"),
        ({"repetitions": ("1", "2")}, "--repetitions: 1 and 2 are several numbers; write one"),
        ({"seed": ("-1",)}, "--seed: must be an integer from 0 to 4294967295, not '-1'"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(choices: dict[str, tuple[str, ...]], words: str) -> None:
    with pytest.raises(LookupError, match=words):
        BackendsStudy(lacks).cases(asked(**choices))


def test_other_providers_are_refused() -> None:
    elsewhere = asked().model_copy(update={"provider": "ssh:inventory.yaml"})
    with pytest.raises(LookupError, match="nodes of one kernel: --provider netns"):
        BackendsStudy(lacks).cases(elsewhere)


class Made(BackendsStudy):
    """A study whose measuring leaves files that are known, and that can be told to fail on its way."""

    def __init__(self) -> None:
        super().__init__(lacks)
        self.failing = False

    def measure(self, asked: StudyRequest, directory: Path, displays: object) -> None:
        beside = known.throughput(1, None, vxlan=[30.0, 30.0], host_gw=[36.0, 36.0])
        self._write(directory / "measured" / "throughput-1.json", beside)
        if self.failing:
            raise RuntimeError("it broke")
        join = Event(name="join", begun_ns=2 * SECOND, done_ns=2 * SECOND)
        pair = [(0, 0, 1999, 1999 * MS), (2100, 2100 * MS, 9_999, 9_999 * MS)]
        for number, name in enumerate(("vxlan", "host-gw")):
            where = measuring.directory_of(directory, name)
            cost = known.cost(known.offered(0.8 - 0.2 * number), backend=name)
            self._write(where / "cost-1.json", cost)
            self._write(where / "first-1.json", known.exchanges(0.5, 2.0, None, backend=name))
            for size in (10, 3):
                made = known.nodes([pair, pair], [join], backend=name, number=size)
                self._write(where / f"nodes-{size}.json", made)

    @staticmethod
    def _write(file: Path, what: object) -> None:
        atomic.write_model(file, what)  # type: ignore[arg-type]


PARTS = ("throughput", "cost", "first", "nodes")


def run(study: BackendsStudy, to: Path) -> Path:
    wanted = StudyRequest(
        study="backends",
        reports=str(to),
        choices={"backend": ("vxlan", "host-gw", "ipip"), "part": PARTS},
    )
    return loop.run(study, wanted, partial(Display, Console(file=io.StringIO())))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that is complete; nobody may change it."""
    return run(Made(), tmp_path_factory.mktemp("reports"))


def test_what_was_measured_is_summed_up_from_files_alone(directory: Path) -> None:
    study = Made()
    found = read(directory)
    assert found.backends == ["vxlan", "host-gw", "ipip"]
    assert found.cannot == {"ipip": NO_IPIP}
    assert list(found.measured) == ["vxlan", "host-gw"]
    faster = found.measured["host-gw"]
    assert faster.throughput_bps is not None
    assert faster.throughput_bps.median == pytest.approx(36e9)
    assert faster.of_first is not None
    assert faster.of_first.median == pytest.approx(1.2)
    assert faster.cost[0].ns is not None
    assert faster.cost[0].ns.median == pytest.approx(15_000)
    assert (faster.first[0].p95_ns, faster.first[0].failed) == (2 * MS, 1)
    assert [size.nodes for size in faster.sizes] == [3, 10]
    assert [event.arrive_s for event in faster.sizes[0].events] == [pytest.approx(0.1)]
    assert study.valid(directory)
    assert study.notes(directory) == [f"not run: ipip: {NO_IPIP}"]
    assert (directory / "figures" / "backends.svg").stat().st_size > 1000


def test_a_slow_path_that_is_planted_is_seen(directory: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(directory, tmp_path / "copy")
    slow = known.throughput(1, None, vxlan=[30.0], host_gw=[27.0])
    atomic.write_model(copy / "measured" / "throughput-1.json", slow)
    found = Made().summed_up(copy)
    slower = found.measured["host-gw"].of_first
    assert slower is not None
    assert slower.median == pytest.approx(0.9)


@pytest.mark.long(one_in=0)
def test_the_same_files_give_the_same_bytes(directory: Path) -> None:
    drawn = Made().figures(directory, PAGE)
    outputs = {**figure_files(drawn, PAGE), **Made().outputs(directory, drawn)}
    assert outputs == {path: (directory / path).read_bytes() for path in outputs}


def test_a_backend_that_cannot_be_run_is_a_row_that_says_why_and_never_a_number(directory: Path) -> None:
    text = (directory / "backends.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| ipip ")]
    assert rows == [f"| ipip | cannot be run here: {NO_IPIP} | – | – |"]


@pytest.mark.long(one_in=0)
def test_a_study_that_broke_goes_on_with_what_it_lacks(tmp_path: Path) -> None:
    study = Made()
    study.failing = True
    with pytest.raises(RuntimeError, match="it broke"):
        run(study, tmp_path)
    (left,) = tmp_path.iterdir()
    assert left.name.endswith(".unfinished")
    assert read(left).measured == {}
    study.failing = False
    finished = loop.resume(study, str(left), tmp_path, partial(Display, Console(file=io.StringIO())))
    assert read(finished).measured["vxlan"].cost


def test_what_is_there_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def many(way: Datapath, size: int) -> Nodes:
        made.append(f"{way.name} {size}")
        return known.nodes([], [], backend=way.name, number=size)

    monkeypatch.setattr(measuring, "many", many)
    two = [measuring.known()[name] for name in ("vxlan", "host-gw")]
    wanted = measuring.Wanted(two, ["nodes"], {"throughput": 1, "cost": 1, "first": 1}, [3, 10], 0)
    atomic.write_model(tmp_path / "measured" / "host-gw" / "nodes-3.json", known.nodes([], []))
    told: list[str] = []
    measuring.measure(wanted, tmp_path, told.append)
    assert made == ["vxlan 3", "vxlan 10", "host-gw 10"]
    assert told == ["1 of 3: vxlan: 3 nodes", "2 of 3: vxlan: 10 nodes", "3 of 3: host-gw: 10 nodes"]


def test_what_fails_keeps_nothing_else_from_being_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def many(way: Datapath, size: int) -> Nodes:
        if way.name == "vxlan" and size == 3:
            raise RuntimeError("no room")
        return known.nodes([], [], backend=way.name, number=size)

    monkeypatch.setattr(measuring, "many", many)
    two = [measuring.known()[name] for name in ("vxlan", "host-gw")]
    wanted = measuring.Wanted(two, ["nodes"], {"throughput": 1, "cost": 1, "first": 1}, [3, 10], 0)
    with pytest.raises(RuntimeError, match=r"^vxlan: 3 nodes: no room$"):
        measuring.measure(wanted, tmp_path, lambda _: None)
    made = sorted(str(file.relative_to(tmp_path)) for file in tmp_path.rglob("*.json"))
    assert made == [
        "measured/host-gw/nodes-10.json",
        "measured/host-gw/nodes-3.json",
        "measured/vxlan/nodes-10.json",
    ]


def test_backends_take_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, int]] = []

    def cost(way: Datapath, number: int) -> Cost:
        made.append((way.name, number))
        return known.cost(backend=way.name, number=number)

    monkeypatch.setattr(measuring, "cost", cost)
    names = ["vxlan", "host-gw", "bgp"]
    rounds = {"throughput": 1, "cost": 8, "first": 1}
    wanted = measuring.Wanted([measuring.known()[name] for name in names], ["cost"], rounds, [], 1)
    measuring.measure(wanted, tmp_path, lambda _: None)
    blocks = [made[start : start + 3] for start in range(0, 24, 3)]
    assert [{number for _, number in block} for block in blocks] == [{n} for n in range(1, 9)]
    assert all({name for name, _ in block} == set(names) for block in blocks)
    assert len({tuple(name for name, _ in block) for block in blocks}) > 1


def test_a_study_without_a_valid_run_is_invalid(directory: Path, tmp_path: Path) -> None:
    study, copy = Made(), shutil.copytree(directory, tmp_path / "copy")
    where = measuring.directory_of(copy, "vxlan")
    atomic.write_model(where / "cost-1.json", known.cost(known.offered(0.8, idle=1.0)))
    assert not study.valid(copy)
    assert any("processors were busy before it" in note for note in study.notes(copy))
    assert "| vxlan | invalid |" in sheets.markdown(study.summed_up(copy))


def test_a_page_gets_the_tables_between_its_marks() -> None:
    text = f"# Title\n\n{sheets.BEGIN}old\n{sheets.END}\nThe rest.\n"
    assert sheets.filled(text, "new\n") == f"# Title\n\n{sheets.BEGIN}\nnew\n\n{sheets.END}\nThe rest.\n"
    with pytest.raises(ValueError, match="The end of these tables"):
        sheets.filled("# Title\n", "new\n")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(12.04, "12.0 s"), (1.316, "1.32 s"), (0.0831, "83 ms"), (0.00451, "4.5 ms"), (0.0, "0 ms")],
)
def test_times_are_told_as_people_read_them(seconds: float, words: str) -> None:
    assert sheets.duration(seconds) == words


def test_an_index_of_before_anything_was_measured_shows_nothing() -> None:
    assert sheets.sheets(Backends(backends=["vxlan"])) == []


def test_raw_files_can_be_read_by_anybody(directory: Path) -> None:
    for file in (directory / "measured").rglob("*.json"):
        assert json.loads(file.read_text())["schema_version"] == 1
