"""The ssh program, for people: a shell or a command on a machine as the harness reaches it."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Sequence

from testbed.access.local import ENVIRONMENT
from testbed.providers.keeping import CommandLine
from testbed.providers.ssh.inventory import Machine

# Root runs it as it is, for there may be no sudo; the arguments are the command.
AS_ROOT = '[ "$(id -u)" != 0 ] || exec "$@"; exec sudo -n -- "$@"'


def login(machine: Machine, command: Sequence[str]) -> CommandLine:
    """Return what leads to a shell there, or to a command, as the user who logs in. Raises LookupError."""
    if shutil.which("ssh") is None:
        raise LookupError("ssh is not installed: apt-get install openssh-client")
    return CommandLine(arguments(machine, command))


def as_root(machine: Machine, command: Sequence[str]) -> CommandLine:
    """Return what leads to a command as root, with this terminal if there is one. Raises LookupError."""
    found = ["env", f"PATH={ENVIRONMENT['PATH']}", *command]
    ssh, *rest = login(machine, ["sh", "-c", AS_ROOT, "sh", *found]).words
    terminal = ["-t"] if sys.stdin.isatty() and sys.stdout.isatty() else []
    return CommandLine([ssh, *terminal, *rest])


def arguments(machine: Machine, command: Sequence[str]) -> list[str]:
    """Return ssh's command line."""
    key = ["-i", str(machine.key)] if machine.key else []
    known = ["-o", f"UserKnownHostsFile={machine.known_hosts}"] if machine.known_hosts else []
    words = [shlex.join(command)] if command else []
    return ["ssh", "-p", str(machine.port), "-l", machine.user, *key, *known, "--", machine.host, *words]
