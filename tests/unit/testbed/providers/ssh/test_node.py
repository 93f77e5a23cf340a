"""How a command gets to a machine."""

from __future__ import annotations

import shlex
import subprocess

from testbed.providers.ssh.node import command_line


def test_a_command_line_survives_a_shell() -> None:
    argv = ["printf", "%s\\n", "a b", "$HOME", "'", "`id`", "", "\\"]
    line = command_line(argv, {"X": "1 2"}, ("sudo", "-n", "--"))
    assert line.startswith("sudo -n -- env -i 'X=1 2' printf ")
    alone = command_line(argv, {"PATH": "/usr/bin:/bin"}, ())
    assert shlex.split(alone)[-7:] == argv[1:]
    said = subprocess.run(["sh", "-c", alone], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == argv[2:]
