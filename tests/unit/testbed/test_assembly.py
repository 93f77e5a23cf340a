"""Which parts a testbed is made of."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import Field

from testbed import assembly, doctor
from testbed.assembly import CNI, OrchestratorKind, ProviderKind, assemble, demand, register_provider
from testbed.enforcements.enforcement import Enforcement
from testbed.orchestrators import Orchestrator
from testbed.orchestrators.clusters import PodsOnMachines
from testbed.orchestrators.cni import CniOrchestrator
from testbed.providers import Provider
from testbed.providers.netns.provider import NetnsProvider
from testbed.registry import KINDS
from testbed.scenario import ScenarioError, settings
from testbed.scenario.addressing import Addressing
from testbed.scenario.words import Part
from testbed.supplies import binaries, packages, versions
from testbed.supplies.binaries import Binaries
from testbed.testbed import Testbed
from tests.unit.testbed.builders import addressed


@pytest.fixture
def inventory(contmec: Addressing, tmp_path: Path) -> Path:
    file = tmp_path / "hosts.yaml"
    hosts = "".join(f"    {name}: {{ansible_host: 192.0.2.1}}\n" for name in contmec.nodes)
    file.write_text(f"all:\n  hosts:\n{hosts}")
    return file


def orchestrator(testbed: Testbed) -> Orchestrator:
    """Return what will run the pods once the nodes are up."""
    return testbed._orchestrate(testbed.addressing, testbed.enforcement, testbed.provider)


def test_kubernetes_on_machines_is_what_was_provisioned(contmec: Addressing, inventory: Path) -> None:
    provisioned = assemble(contmec.scenario, f"ssh:{inventory}", "kubernetes")
    assert isinstance(orchestrator(provisioned), PodsOnMachines)
    assert isinstance(orchestrator(assemble(contmec.scenario, f"ssh:{inventory}", "cni")), CniOrchestrator)


@pytest.mark.parametrize("provider", ["netns", "ssh", "vagrant"])
def test_pods_without_kubernetes_run_anywhere(provider: str) -> None:
    assert demand(provider, "cni").make is CNI.make


def test_clusters_are_made_on_namespaces_and_found_on_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "missing_for_kubernetes", lambda: iter(()))
    assert not demand("netns", "kubernetes").finds_clusters
    assert demand("ssh:hosts.yaml", "kubernetes").finds_clusters


@pytest.mark.parametrize("provider", ["netns:hosts.yaml", "vagrant:hosts.yaml"])
def test_what_has_no_source_is_given_none(contmec: Addressing, provider: str) -> None:
    with pytest.raises(LookupError, match=f"--provider {provider}: "):
        assemble(contmec.scenario, provider, "cni")


@pytest.mark.parametrize("provider", ["ssh", "vagrant"])
def test_machines_are_not_given_daemons(provider: str, inventory: Path) -> None:
    scenario = addressed("contmec", "clusters.b.backend=bgp").scenario
    source = f"ssh:{inventory}" if provider == "ssh" else provider
    words = (
        r"^scenario contmec: clusters\.b\.backend: bgp has daemons on the nodes, which only --provider netns"
    )
    with pytest.raises(ScenarioError, match=words):
        assemble(scenario, source, "cni")


@pytest.mark.parametrize("provider", ["netns", "ssh", "vagrant"])
def test_a_network_without_a_list_is_for_clusters_that_exist(provider: str, inventory: Path) -> None:
    foreign = addressed("contmec", "enforcement={name: cilium, claims: [ceiling], told: annotation}")
    with pytest.raises(ScenarioError, match="enforcement: network cilium has no conflist"):
        assemble(foreign.scenario, f"ssh:{inventory}" if provider == "ssh" else provider, "cni")
    assembly.accept(foreign, demand("existing", "kubernetes"))


def test_a_backend_whose_program_is_missing_is_refused_with_what_gets_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONCORDE_CACHE", str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    scenario = addressed("contmec", "clusters.a.backend=bgp").scenario
    words = r"clusters\.a\.backend: bgp: no program bird, of Debian's package bird2: \./invokew programs\.get"
    with pytest.raises(ScenarioError, match=words):
        assemble(scenario, "netns", "cni")


@pytest.mark.parametrize(("flanneld", "refused"), [("v0.22.0", ["a"]), ("", [])])
def test_a_flanneld_that_is_given_must_know_the_backend(
    monkeypatch: pytest.MonkeyPatch, flanneld: str, refused: list[str]
) -> None:
    found = Binaries(versions.parse("1.20.2"), Path("/kept"), "a test", (), flanneld)
    monkeypatch.setattr(binaries, "find", lambda: found)
    monkeypatch.setattr(packages, "find", lambda package, program: Path("/kept", program))
    addressing = addressed("contmec", "clusters.a.backend=bgp", "clusters.b.backend=host-gw")
    faults = list(assembly.OWN.refuse(addressing))
    assert [fault.path for fault in faults] == [("clusters", name, "backend") for name in refused]
    assert all(fault.message.startswith("flanneld has no backend bgp: ") for fault in faults)


def test_blocks_of_two_families_are_refused_where_an_api_server_keeps_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = "{name: all, cidr: 172.17.0.0/16, mask: 24, ipv6: {cidr: 'fd00::/112', mask: 120}}"
    cluster = "{master: master-02, workers: [worker-01, worker-02], flannel: {vni: 2}"
    addressing = addressed("contmec", f"clusters.b={cluster}, pod_cidrs: [{both}]}}")
    monkeypatch.setattr(packages, "find", lambda package, program: Path("/kept", program))
    (fault,) = assembly.OWN.refuse(addressing)
    assert fault.path == ("clusters", "b", "pod_cidrs", 0, "ipv6")
    assert "IPv6DualStack" in fault.message
    assert list(assembly.OWN.refuse(addressed("contmec"))) == []


@pytest.fixture
def cloud(own_parts: None) -> list[tuple[str, bool]]:
    """Make a provider known for one test; return what it was asked for."""
    asked: list[tuple[str, bool]] = []

    def make(addressing: Addressing, source: str, clusters_exist: bool) -> Provider:
        asked.append((source, clusters_exist))
        return NetnsProvider(addressing)

    register_provider("cloud", ProviderKind(make, {"cni": CNI}))
    return asked


def test_a_provider_from_outside_is_one_of_the_command_lines(
    contmec: Addressing, cloud: list[tuple[str, bool]]
) -> None:
    assert isinstance(orchestrator(assemble(contmec.scenario, "cloud:account", "cni")), CniOrchestrator)
    assert cloud == [("account", False)]
    with pytest.raises(LookupError, match=r"no orchestrator 'kubernetes' \(orchestrators: cni\)"):
        assemble(contmec.scenario, "cloud", "kubernetes")
    with pytest.raises(LookupError, match=r"no provider 'moon' .*existing, cloud"):
        assemble(contmec.scenario, "moon", "cni")


class Bare(Part):
    """A scenario's settings.orchestrator.bare."""

    shells: int = Field(1, description="of each pod")


@pytest.mark.usefixtures("own_parts")
def test_an_orchestrator_from_outside_is_known_and_handed_its_settings() -> None:
    handed: list[object] = []

    def make(addressing: Addressing, enforcement: Enforcement, nodes: Provider, own: Bare) -> Orchestrator:
        handed.append(own.shells)
        return CniOrchestrator(addressing, enforcement, nodes.nodes)

    def nodes(addressing: Addressing, _source: str, _clusters_exist: bool) -> Provider:
        return NetnsProvider(addressing)

    register_provider(
        "cloud", ProviderKind(nodes, {"cni": CNI, "bare": OrchestratorKind(make, settings=Bare())})
    )
    assert list(KINDS["orchestrator"]) == ["cni", "kubernetes", "bare"]
    assert ("settings.orchestrator.bare.shells", 1, "of each pod") in settings.fields()
    for overrides in ((), ("settings.orchestrator.bare.shells=3",)):
        orchestrator(assemble(addressed("contmec", *overrides).scenario, "cloud", "bare"))
    assert handed == [1, 3]


@pytest.mark.parametrize("name", ["cloud", "netns", "existing"])
def test_a_name_is_taken_once(cloud: list[tuple[str, bool]], name: str) -> None:
    with pytest.raises(ValueError, match=f"there is a provider '{name}' already"):
        register_provider(name, ProviderKind(lambda addressing, *_: NetnsProvider(addressing), {}))


@pytest.mark.parametrize(("override", "field"), [(None, "zones"), ("rate: 1G", "nodes.worker-01.rate")])
def test_links_that_are_there_already_are_not_made_as_a_scenario_says(
    inventory: Path, override: str | None, field: str
) -> None:
    asked = f"nodes.worker-01={{{override}}}"
    scenario = addressed(*("contmec", asked) if override else ("examples/two-stations",)).scenario
    with pytest.raises(LookupError, match=f"^{field}: nodes of --provider ssh have links already"):
        assemble(scenario, f"ssh:{inventory}", "cni")


def test_what_differs_from_link_to_link_has_to_be_made() -> None:
    def own_links(name: str, *settings: str) -> str | None:
        return assembly.own_links(addressed(name, *settings).scenario)

    assert own_links("examples/two-stations") == "zones"
    assert own_links("examples/devices") == "segments"
    assert own_links("contmec", "nodes.worker-01={rate: 9G}") == "nodes.worker-01.rate"
    assert own_links("contmec", "underlay.rate=9G") is None
