from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from testbed.providers import Provider
from testbed.providers.persistence import State
from testbed.providers.ssh.inventory import Machine
from testbed.providers.ssh.persistence import MachinesPersistence, MachinesThere, ssh_command
from testbed.scenario import load
from tests.paths import ROOT

ADDRESSES = [f"nodes.{name}.address=192.168.56.{i}" for i, name in enumerate(("master-01", "worker-01"), 11)]
SCENARIO = load(ROOT / "scenarios" / "kubernetes.yaml", [*ADDRESSES, "nodes.worker-02.address=192.168.56.13"])


def _nothing(_: Provider) -> AbstractContextManager[State]:
    raise AssertionError("nothing is to be made on them")


def test_machines_are_a_scenarios_or_nobodys() -> None:
    persistence = MachinesPersistence()
    state = persistence.at("", SCENARIO, None).state()
    assert {name: where.address for name, where in state.places.items()} == {
        "master-01": "192.168.56.11", "worker-01": "192.168.56.12", "worker-02": "192.168.56.13"
    }  # fmt: skip
    with pytest.raises(LookupError, match="which machines"):
        persistence.at("", None, None)


def test_nothing_stays_up_there() -> None:
    persistence = MachinesPersistence()
    with pytest.raises(LookupError, match="nothing stays up on machines that exist"):
        persistence.up(SCENARIO, "", "any", _nothing, print)
    assert persistence.names() == []
    assert persistence.find("any") is None


def test_they_are_not_ours_to_destroy() -> None:
    found = {"worker-01": Machine("worker-01", "192.0.2.1", "alice")}
    there = MachinesThere("hosts.yaml", lambda: found)
    with pytest.raises(LookupError, match="--destroy is for machines that the testbed has made"):
        there.destroy()


def test_people_get_there_with_the_same_key() -> None:
    machine = Machine("w", "10.0.0.1", "alice", 2222, Path("/k"), None, Path("/known"))
    assert ssh_command(machine, ["echo", "a b"]) == [
        "ssh", "-p", "2222", "-l", "alice", "-i", "/k", "-o", "UserKnownHostsFile=/known",
        "--", "10.0.0.1", "echo 'a b'",
    ]  # fmt: skip
