"""Testbeds that stay up are found by name, whoever keeps them; and with a provider, what that leads to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from testbed import assembly, lasting
from testbed.access.place import Route
from testbed.providers import Provider, persistence
from testbed.providers.persistence import BringUp, CommandLine, Location, State
from testbed.registry import Registry
from testbed.scenario import Scenario, load
from tests.paths import ROOT

SCENARIO = load(ROOT / "scenarios" / "kubernetes.yaml")


@dataclass
class Persisted(persistence.Persisted):
    """A testbed with one node; what leads there says so."""

    name: str

    def state(self) -> State:
        return State(scenario="any", places=persistence.nodes({"worker-01": "192.0.2.1"}))

    def command(self, route: Route, argv: Sequence[str]) -> CommandLine:
        return CommandLine(["to", route.node, *argv])

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        return CommandLine(["log", "in", location.node, *argv])

    def capture(self, location: Location, interface: str, arguments: Sequence[str]) -> CommandLine:
        return CommandLine(["capture", location.node, interface, *arguments])

    def kubeconfig(self, cluster: str) -> str:
        return f"kubeconfig of {cluster}"

    def down(self) -> str:
        return "down"


@dataclass
class Persistence:
    """Keeps testbeds that nobody has to bring up."""

    kept: list[str] = field(default_factory=list)

    def default_name(self, scenario: Scenario) -> str:
        return scenario.name

    def up(
        self, scenario: Scenario, source: str, name: str, bring_up: BringUp, progress: Callable[[str], None]
    ) -> Persisted:
        progress(f"{scenario.name} from {source}")
        self.kept.append(name)
        return Persisted(name)

    def names(self) -> list[str]:
        return self.kept

    def find(self, name: str) -> Persisted | None:
        return Persisted(name) if name in self.kept else None

    def at(self, source: str, scenario: Scenario | None, name: str | None) -> Persisted | None:
        return Persisted(source) if source else self.find(name or persistence.DEFAULT)


@pytest.fixture
def persistences(monkeypatch: pytest.MonkeyPatch) -> dict[str, Persistence]:
    """Two providers that can keep testbeds, and one that cannot."""
    made = {"here": Persistence(), "there": Persistence()}
    kinds = Registry[assembly.ProviderKind]("provider")
    for name in made:
        persistence = partial(made.__getitem__, name)
        kinds.register(name, assembly.ProviderKind(_no_provider, {"cni": assembly.CNI}, persistence))
    kinds.register("nowhere", assembly.ProviderKind(_no_provider, {"cni": assembly.CNI}))
    monkeypatch.setattr(assembly, "PROVIDERS", kinds)
    return made


def _no_provider(*_: object) -> Provider:
    raise NotImplementedError


@pytest.fixture
def become(monkeypatch: pytest.MonkeyPatch) -> list[CommandLine]:
    """What this process would have become."""
    asked: list[CommandLine] = []
    monkeypatch.setattr(lasting, "become", asked.append)
    return asked


def test_all_are_listed_by_name_whoever_keeps_them(persistences: dict[str, Persistence]) -> None:
    persistences["there"].kept, persistences["here"].kept = ["a", "c"], ["b"]
    assert [kept.name for kept in lasting.testbeds()] == ["a", "b", "c"]


def test_one_is_found_by_its_name(persistences: dict[str, Persistence]) -> None:
    persistences["there"].kept = ["a"]
    assert lasting.find("a") == Persisted("a")
    with pytest.raises(LookupError, match=r"no testbed 'b' is up \(testbeds: a\)"):
        lasting.find("b")


def test_two_of_one_name_are_told_apart_by_their_providers(persistences: dict[str, Persistence]) -> None:
    persistences["there"].kept = persistences["here"].kept = ["a"]
    with pytest.raises(LookupError, match="2 testbeds are called 'a'; choose by --provider here or there"):
        lasting.find("a")
    assert lasting.at("there", None, "a") == Persisted("a")


@pytest.mark.parametrize(
    ("up", "meant"),
    [(["a"], "a"), (["a", persistence.DEFAULT], persistence.DEFAULT), ([persistence.DEFAULT], "testbed")],
)
def test_without_a_name_the_usual_one_or_the_only_one_is_meant(
    persistences: dict[str, Persistence], up: list[str], meant: str
) -> None:
    persistences["there"].kept = up
    assert lasting.only().name == meant


@pytest.mark.parametrize("up", [[], ["a", "b"]])
def test_without_a_name_nobody_guesses(persistences: dict[str, Persistence], up: list[str]) -> None:
    persistences["here"].kept = up
    with pytest.raises(LookupError, match=f"testbeds: {', '.join(up) or 'none'}"):
        lasting.only()


def test_a_source_leads_to_what_has_no_name(persistences: dict[str, Persistence]) -> None:
    assert lasting.at("here:hosts.yaml", None, None) == Persisted("hosts.yaml")
    with pytest.raises(LookupError, match="no testbed 'testbed' is up with --provider here"):
        lasting.at("here", None, None)


def test_up_is_the_persistences(persistences: dict[str, Persistence]) -> None:
    said: list[str] = []
    name = lasting.called(SCENARIO, "there:hosts", None)
    kept = lasting.up(SCENARIO, "there:hosts", "cni", name, said.append)
    assert kept.name == SCENARIO.name
    assert persistences["there"].kept == [SCENARIO.name]
    assert said == [f"{SCENARIO.name} from hosts"]


def test_a_name_is_given_once_whoever_keeps_it(persistences: dict[str, Persistence]) -> None:
    persistences["here"].kept = ["a"]
    with pytest.raises(LookupError, match="testbed 'a' is up already; take it down, or choose another"):
        lasting.up(SCENARIO, "there", "cni", "a", print)
    assert persistences["there"].kept == []


def test_segments_are_for_who_makes_links(persistences: dict[str, Persistence]) -> None:
    devices = load(ROOT / "scenarios" / "examples" / "devices.yaml")
    with pytest.raises(LookupError, match=r"^segments: nodes of --provider there have links already"):
        lasting.up(devices, "there:hosts", "cni", "a", print)
    assert persistences["there"].kept == []


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("nowhere", r"no testbed can stay up there \(only with: here, there\)"),
        ("elsewhere", r"no provider 'elsewhere' \(providers: here, there, nowhere\)"),
    ],
)
@pytest.mark.usefixtures("persistences")
def test_who_keeps_nothing_says_so(provider: str, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        lasting.called(SCENARIO, provider, None)
    with pytest.raises(LookupError, match=words):
        lasting.at(provider, None, None)


@pytest.mark.usefixtures("persistences")
def test_places_are_entered_by_what_their_keeper_says(become: list[CommandLine]) -> None:
    lasting.execute(Persisted("a"), "worker-01", ["ip", "route"])
    lasting.log_in(Persisted("a"), "worker-01", [])
    lasting.log_in(Persisted("a"), "worker-01", ["tc -s class", "|", "head"])
    lasting.capture(Persisted("a"), "worker-01", "eth1", ["tcp"])
    assert [list(one.argv) for one in become] == [
        ["to", "worker-01", "ip", "route"],
        ["log", "in", "worker-01"],
        ["log", "in", "worker-01", "sh", "-c", "tc -s class | head"],
        ["capture", "worker-01", "eth1", "tcp"],
    ]
    with pytest.raises(LookupError, match="testbed 'a' has no 'A-9': worker-01"):
        lasting.execute(Persisted("a"), "A-9", ["true"])


def test_what_is_read_comes_from_the_source() -> None:
    become = (
        "from testbed.lasting import become; from testbed.providers.persistence import CommandLine;"
        "become(CommandLine(['tr', 'a-z', 'A-Z'], {'PATH': '/usr/bin:/bin'}, ['echo', 'needle']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", become], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "NEEDLE\n"
