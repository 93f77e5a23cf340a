"""Texts: what the Vagrantfile is told of a scenario, and the inventory of the machines that it made."""

from __future__ import annotations

import io
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing


def machines(scenario: Scenario) -> str:
    """Return of a scenario what its machines are made of: names, addresses, sizes, clusters, and network."""
    sizes = {name: node.machine or scenario.machine for name, node in scenario.nodes.items()}
    return _yaml({
        "name": scenario.name,
        "underlay": {"cidr": str(scenario.underlay.cidr), "mtu": scenario.underlay.mtu},
        "nodes": {
            name: {"address": str(address.ip), "machine": sizes[name].model_dump()}
            for name, address in Addressing(scenario).nodes.items()
        },
        "clusters": {
            name: {"master": cluster.master, "workers": list(cluster.workers)}
            for name, cluster in scenario.clusters.items()
        },
    })  # fmt: skip


def inventory(scenario: Scenario, ssh_config: str, known_hosts: Path) -> str:
    """Return the Ansible inventory of machines, from what ``vagrant ssh-config`` says of them."""
    import paramiko  # takes its time, and machines that are up have their inventory

    told = paramiko.SSHConfig.from_text(ssh_config)
    hosts = {}
    for name, address in Addressing(scenario).nodes.items():
        way = told.lookup(name)
        hosts[name] = {
            "ansible_host": way["hostname"],
            "ansible_port": int(way.get("port", "22")),
            "ansible_user": way["user"],
            "ansible_ssh_private_key_file": way["identityfile"][0],
            "underlay_address": str(address.ip),
        }
    known = f"-o UserKnownHostsFile={shlex.quote(str(known_hosts))}"
    shared = {"ansible_python_interpreter": "/usr/bin/python3", "ansible_ssh_common_args": known}
    return _yaml({"all": {"vars": shared, "hosts": hosts}})


def _yaml(data: Mapping[str, Any]) -> str:
    stream = io.StringIO()
    yaml = YAML()
    yaml.width = 110
    yaml.dump(data, stream)
    return stream.getvalue()
