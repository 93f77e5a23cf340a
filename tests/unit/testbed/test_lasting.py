"""Testbeds that stay up are found by name, whoever keeps them; and with a provider, what that leads to."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import pytest

from testbed import assembly, lasting
from testbed.access.place import PodPlace
from testbed.providers import Provider, keeping
from testbed.providers.keeping import BringUp, CommandLine, Location, State, Way
from testbed.registry import Registry
from testbed.scenario import Scenario, load
from tests.paths import ROOT

SCENARIO = load(ROOT / "scenarios" / "kubernetes.yaml")


@dataclass(frozen=True)
class Kept:
    """A testbed with one node; what leads there says so."""

    name: str

    def state(self) -> State:
        return State(scenario="any", places=keeping.nodes({"worker-01": "192.0.2.1"}))

    def command(self, way: Way, argv: Sequence[str]) -> CommandLine:
        return CommandLine(["to", way.node, *argv])

    def login(self, location: Location, argv: Sequence[str]) -> CommandLine:
        return CommandLine(["log", "in", location.node, *argv])

    def capture(self, location: Location, interface: str, arguments: Sequence[str]) -> CommandLine:
        return CommandLine(["capture", location.node, interface, *arguments])

    def place(self, name: str, way: Way, address: str) -> PodPlace:
        raise NotImplementedError

    def kubeconfig(self, cluster: str) -> str:
        return f"kubeconfig of {cluster}"

    def down(self) -> str:
        return "down"

    def destroy(self) -> str:
        raise keeping.nothing_to_destroy()


@dataclass
class Keeper:
    """Keeps testbeds that nobody has to bring up."""

    kept: list[str] = field(default_factory=list)

    def default_name(self, scenario: Scenario) -> str:
        return scenario.name

    def up(
        self, scenario: Scenario, source: str, name: str, bring_up: BringUp, progress: Callable[[str], None]
    ) -> Kept:
        progress(f"{scenario.name} from {source}")
        self.kept.append(name)
        return Kept(name)

    def names(self) -> list[str]:
        return self.kept

    def find(self, name: str) -> Kept | None:
        return Kept(name) if name in self.kept else None

    def at(self, source: str, scenario: Scenario | None, name: str | None) -> Kept | None:
        return Kept(source) if source else self.find(name or keeping.DEFAULT)


@pytest.fixture
def keepers(monkeypatch: pytest.MonkeyPatch) -> dict[str, Keeper]:
    """Two providers that can keep testbeds, and one that cannot."""
    made = {"here": Keeper(), "there": Keeper()}
    kinds = Registry[assembly.ProviderKind]("provider")
    for name in made:
        keeper = partial(made.__getitem__, name)
        kinds.register(name, assembly.ProviderKind(_no_provider, {"cni": assembly.CNI}, keeper))
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


def test_all_are_listed_by_name_whoever_keeps_them(keepers: dict[str, Keeper]) -> None:
    keepers["there"].kept, keepers["here"].kept = ["a", "c"], ["b"]
    assert [kept.name for kept in lasting.testbeds()] == ["a", "b", "c"]


def test_one_is_found_by_its_name(keepers: dict[str, Keeper]) -> None:
    keepers["there"].kept = ["a"]
    assert lasting.find("a") == Kept("a")
    with pytest.raises(LookupError, match=r"no testbed 'b' is up \(testbeds: a\)"):
        lasting.find("b")


def test_two_of_one_name_are_told_apart_by_their_providers(keepers: dict[str, Keeper]) -> None:
    keepers["there"].kept = keepers["here"].kept = ["a"]
    with pytest.raises(LookupError, match="2 testbeds are called 'a'; choose by --provider here or there"):
        lasting.find("a")
    assert lasting.at("there", None, "a") == Kept("a")


@pytest.mark.parametrize(
    ("up", "meant"), [(["a"], "a"), (["a", keeping.DEFAULT], keeping.DEFAULT), ([keeping.DEFAULT], "testbed")]
)
def test_without_a_name_the_usual_one_or_the_only_one_is_meant(
    keepers: dict[str, Keeper], up: list[str], meant: str
) -> None:
    keepers["there"].kept = up
    assert lasting.only().name == meant


@pytest.mark.parametrize("up", [[], ["a", "b"]])
def test_without_a_name_nobody_guesses(keepers: dict[str, Keeper], up: list[str]) -> None:
    keepers["here"].kept = up
    with pytest.raises(LookupError, match=f"testbeds: {', '.join(up) or 'none'}"):
        lasting.only()


def test_a_source_leads_to_what_has_no_name(keepers: dict[str, Keeper]) -> None:
    assert lasting.at("here:hosts.yaml", None, None) == Kept("hosts.yaml")
    with pytest.raises(LookupError, match="no testbed 'testbed' is up with --provider here"):
        lasting.at("here", None, None)


def test_up_is_the_keepers(keepers: dict[str, Keeper]) -> None:
    said: list[str] = []
    name = lasting.called(SCENARIO, "there:hosts", None)
    kept = lasting.up(SCENARIO, "there:hosts", "cni", name, said.append)
    assert kept.name == SCENARIO.name
    assert keepers["there"].kept == [SCENARIO.name]
    assert said == [f"{SCENARIO.name} from hosts"]


def test_a_name_is_given_once_whoever_keeps_it(keepers: dict[str, Keeper]) -> None:
    keepers["here"].kept = ["a"]
    with pytest.raises(LookupError, match="testbed 'a' is up already; take it down, or choose another"):
        lasting.up(SCENARIO, "there", "cni", "a", print)
    assert keepers["there"].kept == []


@pytest.mark.parametrize(
    ("provider", "words"),
    [
        ("nowhere", r"no testbed can stay up there \(only with: here, there\)"),
        ("elsewhere", r"no provider 'elsewhere' \(providers: here, there, nowhere\)"),
    ],
)
@pytest.mark.usefixtures("keepers")
def test_who_keeps_nothing_says_so(provider: str, words: str) -> None:
    with pytest.raises(LookupError, match=words):
        lasting.called(SCENARIO, provider, None)
    with pytest.raises(LookupError, match=words):
        lasting.at(provider, None, None)


@pytest.mark.usefixtures("keepers")
def test_places_are_entered_by_what_their_keeper_says(become: list[CommandLine]) -> None:
    lasting.execute(Kept("a"), "worker-01", ["ip", "route"])
    lasting.log_in(Kept("a"), "worker-01", [])
    lasting.log_in(Kept("a"), "worker-01", ["tc -s class", "|", "head"])
    lasting.capture(Kept("a"), "worker-01", "eth1", ["tcp"])
    assert [list(one.words) for one in become] == [
        ["to", "worker-01", "ip", "route"],
        ["log", "in", "worker-01"],
        ["log", "in", "worker-01", "sh", "-c", "tc -s class | head"],
        ["capture", "worker-01", "eth1", "tcp"],
    ]
    with pytest.raises(LookupError, match="testbed 'a' has no 'A-9': worker-01"):
        lasting.execute(Kept("a"), "A-9", ["true"])


def test_what_is_read_comes_from_the_source() -> None:
    become = (
        "from testbed.lasting import become; from testbed.providers.keeping import CommandLine;"
        "become(CommandLine(['tr', 'a-z', 'A-Z'], {'PATH': '/usr/bin:/bin'}, ['echo', 'needle']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", become], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "NEEDLE\n"
