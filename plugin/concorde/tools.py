"""Running `ip`, `tc` and `nft`: the one place where this plugin starts processes.

Output comes back through memory files, which cannot fill up as a pipe can; no shell is involved.
Not subprocess: importing it costs 4 ms of every call.
"""

from __future__ import annotations

import os

_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
# What every call may need, whatever its enforcement: `tc` to find a tree that another's promises are kept in.
TOOLS = ("ip", "tc", "nft", "nsenter")
_NFT = ("nft", "-f", "-")


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


def is_there(tool: str) -> bool:
    """Whether a tool is installed."""
    try:
        find(tool)
    except FileNotFoundError:
        return False
    return True


class Running:
    """A tool at work, or waiting for its batch."""

    def __init__(self, command: list[str], netns: str) -> None:
        """Start it, in another network namespace if one is given. Raises FileNotFoundError."""
        self._batch = ""
        self._command = [find(command[0]), *command[1:]]
        argv = [find("nsenter"), f"--net={netns}", *self._command] if netns else self._command
        source, self._source = os.pipe()
        self._output, self._errors = os.memfd_create("output"), os.memfd_create("errors")
        descriptors = enumerate((source, self._output, self._errors))
        actions = [(os.POSIX_SPAWN_DUP2, descriptor, at) for at, descriptor in descriptors]
        # Everything but the lock (see locks.py) closes on exec; a fixed environment keeps messages fixed.
        self._child = os.posix_spawn(argv[0], argv, {"PATH": _PATH, "LC_ALL": "C"}, file_actions=actions)
        os.close(source)

    def give(self, batch: str) -> None:
        """Give it its batch."""
        self._batch = batch
        content = batch.encode()
        try:
            while content:  # longer than a pipe, it goes as the tool reads
                content = content[os.write(self._source, content) :]
        except BrokenPipeError:
            pass  # it has failed already; its exit status says so
        os.close(self._source)

    def wait(self) -> str:
        """Wait for its end and return what it printed. Raises CommandError."""
        status = os.waitpid(self._child, 0)[1]
        output, errors = _content(self._output), _content(self._errors)
        if status != 0:
            raise CommandError(self._command, errors, self._batch)
        return output

    def finish(self, batch: str = "") -> str:
        """Both. Raises CommandError."""
        self.give(batch)
        return self.wait()


_waiting: dict[tuple[str, str], Running] = {}


def prepare(tool: str, netns: str = "") -> None:
    """Start a tool ahead of the next batch() for it, so that loading it overlaps with other work.

    It does nothing before it has its batch; if that never comes, because this process fails or is killed,
    it reads an end of file and ends.
    """
    _waiting[tool, netns] = _reader(tool, netns)


def batch(tool: str, text: str, netns: str = "") -> str:
    """Run `tool -batch`, or `nft -f`, on some lines and return what it printed.

    Raises CommandError and FileNotFoundError.
    """
    return _prepared(tool, netns).finish(text)


def begin(*batches: tuple[str, str]) -> list[Running]:
    """Set several tools to work on their lines; empty ones are left out. Raises FileNotFoundError."""
    running = [(_prepared(tool, ""), text) for tool, text in batches if text]
    for tool, text in running:
        tool.give(text)
    return [tool for tool, _ in running]


def ended(running: list[Running]) -> CommandError | None:
    """Wait for tools at work; the first failure, if one has failed."""
    failure = None
    for tool in running:
        try:
            tool.wait()
        except CommandError as error:
            failure = failure or error
    return failure


def batches(*batches: tuple[str, str]) -> None:
    """Run several tools on their lines side by side. Raises the first CommandError when all have ended."""
    failure = ended(begin(*batches))
    if failure is not None:
        raise failure


def start(*command: str, netns: str = "") -> Running:
    """Start a command. Raises FileNotFoundError."""
    return Running(list(command), netns)


def run(*command: str, netns: str = "") -> str:
    """Run a command to its end and return what it printed. Raises CommandError and FileNotFoundError."""
    return start(*command, netns=netns).finish()


def _reader(tool: str, netns: str) -> Running:
    return Running([tool, "-batch", "-"] if tool != "nft" else list(_NFT), netns)


def _prepared(tool: str, netns: str) -> Running:
    return _waiting.pop((tool, netns), None) or _reader(tool, netns)


def _content(descriptor: int) -> str:
    content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
    os.close(descriptor)
    return content.decode(errors="replace")


def _failed_line(output: str) -> int:
    # iproute2, lib/utils.c do_batch(): "Command failed -:3"
    number = output.rpartition("Command failed -:")[2].strip()
    return int(number) if number.isascii() and number.isdigit() else 0
