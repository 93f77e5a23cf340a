"""Which machines there are, from an Ansible inventory or from the addresses in a scenario.

An inventory has groups, ranges, files of variables beside it and plug-ins, so Ansible itself reads it:
``ansible-inventory`` is started, as testinfra does, and says in JSON which variables each host has. Of these
the ones about connections are used here; one that asks for what this project does not do is an error, because
to ignore it would lead to another machine than the inventory means, or to none.
"""

from __future__ import annotations

import getpass
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import AddressValueError, IPv4Address
from pathlib import Path
from typing import Any

from testbed.access import scratch
from testbed.scenario import Scenario

# Not Ansible's: a machine's address on the network between the nodes, where it is reached by another.
UNDERLAY_ADDRESS = "underlay_address"
REFUSED = {
    "ansible_become_password": "passwords for sudo are not supported: allow sudo without one",
    "ansible_become_pass": "passwords for sudo are not supported: allow sudo without one",
}


@dataclass(frozen=True)
class Machine:
    """How to get to a node's machine."""

    name: str
    host: str
    user: str
    port: int = 22
    key: Path | None = None  # without one, the agent's and the usual ones in ~/.ssh
    password: str | None = field(default=None, repr=False)
    known_hosts: Path | None = None  # without one, ~/.ssh/known_hosts and the system's
    underlay_address: IPv4Address | None = None  # where it is not the host's

    def __str__(self) -> str:
        return f"{self.user}@{self.host}" + (f" port {self.port}" if self.port != 22 else "")


def machines(scenario: Scenario, inventory: Path | None) -> dict[str, Machine]:
    """Return the machine of each node of a scenario: the inventory's host of that name.

    Raises LookupError for one that is missing, or whose variables cannot be followed.
    """
    if inventory is None:
        return {name: _stated(scenario, name) for name in scenario.nodes}
    hosts = read(inventory)
    for name in scenario.nodes:
        if name not in hosts:
            raise LookupError(f"{inventory}: no host {name!r} for this node (hosts: {', '.join(hosts)})")
    return {name: hosts[name] for name in scenario.nodes}


def chosen(inventory: Path | None, scenario: Scenario | None) -> dict[str, Machine]:
    """Return the machines of an inventory, or of a scenario's nodes, or of these in the inventory.

    Raises LookupError.
    """
    if scenario is not None:
        return machines(scenario, inventory)
    if inventory is not None:
        return read(inventory)
    raise LookupError("which machines? Say --provider ssh:INVENTORY, or give a scenario with addresses")


def read(inventory: Path) -> dict[str, Machine]:
    """Return every machine of an inventory. Raises LookupError."""
    hosts = _listed(inventory)
    if not hosts:
        raise LookupError(f"{inventory}: no hosts")
    return {name: machine(name, variables, f"{inventory}: {name}") for name, variables in hosts.items()}


def machine(name: str, variables: Mapping[str, Any], where: str) -> Machine:
    """Return the machine that Ansible's variables describe.

    ``where`` begins the words of an error. Raises LookupError.
    """
    options = _options(variables)
    for fault in (*_faults(variables), *_strange(options)):
        raise LookupError(f"{where}: {fault}")

    def first(*names: str) -> Any:
        return next((variables[name] for name in names if variables.get(name) is not None), None)

    host, port = first("ansible_host", "ansible_ssh_host") or name, first("ansible_port", "ansible_ssh_port")
    address = first(UNDERLAY_ADDRESS)
    try:
        return Machine(
            name=name,
            host=str(host),
            user=str(first("ansible_user", "ansible_ssh_user") or getpass.getuser()),
            port=22 if port is None else int(port),
            key=_file(first("ansible_ssh_private_key_file", "ansible_private_key_file")),
            password=first("ansible_password", "ansible_ssh_pass", "ansible_ssh_password"),
            known_hosts=_file(options.get("userknownhostsfile")),
            underlay_address=None if address is None else IPv4Address(str(address)),
        )
    except AddressValueError:
        raise LookupError(f"{where}: {UNDERLAY_ADDRESS}: {address!r} is not an IPv4 address") from None
    except ValueError:
        raise LookupError(f"{where}: ansible_port: {port!r} is not a port") from None


def _file(value: Any) -> Path | None:
    return None if value is None else Path(str(value)).expanduser()


def _faults(variables: Mapping[str, Any]) -> Iterator[str]:
    """Yield what these variables ask for that is not done here."""
    for name, why in REFUSED.items():
        if variables.get(name):
            yield f"{name}: {why}"
    connection = variables.get("ansible_connection", "ssh")
    if connection not in ("ssh", "smart", "paramiko", "paramiko_ssh", "ansible.netcommon.libssh"):
        yield f"ansible_connection: {connection!r} is not SSH"
    become, user = (
        variables.get("ansible_become_method", "sudo"),
        variables.get("ansible_become_user", "root"),
    )
    if become not in ("sudo", "ansible.builtin.sudo"):
        yield f"ansible_become_method: {become!r} is not supported (only sudo)"
    if user != "root":
        yield f"ansible_become_user: {user!r} is not root, who alone may change a machine's network"
    for name, value in variables.items():
        if name.startswith(("ansible_", UNDERLAY_ADDRESS)) and isinstance(value, str) and "{{" in value:
            yield f"{name}: templates are not supported: {value}"


def _options(variables: Mapping[str, Any]) -> dict[str, str]:
    """Return what ssh's options say, by name in small letters; another argument is a name of its own."""
    arguments = iter(
        shlex.split(
            " ".join(str(variables.get(f"ansible_ssh_{kind}_args") or "") for kind in ("common", "extra"))
        )
    )
    options = {}
    for word in arguments:
        option = next(arguments, "") if word == "-o" else word.removeprefix("-o")
        name, separator, value = option.partition("=")
        options[name.lower() if separator and word.startswith("-o") else word] = value
    return options


def _strange(options: Mapping[str, str]) -> Iterator[str]:
    """Yield the options of ssh that are not followed here."""
    for name, value in options.items():
        if name == "stricthostkeychecking" and value.lower() not in ("yes", "true"):
            yield (
                f"StrictHostKeyChecking={value}: host keys are always checked here; "
                "see docs/howto/machines-by-ssh.md"
            )
        elif name not in ("stricthostkeychecking", "userknownhostsfile"):
            yield f"ansible_ssh_common_args, ansible_ssh_extra_args: {name} is not supported"


def _stated(scenario: Scenario, name: str) -> Machine:
    address = scenario.nodes[name].address
    if address is None:
        raise LookupError(
            "--provider ssh needs to know the machines: ssh:INVENTORY, or each node of the scenario with an "
            f"address (nodes.{name}.address)"
        )
    return Machine(name, str(address), getpass.getuser())


def _listed(inventory: Path) -> dict[str, Mapping[str, Any]]:
    """Return the variables of each host, as Ansible puts them together. Raises LookupError."""
    if not inventory.exists():
        raise LookupError(f"--provider ssh:{inventory}: there is no such file")
    program = Path(sys.executable).with_name("ansible-inventory")
    with scratch.directory() as own:  # Ansible wants one, and would leave it in the home
        try:
            done = subprocess.run(
                [str(program), "--inventory", str(inventory), "--list"],
                capture_output=True,
                encoding="utf-8",
                env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(own), **STRICT},
                check=False,
            )
        except OSError as error:
            raise LookupError(f"{program}: {error.strerror}; it belongs to ansible-core") from None
    if done.returncode != 0:
        raise LookupError(f"{inventory}: {_essence(done.stderr)}")
    return dict(json.loads(done.stdout)["_meta"]["hostvars"]) | _without_variables(json.loads(done.stdout))


# A file that cannot be read as an inventory is an error, and not, as usual, a warning.
STRICT = {
    "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
    "ANSIBLE_NOCOLOR": "1",
    "ANSIBLE_DEPRECATION_WARNINGS": "0",
}


def _without_variables(listing: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the hosts of which nothing but the name is known: those are in groups only."""
    known = listing["_meta"]["hostvars"]
    groups = (group for name, group in listing.items() if name != "_meta")
    return {host: {} for group in groups for host in group.get("hosts", ()) if host not in known}


def _essence(text: str) -> str:
    """Return what Ansible says is wrong, without the colours of it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith(("[ERROR]", "ERROR"))]
    return " ".join(errors or lines[:3]) or "ansible-inventory said nothing"
