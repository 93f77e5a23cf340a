"""The ssh program, for people: a shell on a machine as the harness reaches it."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence

from testbed.providers.ssh.inventory import Machine


def replace_self(machines: Mapping[str, Machine], name: str, command: Sequence[str]) -> None:
    """Become ssh, terminal and all. Does not return. Raises LookupError."""
    if name not in machines:
        raise LookupError(f"no machine {name!r} (machines: {', '.join(machines)})")
    if shutil.which("ssh") is None:
        raise LookupError("ssh is not installed: apt-get install openssh-client")
    os.execvp("ssh", arguments(machines[name], command))


def arguments(machine: Machine, command: Sequence[str]) -> list[str]:
    """Return ssh's command line."""
    key = ["-i", str(machine.key)] if machine.key else []
    known = ["-o", f"UserKnownHostsFile={machine.known_hosts}"] if machine.known_hosts else []
    words = [shlex.join(command)] if command else []
    return ["ssh", "-p", str(machine.port), "-l", machine.user, *key, *known, "--", machine.host, *words]
