"""The life of a scenario's virtual machines, from the first ``up`` until they are destroyed.

All that is known of them here is in one directory of the checkout, by the scenario's name: Vagrant's own
state, what the ``Vagrantfile`` was told, the inventory - which is there while they are up - and a log.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from ruamel.yaml import YAML

from testbed import resources
from testbed.access.place import in_parallel
from testbed.providers.ssh import inventory
from testbed.providers.ssh.inventory import Machine
from testbed.providers.vagrant import requirements
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing
from testbed.supplies.box import NAME

if TYPE_CHECKING:
    import vagrant

DESCRIPTION = "machines.yaml"
POOL = "default"  # libvirt's: the machines' disks there are differences to the copy of their box
SCAN_SECONDS = "60"
ANSWER_SECONDS = 2.0  # of a kernel, whatever its machine is busy with
LAST_LINES = 15
# Where Ruby was when something failed; more lines of it follow what failed than anybody wants to read.
STACK = re.compile(r"\s*(from )?/\S+\.rb:\d+:in `[^']*'$")

Say = Callable[[str], None]


class MachinesError(RuntimeError):
    """Vagrant, or what it works with, failed; the message has its own last words."""


class Made:
    """The virtual machines of one scenario, as far as its name tells: those that were made."""

    def __init__(self, scenario_name: str, states: Path | None = None) -> None:
        self.scenario_name = scenario_name
        self._states = states or resources.MACHINES
        self._state = self._states / scenario_name
        self._description = self._state / DESCRIPTION
        self._inventory = self._state / "inventory.yaml"
        self._known_hosts = self._state / "known_hosts"
        self._log = self._state / "log"
        self._name = self._state / "name"

    @property
    def name(self) -> str:
        """What they are called: as their scenario, unless something else was said."""
        return self._name.read_text(encoding="utf-8") if self._name.exists() else self.scenario_name

    def call(self, name: str) -> None:
        """Call them something."""
        self._name.write_text(name, encoding="utf-8")

    def is_listed(self) -> bool:
        """Tell whether there is an inventory, as there is while they are up."""
        return self._inventory.exists()

    def answers(self) -> bool:
        """Tell whether any machine does: a host that was restarted has an inventory, and they are off."""
        return any(in_parallel(_listens, self.machines().values()))

    def machines(self) -> dict[str, Machine]:
        """Return how to get to each, by its node's name. Raises LookupError if they are not up."""
        file = self.inventory()
        # Ansible, which reads inventories of other people's, takes a second to start.
        listed = YAML(typ="safe", pure=True).load(file.read_text(encoding="utf-8"))["all"]
        return {
            name: inventory.machine(name, {**listed["vars"], **own}, f"{file}: {name}")
            for name, own in listed["hosts"].items()
        }

    def inventory(self) -> Path:
        """Return their inventory. Raises LookupError if they are not up."""
        if not self._inventory.exists():
            name = self.scenario_name
            raise LookupError(
                f"no machines of scenario {name} are up: ./invokew up --provider vagrant --scenario {name}"
            )
        return self._inventory

    def halt(self) -> None:
        """Switch them off; their disks stay. Raises LookupError if there are none."""
        self._must_exist()
        self._inventory.unlink(missing_ok=True)
        with self._vagrant() as asked:
            asked.halt()

    def destroy(self) -> None:
        """Remove them, and all that is known of them here. Raises LookupError if there are none."""
        self._must_exist()
        self._inventory.unlink(missing_ok=True)
        with self._vagrant() as asked:
            asked.destroy()
            if requirements.hypervisor() == requirements.LIBVIRT:
                remove_unused_images(requirements.uri(), NAME)
        shutil.rmtree(self._state)

    def _must_exist(self) -> None:
        if not self._description.exists():
            others = ", ".join(other.scenario_name for other in all_made(self._states)) or "none"
            raise LookupError(f"no machines of scenario {self.scenario_name} (of: {others})")

    @contextmanager
    def _vagrant(self, environment: Mapping[str, str] | None = None) -> Iterator[vagrant.Vagrant]:
        """Lend Vagrant with these machines in view; turn its failures into MachinesError."""
        import vagrant  # which says on standard error if there is no Vagrant, whether it is asked or not

        settings = {
            "VAGRANT_DOTFILE_PATH": str(self._state / "vagrant"),
            "VAGRANT_DEFAULT_PROVIDER": requirements.hypervisor(),
            "VAGRANT_CHECKPOINT_DISABLE": "1",
            "CONCORDE_SCENARIO": str(self._description),
        }
        log = vagrant.make_file_cm(str(self._log))
        try:
            yield vagrant.Vagrant(
                str(resources.HOME),
                env={**os.environ, **settings, **(environment or {})},
                out_cm=log,
                err_cm=log,
            )
        except subprocess.CalledProcessError as error:
            text = error.stderr or self._log.read_text(encoding="utf-8", errors="replace")
            said = [line for line in text.splitlines() if line.strip() and not STACK.match(line)]
            last = "\n".join(said[-LAST_LINES:])
            command = " ".join(error.cmd)
            raise MachinesError(f"{command} ended with {error.returncode}; {self._log}:\n{last}") from None


class Machines(Made):
    """The virtual machines of one scenario, as it says they shall be."""

    def __init__(self, scenario: Scenario, states: Path | None = None) -> None:
        super().__init__(scenario.name, states)
        self._scenario = scenario

    def agree(self) -> None:
        """Raise LookupError if there are other machines of this name already, or others in this network."""
        own = _fixed(machines(self._scenario))
        for file in self._states.glob(f"*/{DESCRIPTION}"):
            name, other = file.parent.name, _fixed(file.read_text(encoding="utf-8"))
            end = f"./invokew down --provider vagrant --scenario {name} --destroy"
            if name == self._scenario.name and other != own:
                raise LookupError(f"machines of scenario {name} exist with other nodes or addresses: {end}")
            if name != self._scenario.name and other["underlay"]["cidr"] == own["underlay"]["cidr"]:
                raise LookupError(
                    f"the machines of scenario {name} have the network {own['underlay']['cidr']}: {end}, or "
                    "take another network, as in --set underlay.cidr=192.168.57.0/24"
                )

    def up(self, say: Say = lambda _: None) -> None:
        """Make the machines that are missing, start those that are off, and write their inventory."""
        self._state.mkdir(parents=True, exist_ok=True)
        self._description.write_text(machines(self._scenario), encoding="utf-8")
        with self._vagrant() as asked:
            if all(machine.state == asked.RUNNING for machine in asked.status()) and self._inventory.exists():
                return
        self._inventory.unlink(missing_ok=True)
        with self._vagrant(self._emulation(say)) as asked:
            for line in asked.up(no_provision=True, stream_output=True):
                if news := re.fullmatch(r"==> ([^:]+): (\S.*)\n?", line):
                    say(f"{news[1]}: {news[2]}")
            ssh_config = asked.ssh_config()
        text = rendered_inventory(self._scenario, ssh_config, self._known_hosts)
        unfinished = self._inventory.with_suffix(".unfinished.yaml")
        unfinished.write_text(text, encoding="utf-8")
        self._learn_keys(inventory.read(unfinished))
        unfinished.replace(self._inventory)

    def _emulation(self, say: Say) -> Mapping[str, str]:
        """Return what the Vagrantfile is told of emulation, if it is not told already."""
        if requirements.hypervisor() != requirements.LIBVIRT or "CONCORDE_DRIVER" in os.environ:
            return {}
        if requirements.kvm_works():
            return {}
        say("KVM runs no guests on this machine: the nodes are emulated, which is slow")
        if requirements.DEVICE.exists():
            say(f"libvirt tries {requirements.DEVICE} again at every call: take it away, and all goes faster")
        return requirements.EMULATED

    def _learn_keys(self, machines: Mapping[str, Machine]) -> None:
        """Note the keys of machines that are new; between them and us is only this host's own network."""
        known = self._known_hosts.read_text(encoding="utf-8") if self._known_hosts.exists() else ""
        places = {line.split()[0] for line in known.splitlines()}
        new = [machine for machine in machines.values() if _place(machine) not in places]
        self._known_hosts.write_text(known + "".join(in_parallel(_keys, new)), encoding="utf-8")


def usable(scenario: Scenario) -> Machines:
    """Return a scenario's machines, up or not. Raises LookupError for what keeps them from being made."""
    machines = Machines(scenario)
    machines.agree()
    requirements.demand()
    return machines


def all_made(states: Path | None = None) -> list[Made]:
    """Return all that were made, up or not, by their scenarios' names."""
    files = (states or resources.MACHINES).glob(f"*/{DESCRIPTION}")
    return [Made(name, states) for name in sorted(file.parent.name for file in files)]


def _listens(machine: Machine) -> bool:
    """Tell whether a machine's sshd can be reached."""
    try:
        socket.create_connection((machine.host, machine.port), ANSWER_SECONDS).close()
    except OSError:
        return False
    return True


def _fixed(description: str) -> Any:
    """Return of a description of machines what cannot be changed while they exist: where they are."""
    described = YAML(typ="safe", pure=True).load(description)
    addresses = {name: node["address"] for name, node in described["nodes"].items()}
    return {"underlay": described["underlay"], "nodes": addresses}


def _place(machine: Machine) -> str:
    """Return what a machine is called in a file of known hosts."""
    return machine.host if machine.port == 22 else f"[{machine.host}]:{machine.port}"


def _keys(machine: Machine) -> str:
    """Return a machine's keys, as they are noted. Raises MachinesError if it shows none."""
    argv = ["ssh-keyscan", "-T", SCAN_SECONDS, "-p", str(machine.port), machine.host]
    done = subprocess.run(argv, capture_output=True, encoding="utf-8", check=False)
    if not done.stdout:
        raise MachinesError(f"{machine.name}: no host key from {machine}: {done.stderr.strip()}")
    return done.stdout


def remove_unused_images(uri: str, box: str) -> None:
    """Remove the copies of any version of a box in libvirt's storage that are no disk's base.

    Vagrant puts one there with the first machine and leaves it. Raises CalledProcessError.
    """
    if POOL not in _virsh(uri, "pool-list", "--name").split():
        return
    prefix = f"{box.replace('/', '-VAGRANTSLASH-')}_vagrant_box_image_"
    volumes = [line.split() for line in _virsh(uri, "vol-list", POOL).splitlines()]
    described = {name: _virsh(uri, "vol-dumpxml", name, "--pool", POOL) for name, *_ in volumes}
    used = {base_of(description) for description in described.values()}
    for name, path in volumes:
        if name.startswith(prefix) and path not in used:
            _virsh(uri, "vol-delete", name, "--pool", POOL)


def base_of(description: str) -> str | None:
    """Return the path of the volume that a volume is the difference to, from libvirt's XML."""
    return ElementTree.fromstring(description).findtext("backingStore/path")


def _virsh(uri: str, *arguments: str) -> str:
    argv = ["virsh", "--connect", uri, "--quiet", *arguments]
    return subprocess.run(argv, capture_output=True, encoding="utf-8", check=True).stdout


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


def rendered_inventory(scenario: Scenario, ssh_config: str, known_hosts: Path) -> str:
    """Return the Ansible inventory of machines, from what ``vagrant ssh-config`` says of them."""
    import paramiko  # takes its time, and machines that are up have their inventory

    config = paramiko.SSHConfig.from_text(ssh_config)
    hosts = {}
    for name, address in Addressing(scenario).nodes.items():
        way = config.lookup(name)
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
