"""What Vagrant is told of a scenario, and the inventory of what it made."""

from __future__ import annotations

from pathlib import Path

from ruamel.yaml import YAML

from testbed.providers.ssh import inventory
from testbed.providers.vagrant import machines
from testbed.scenario import load
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
SSH_CONFIG = """\
Host {name}
  HostName {host}
  User vagrant
  Port {port}
  UserKnownHostsFile /dev/null
  StrictHostKeyChecking no
  PasswordAuthentication no
  IdentityFile "/a b/{name}/private_key"
  IdentitiesOnly yes
  LogLevel FATAL

"""


def test_every_machine_has_its_address_and_its_size() -> None:
    scenario = load(SCENARIOS / "paper-vms.yaml", ["nodes.worker-01.machine.memory=4096"])
    told = YAML(typ="safe", pure=True).load(machines.machines(scenario))
    assert told == {
        "name": "paper-vms",
        "underlay": {"cidr": "192.168.56.0/24", "mtu": 1500},
        "nodes": {
            "master-01": {"address": "192.168.56.11", "machine": {"cpus": 2, "memory": 16384}},
            "master-02": {"address": "192.168.56.12", "machine": {"cpus": 2, "memory": 16384}},
            "worker-01": {"address": "192.168.56.13", "machine": {"cpus": 2, "memory": 4096}},
            "worker-02": {"address": "192.168.56.14", "machine": {"cpus": 2, "memory": 16384}},
        },
        "clusters": {
            "a": {"master": "master-01", "workers": ["worker-01", "worker-02"]},
            "b": {"master": "master-02", "workers": ["worker-01", "worker-02"]},
        },
    }


def test_the_inventory_leads_the_ssh_provider_to_the_machines(tmp_path: Path) -> None:
    scenario = load(SCENARIOS / "kubernetes.yaml")
    said = "".join(
        SSH_CONFIG.format(name=name, host="127.0.0.1", port=2200 + index)
        for index, name in enumerate(scenario.nodes)
    )
    file = tmp_path / "inventory.yaml"
    file.write_text(machines.rendered_inventory(scenario, said, Path("/known to us/hosts")))
    found = inventory.machines(scenario, file)
    assert list(found) == ["master-01", "worker-01", "worker-02"]
    worker = found["worker-01"]
    assert (worker.host, worker.port, worker.user) == ("127.0.0.1", 2201, "vagrant")
    assert worker.key == Path("/a b/worker-01/private_key")
    assert worker.known_hosts == Path("/known to us/hosts")
    assert str(worker.underlay_address) == "192.168.56.12"
