"""Running `ip` and `tc`: the one place where this plugin starts processes.

Batches go in, and output comes back, through memory files: no pipe can fill up, no shell is involved.
Not subprocess: importing it costs 4 ms of every call.
"""

from __future__ import annotations

import os

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
TOOLS = ("ip", "tc", "nsenter")


class CommandError(Exception):
    """A command that ended with an error; `line` is the batch's failed line, counted from 1, or 0."""

    def __init__(self, command: list[str], output: str, batch: str) -> None:
        self.line = _failed_line(output)
        self.output = output
        lines = batch.splitlines()
        tried = lines[self.line - 1] if 0 < self.line <= len(lines) else " ".join(command[1:])
        reason = output.strip().partition("\n")[0] or "no message"
        super().__init__(f"{os.path.basename(command[0])} {tried}: {reason}")


def find(tool: str) -> str:
    """The absolute path of a tool. Raises FileNotFoundError."""
    for directory in (os.environ.get("PATH", "") + ":" + _PATH).split(":"):
        path = f"{directory}/{tool}"
        if directory.startswith("/") and os.access(path, os.X_OK):
            return path
    raise FileNotFoundError(f"{tool} is not installed")


def run(tool: str, *arguments: str, netns: str = "", batch: str = "") -> str:
    """Run a tool, in another network namespace if one is given, and return what it printed.

    Raises CommandError and FileNotFoundError.
    """
    command = [find(tool), *arguments]
    if batch:
        command += ["-batch", "-"]
    argv = [find("nsenter"), f"--net={netns}", *command] if netns else command
    source, output, errors = (os.memfd_create(name) for name in ("source", "output", "errors"))
    try:
        os.write(source, batch.encode())
        os.lseek(source, 0, os.SEEK_SET)
        actions = [(os.POSIX_SPAWN_DUP2, fd, at) for at, fd in enumerate((source, output, errors))]
        # Everything but the lock (see locks.py) closes on exec; a fixed environment keeps messages fixed.
        child = os.posix_spawn(argv[0], argv, {"PATH": _PATH, "LC_ALL": "C"}, file_actions=actions)
        status = os.waitpid(child, 0)[1]
        if status != 0:
            raise CommandError(command, _content(errors), batch)
        return _content(output)
    finally:
        for descriptor in (source, output, errors):
            os.close(descriptor)


def _content(descriptor: int) -> str:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0).decode(errors="replace")


def _failed_line(output: str) -> int:
    # iproute2, lib/utils.c do_batch(): "Command failed -:3"
    number = output.rpartition("Command failed -:")[2].strip()
    return int(number) if number.isascii() and number.isdigit() else 0
