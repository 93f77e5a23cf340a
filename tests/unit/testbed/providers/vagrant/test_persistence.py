"""Virtual machines as a testbed that stays up; what Vagrant would do is not done."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from testbed.access.local import ENVIRONMENT
from testbed.access.place import Route
from testbed.providers import Provider
from testbed.providers.persistence import State
from testbed.providers.ssh.persistence import AS_ROOT
from testbed.providers.vagrant import machines
from testbed.providers.vagrant.provider import VagrantPersistence
from testbed.scenario import Scenario, load
from tests.paths import ROOT
from tests.ports import free_ports

KUBERNETES = load(ROOT / "scenarios" / "kubernetes.yaml")
NODE = """Host {name}
  HostName 127.0.0.1
  Port {port}
  User vagrant
  IdentityFile /keys/{name}
"""


@pytest.fixture
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all that is known of machines is."""
    monkeypatch.setattr("testbed.resources.MACHINES", tmp_path)
    return tmp_path


@pytest.fixture
def port() -> Iterator[int]:
    """Where somebody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def are_up(scenario: Scenario, states: Path, port: int) -> None:
    """Leave what there is of machines that are up."""
    state = states / scenario.name
    state.mkdir()
    (state / "machines.yaml").write_text(machines.machines(scenario))
    told = "".join(NODE.format(name=name, port=port) for name in scenario.nodes)
    (state / "inventory.yaml").write_text(machines.rendered_inventory(scenario, told, state / "known_hosts"))


def test_machines_are_called_what_their_scenario_is(states: Path, port: int) -> None:
    are_up(KUBERNETES, states, port)
    persistence = VagrantPersistence()
    assert persistence.names() == ["kubernetes"]
    kept = persistence.find("kubernetes")
    assert kept is not None
    state = kept.state()
    assert {name: (where.kind, where.address) for name, where in state.places.items()} == {
        "master-01": ("node", "192.168.56.11"),
        "worker-01": ("node", "192.168.56.12"),
        "worker-02": ("node", "192.168.56.13"),
    }
    assert (state.scenario, state.enforcement) == ("kubernetes", None)
    assert state.notes == [
        f"machines of scenario kubernetes are up; inventory: {states}/kubernetes/inventory.yaml"
    ]


def test_another_name_is_kept_with_them(states: Path, port: int) -> None:
    are_up(KUBERNETES, states, port)
    persistence = VagrantPersistence()
    kept = persistence.find("kubernetes")
    assert kept is not None
    kept.made.call("lab")
    assert persistence.names() == ["lab"]
    assert persistence.default_name(KUBERNETES) == "lab"
    assert persistence.find("kubernetes") is None
    assert persistence.at("", KUBERNETES, None).name == "lab"
    assert persistence.at("", None, "lab").state().scenario == "kubernetes"


def test_a_name_that_other_machines_have_is_refused(states: Path, port: int) -> None:
    are_up(KUBERNETES, states, port)
    other = load(ROOT / "scenarios" / "contmec.yaml")
    with pytest.raises(LookupError, match="machines of scenario kubernetes are called 'kubernetes'"):
        VagrantPersistence().up(other, "", "kubernetes", _nothing, print)


def test_an_inventory_is_not_believed_where_nobody_answers(states: Path) -> None:
    are_up(KUBERNETES, states, free_ports(1)[0])
    assert VagrantPersistence().find("kubernetes") is None
    # To be switched off all the same.
    assert VagrantPersistence().at("", KUBERNETES, None).name == "kubernetes"


def test_machines_that_are_off_lead_nowhere(states: Path, port: int) -> None:
    are_up(KUBERNETES, states, port)
    (states / "kubernetes" / "inventory.yaml").unlink()
    persistence = VagrantPersistence()
    assert persistence.names() == []
    with pytest.raises(LookupError, match="no machines of scenario kubernetes are up"):
        persistence.at("", KUBERNETES, None).state()
    with pytest.raises(LookupError, match=r"no virtual machines are called 'x' \(there are: kubernetes\)"):
        persistence.at("", None, "x")


def test_without_a_word_the_papers_machines_are_meant(states: Path) -> None:
    assert VagrantPersistence().at("", None, None).made.scenario_name == "contmec"


def test_commands_go_by_ssh_as_root_and_people_as_themselves(states: Path, port: int) -> None:
    are_up(KUBERNETES, states, port)
    kept = VagrantPersistence().at("", KUBERNETES, None)
    where = kept.state().places["worker-01"]
    route = [
        "ssh", "-p", str(port), "-l", "vagrant", "-i", "/keys/worker-01",
        "-o", f"UserKnownHostsFile={states}/kubernetes/known_hosts", "--", "127.0.0.1",
    ]  # fmt: skip
    assert kept.login(where, []).argv == route
    assert kept.login(where, ["ip", "route"]).argv == [*route, "ip route"]
    *to, line = kept.command(Route(node="worker-01"), ["ip", "route"]).argv
    assert to == route
    assert line == f"sh -c '{AS_ROOT}' sh env PATH={ENVIRONMENT['PATH']} ip route"
    *to, line = kept.capture(where, "eth1", ["tcp port 9"]).argv
    assert to == route
    assert line.endswith("worker-01 -n -l -i eth1 'tcp port 9'")


def test_they_have_no_kubeconfigs(states: Path) -> None:
    with pytest.raises(LookupError, match="has no Kubernetes cluster 'a'"):
        VagrantPersistence().at("", KUBERNETES, None).kubeconfig("a")


def _nothing(_: Provider) -> AbstractContextManager[State]:
    raise AssertionError("no testbed is to be made on them")
