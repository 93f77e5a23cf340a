"""Inventories as Ansible reads them, and what of them is followed."""

from __future__ import annotations

import getpass
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from testbed.providers.ssh import inventory
from testbed.providers.ssh.inventory import Machine
from testbed.scenario import load
from tests.paths import ROOT

CONTMEC = ROOT / "scenarios" / "contmec.yaml"
INI = """\
[workers]
worker-0[1:2] ansible_host=10.0.0.1 ansible_port=2222
[masters]
master-01
[all:vars]
ansible_user=alice
ansible_ssh_private_key_file=/keys/lab
underlay_address=192.168.56.9
"""
YAML = """\
all:
  vars: {ansible_user: alice}
  children:
    workers:
      hosts:
        worker-01: {ansible_host: 10.0.0.1, ansible_password: secret}
        worker-02:
"""


def test_ini_with_ranges_and_group_variables(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text(INI)
    found = inventory.read(tmp_path / "hosts")
    assert set(found) == {"worker-01", "worker-02", "master-01"}
    worker = found["worker-01"]
    assert (worker.host, worker.port, worker.user, worker.key) == (
        "10.0.0.1",
        2222,
        "alice",
        Path("/keys/lab"),
    )
    assert worker.underlay_address == IPv4Address("192.168.56.9")
    assert (found["master-01"].host, found["master-01"].port) == ("master-01", 22)


def test_yaml_and_variables_beside_it(tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text(YAML)
    (tmp_path / "host_vars").mkdir()
    (tmp_path / "host_vars" / "worker-02.yaml").write_text("ansible_host: 10.0.0.2\n")
    found = inventory.read(tmp_path / "hosts.yaml")
    assert {name: machine.host for name, machine in found.items()} == {
        "worker-01": "10.0.0.1",
        "worker-02": "10.0.0.2",
    }
    assert found["worker-01"].password == "secret"
    assert "secret" not in repr(found["worker-01"])


def test_a_host_of_which_only_the_name_is_known(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("worker-01\n")
    assert inventory.read(tmp_path / "hosts") == {
        "worker-01": Machine("worker-01", "worker-01", getpass.getuser())
    }


@pytest.mark.parametrize("text", ["all: [\n", ""], ids=["broken", "empty"])
def test_what_is_no_inventory(text: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts.yaml"
    file.write_text(text)
    with pytest.raises(LookupError, match=rf"^{file}: "):
        inventory.read(file)


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"ansible_connection": "local"}, "ansible_connection: 'local' is not SSH"),
        ({"ansible_become_method": "doas"}, "ansible_become_method: 'doas' is not supported"),
        ({"ansible_become_user": "bob"}, "ansible_become_user: 'bob' is not root"),
        ({"ansible_become_password": "x"}, "ansible_become_password: passwords for sudo are not supported"),
        ({"ansible_host": "{{ address }}"}, "ansible_host: templates are not supported"),
        ({"ansible_port": "ssh"}, "ansible_port: 'ssh' is not a port"),
        ({"underlay_address": "here"}, "underlay_address: 'here' is not an IPv4 address"),
        ({"ansible_ssh_common_args": "-o ProxyCommand=x"}, "proxycommand is not supported"),
        ({"ansible_ssh_common_args": "-J bastion"}, "-J is not supported"),
        (
            {"ansible_ssh_extra_args": "-o StrictHostKeyChecking=no"},
            "StrictHostKeyChecking=no: host keys are always checked here",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_what_is_not_followed_is_refused(variables: dict[str, str], words: str) -> None:
    with pytest.raises(LookupError) as caught:
        inventory.machine("worker-01", variables, "hosts: worker-01")
    assert str(caught.value).startswith("hosts: worker-01: ")
    assert words in str(caught.value)


def test_options_of_ssh_that_are_followed() -> None:
    options = "-oUserKnownHostsFile='/lab/known hosts' -o StrictHostKeyChecking=yes"
    machine = inventory.machine("worker-01", {"ansible_ssh_common_args": options}, "hosts")
    assert machine.known_hosts == Path("/lab/known hosts")


def test_a_scenario_with_addresses_is_enough() -> None:
    names = load(CONTMEC).nodes
    own = [f"nodes.{name}={{address: 192.168.56.{20 + i}}}" for i, name in enumerate(names)]
    found = inventory.machines(load(CONTMEC, own), None)
    assert found["master-02"] == Machine("master-02", "192.168.56.21", getpass.getuser())
    with pytest.raises(LookupError, match=r"ssh:INVENTORY, or .*nodes.master-01.address"):
        inventory.machines(load(CONTMEC), None)
