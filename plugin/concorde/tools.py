"""Running `ip`, `tc` and `nft` where the kernel is not told directly: here alone processes are started.

Output comes back through memory files, which cannot fill up as a pipe can; no shell is involved.
Not subprocess: importing it costs 4 ms of every call.
"""

from __future__ import annotations

import os

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# What every call may need, whatever its enforcement: `tc` to find a tree that another's promises are kept in.
TOOLS = ("ip", "tc", "nft", "nsenter")


class CommandError(Exception):
    """A command that ended with an error.

    `line` is the failed one of a batch, counted from 1, or 0; `errno` the kernel's number, or 0: of what
    it was told directly (see batches).
    """

    def __init__(self, command: list[str], output: str, line: int = 0, errno: int = 0) -> None:
        self.output = output
        self.line = line
        self.errno = errno
        reason = output.strip().partition("\n")[0] or "no message"
        super().__init__(f"{os.path.basename(command[0])} {' '.join(command[1:])}: {reason}")


def find(tool: str) -> str:
    """The absolute path of a tool, which may be given already. Raises FileNotFoundError."""
    path = tool if tool[0] == "/" else found_in(f"{os.environ.get('PATH', '')}:{_PATH}", tool)
    if not path:
        raise FileNotFoundError(f"{tool} is not installed")
    return path


def found_in(directories: str, program: str) -> str:
    """The absolute path of a program in the first of some directories that has it, or nothing."""
    for directory in directories.split(":"):
        path = f"{directory}/{program}"
        if directory.startswith("/") and os.access(path, os.X_OK):
            return path
    return ""


def is_there(tool: str) -> bool:
    """Whether a tool is installed."""
    try:
        find(tool)
    except FileNotFoundError:
        return False
    return True


class Running:
    """A tool at work, or waiting for its batch."""

    def __init__(
        self, command: list[str], netns: str = "", environment: dict[str, str] | None = None
    ) -> None:
        """Start it, in another network namespace if one is given. Raises FileNotFoundError.

        Tools get a fixed environment, for fixed messages; a plugin another.
        """
        self._command = [find(command[0]), *command[1:]]
        argv = [find("nsenter"), f"--net={netns}", *self._command] if netns else self._command
        source, self._source = os.pipe()
        self._output, self._errors = os.memfd_create("output"), os.memfd_create("errors")
        descriptors = enumerate((source, self._output, self._errors))
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, at) for at, descriptor in descriptors]
        # Everything but the lock (see locks.py) closes on exec.
        given = {"PATH": _PATH, "LC_ALL": "C"} if environment is None else environment
        self._child = os.posix_spawn(argv[0], argv, given, file_actions=actions)
        os.close(source)

    def give(self, batch: str) -> None:
        """Give it its batch."""
        content = batch.encode()
        try:
            while content:  # longer than a pipe, it goes as the tool reads
                content = content[os.write(self._source, content) :]
        except BrokenPipeError:
            pass  # it has failed already; its exit status says so
        os.close(self._source)

    def wait(self) -> str:
        """Wait for its end and return what it printed. Raises CommandError."""
        status, output, errors = self.end()
        if status != 0:
            raise CommandError(self._command, errors)
        return output

    def end(self) -> tuple[int, str, str]:
        """Wait for its end, and return its status and what it printed on standard output and error."""
        status = os.waitpid(self._child, 0)[1]
        return status, _content(self._output), _content(self._errors)

    def finish(self, batch: str = "") -> str:
        """Both. Raises CommandError."""
        self.give(batch)
        return self.wait()


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
