"""Machines to log in to: the nodes of a sandbox, each with an sshd of its own and a /var/lib of its own.

The harness reaches them from the sandbox's switch, where it has an address: ``inside`` takes a thread, and
those it starts, into that network.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.access.place import Node, Process
from testbed.providers.netns.provider import NetnsProvider
from testbed.scenario import Scenario
from testbed.scenario.addressing import Addressing
from tests import links, mounts
from tests.waiting import until

SSHD = "/usr/sbin/sshd"
USER = "alice"  # who is not root, and may use sudo
CLONE_NEWNET = 0x40000000
HARNESS = "192.168.56.1/24"

CONFIGURATION = """\
HostKey {directory}/{node}.key
AuthorizedKeysFile /run/own/authorized_keys
StrictModes no
UsePAM no
PasswordAuthentication no
PidFile none
UseDNS no
Subsystem sftp internal-sftp
MaxSessions {sessions}
"""
# One that ends because another has been killed is gone when its turn comes.
CUT = """
ss -Htnp state established "sport = :22" | grep -o 'pid=[0-9]*' | cut -d= -f2 | xargs -r kill -KILL || true
"""
SILENCE = """
table ip silence {
  chain input { type filter hook input priority -400; tcp dport 22 drop; }
  chain output { type filter hook output priority -400; tcp sport 22 drop; }
}
"""
STATE = {
    "links": ["ip", "-br", "link"],
    "addresses": ["ip", "-br", "address"],
    "routes": ["ip", "route"],
    "namespaces": ["ip", "netns"],
    "tables": ["nft", "list", "ruleset"],
    "qdiscs": ["tc", "qdisc"],
    "forwarding": ["cat", "/proc/sys/net/ipv4/ip_forward"],
    "files": ["find", "/run", "/var/lib", "-not", "-path", "/run/mount*"],
}
# What belongs to a machine and not to this host. Arguments: a user, and what sudo lets that one do; the
# user's public key comes from standard input.
OWN = """
set -e
mkdir -p /run/sshd
mount -t tmpfs -o mode=755 tmpfs /var/lib
mkdir /run/own
cat >/run/own/authorized_keys
{
    echo "root:x:0:0::/run:/bin/sh"
    echo "$1:x:2000:2000::/run:/bin/sh"
    grep ^sshd: /etc/passwd
} >/run/own/passwd
printf '%s:*:19000:0:99999:7:::\n' root "$1" >/run/own/shadow
printf '%s\n' "root ALL=(ALL:ALL) ALL" "$1 ALL=(ALL:ALL) $2" >/run/own/sudoers
chmod 440 /run/own/sudoers
for file in passwd shadow sudoers; do
    [ ! -e "/etc/$file" ] || mount --bind "/run/own/$file" "/etc/$file"
done
"""


class Machines:
    """Machines that are up."""

    def __init__(
        self, scenario: Scenario, directory: Path, sessions: int = 10, sudo: str = "NOPASSWD: ALL"
    ) -> None:
        self.scenario = scenario
        self.directory = directory
        self._sessions = sessions
        self._sudo = sudo
        self._addressing = Addressing(scenario)
        self._provider = NetnsProvider(self._addressing, "tests.machines")
        self._daemons: dict[str, Process] = {}

    @property
    def nodes(self) -> dict[str, Node]:
        """The way into them that is not SSH."""
        return dict(self._provider.nodes)

    @property
    def key(self) -> Path:
        """The user's key."""
        return self.directory / "user"

    @property
    def known_hosts(self) -> Path:
        """What is known of the machines' keys."""
        return self.directory / "known_hosts"

    @property
    def prefix(self) -> list[str]:
        """What takes a command into the network from which the machines are reached."""
        assert self._provider.sandbox is not None
        return ["nsenter", f"--net=/proc/{self._provider.sandbox.pid}/ns/net", "--"]

    def address(self, name: str) -> str:
        """Where a machine is reached."""
        return str(self._addressing.address(name))

    def up(self) -> None:
        """Start them."""
        _make_key(self.key)
        self._provider.up()
        assert self._provider.sandbox is not None
        self._provider.sandbox.switch.run(
            ["ip", "-batch", "-"], stdin=f"address add {HARNESS} dev switch\nlink set lo up\n"
        )
        for name, node in self.nodes.items():
            _make_key(self.directory / f"{name}.key")
            node.run(
                ["sh", "-c", OWN, "sh", USER, self._sudo], stdin=self.key.with_suffix(".pub").read_text()
            )
            self.start_sshd(name)
        self.write_known_hosts()

    @contextmanager
    def lent(self) -> Iterator[Machines]:
        """Start them, take this thread to where they are reached, and end them."""
        try:
            self.up()
            with self.inside():
                yield self
        finally:
            self.down()

    def down(self) -> None:
        """End them, and all that is on them."""
        self._provider.down()
        for daemon in self._daemons.values():
            daemon.kill()

    def start_sshd(self, name: str) -> None:
        """Start a machine's sshd, and wait until it listens."""
        node = self.nodes[name]
        text = CONFIGURATION.format(directory=self.directory, node=name, sessions=self._sessions)
        configuration = self.directory / f"{name}.conf"
        configuration.write_text(text)
        log = self.directory / f"{name}.log"
        self._daemons[name] = node.start([SSHD, "-D", "-e", "-f", str(configuration)], stdout=log, stderr=log)
        listening = ["ss", "-Hltn", "sport = :22"]
        until(lambda: node.run(listening).stdout.strip(), log.read_text)

    def stop_sshd(self, name: str) -> None:
        """End a machine's sshd; its connections go on."""
        self._daemons.pop(name).kill()

    def cut(self, name: str) -> None:
        """End a machine's connections, as if their sshd processes had crashed."""
        self.nodes[name].run(["sh", "-c", CUT])

    def silence(self, name: str) -> None:
        """Let a machine fall silent towards the harness, as if it had been unplugged."""
        self.nodes[name].run(["nft", "-f", "-"], stdin=SILENCE)

    def speak(self, name: str) -> None:
        """Let a machine speak again."""
        self.nodes[name].run(["nft", "delete", "table", "ip", "silence"])

    def state(self) -> dict[str, dict[str, object]]:
        """Return everything a run might change on the machines."""
        return {
            name: {
                **{what: links.without_carrier(node.run(look).stdout) for what, look in STATE.items()},
                "mounts": mounts.reachable(node.run(["cat", "/proc/self/mountinfo"]).stdout),
            }
            for name, node in self.nodes.items()
        }

    def write_known_hosts(self) -> None:
        """Write down every machine's key."""
        lines = [
            f"{self.address(name)} {(self.directory / f'{name}.key.pub').read_text()}" for name in self.nodes
        ]
        self.known_hosts.write_text("".join(lines))

    def inventory(self, user: str = "root", **more: str) -> Path:
        """Return an inventory of the machines."""
        file = self.directory / "inventory.yaml"
        lines = ["all:", "  vars:"]
        settings = {
            "ansible_user": user,
            "ansible_ssh_private_key_file": str(self.key),
            "ansible_ssh_common_args": f"-o UserKnownHostsFile={self.known_hosts}",
            **more,
        }
        lines += [f"    {name}: {value}" for name, value in settings.items()]
        lines += ["  hosts:", *(f"    {name}: {{ansible_host: {self.address(name)}}}" for name in self.nodes)]
        file.write_text("\n".join(lines) + "\n")
        return file

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Take this thread, and those it starts, to where the machines are reached."""
        assert self._provider.sandbox is not None
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/proc/{self._provider.sandbox.pid}/ns/net", os.O_RDONLY)
        try:
            _enter(there)
            yield
        finally:
            _enter(home)
            os.close(home)
            os.close(there)


def require() -> None:
    """Skip what needs a real sshd where there is none, or where it cannot run."""
    if not shutil.which(SSHD):
        pytest.skip("no sshd on this machine: apt-get install openssh-server")
    if os.geteuid() != 0:
        pytest.skip("sshd gives up its rights by changing its user, for which a user namespace has no other")


def _make_key(file: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(file)], check=True)


def _enter(namespace: int) -> None:
    if ctypes.CDLL(None, use_errno=True).setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")
