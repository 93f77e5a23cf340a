"""Running `ip` and `tc`: the one place where this plugin starts processes.

Output comes back through memory files, which cannot fill up as a pipe can; no shell is involved.
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


class Running:
    """A tool at work, or waiting for its batch."""

    def __init__(self, command: list[str], netns: str) -> None:
        """Start it, in another network namespace if one is given. Raises FileNotFoundError."""
        self._command = [find(command[0]), *command[1:]]
        argv = [find("nsenter"), f"--net={netns}", *self._command] if netns else self._command
        source, self._source = os.pipe()
        self._output, self._errors = os.memfd_create("output"), os.memfd_create("errors")
        descriptors = enumerate((source, self._output, self._errors))
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, at) for at, descriptor in descriptors]
        # Everything but the lock (see locks.py) closes on exec; a fixed environment keeps messages fixed.
        self._child = os.posix_spawn(argv[0], argv, {"PATH": _PATH, "LC_ALL": "C"}, file_actions=actions)
        os.close(source)

    def finish(self, batch: str = "") -> str:
        """Give it its batch, wait for its end and return what it printed. Raises CommandError."""
        try:  # noqa: SIM105 - importing contextlib costs a millisecond
            os.write(self._source, batch.encode())  # in one piece: far shorter than a pipe
        except BrokenPipeError:
            pass  # it has failed already; its exit status says so
        os.close(self._source)
        status = os.waitpid(self._child, 0)[1]
        output, errors = _content(self._output), _content(self._errors)
        if status != 0:
            raise CommandError(self._command, errors, batch)
        return output


_waiting: dict[tuple[str, str], Running] = {}


def prepare(tool: str, netns: str = "") -> None:
    """Start a tool ahead of the next batch() for it, so that loading it overlaps with other work.

    It does nothing before it has its batch; if that never comes, because this process fails or is killed,
    it reads an end of file and ends.
    """
    _waiting[tool, netns] = Running([tool, "-batch", "-"], netns)


def batch(tool: str, text: str, netns: str = "") -> None:
    """Run `tool -batch` on some lines. Raises CommandError and FileNotFoundError."""
    running = _waiting.pop((tool, netns), None) or Running([tool, "-batch", "-"], netns)
    running.finish(text)


def start(*command: str, netns: str = "") -> Running:
    """Start a command. Raises FileNotFoundError."""
    return Running(list(command), netns)


def run(*command: str, netns: str = "") -> str:
    """Run a command to its end and return what it printed. Raises CommandError and FileNotFoundError."""
    return start(*command, netns=netns).finish()


def _content(descriptor: int) -> str:
    content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    os.close(descriptor)
    return content.decode(errors="replace")


def _failed_line(output: str) -> int:
    # iproute2, lib/utils.c do_batch(): "Command failed -:3"
    number = output.rpartition("Command failed -:")[2].strip()
    return int(number) if number.isascii() and number.isdigit() else 0
