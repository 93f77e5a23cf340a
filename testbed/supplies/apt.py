"""apt with lists of its own: fetches Debian's packages, checks them by their signatures, installs nothing.

The machine's own lists stay as they are, so it needs no root. What is installed already counts as there.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from testbed.access.place import CommandError

SOURCES = Path("/etc/apt")
COMPLAINT = ("E: ", "W: ")


class Apt:
    """apt with everything it writes below one directory."""

    def __init__(self, what: str, directory: Path, sources: dict[str, str]) -> None:
        """``what`` is being done, for messages; ``sources`` are lists of sources by their file names."""
        self._what = what
        self.directory = directory
        lists, places = directory / "apt-lists", directory / "apt-sources"
        archives = directory / "archives"
        for made in (lists / "partial", places, archives / "partial"):
            made.mkdir(parents=True, exist_ok=True)
        for name, text in sources.items():
            (places / name).write_text(text, encoding="utf-8")
        options = [
            f"Dir::State::Lists={lists}", f"Dir::State::extended_states={directory / 'states'}",
            f"Dir::Cache={directory}", "Dir::Etc::SourceList=/dev/null", f"Dir::Etc::SourceParts={places}",
            "APT::Get::AllowUnauthenticated=false", "Debug::NoLocking=true",
            "APT::Sandbox::User=root",  # its own user may not enter your cache, and it says so each time
        ]  # fmt: skip
        self._command = ["apt-get", "--quiet", "--assume-yes", *(w for one in options for w in ("-o", one))]

    def update(self) -> list[str]:
        """Read the lists; return what apt complains of.

        Sources of other software may fail, which is no error if Debian's do not.
        """
        words = self.run("update", check=False)
        return [line for line in words.splitlines() if line.startswith(COMPLAINT)][-LAST_LINES:]

    def fetch(self, package: str) -> list[Path]:
        """Return the archives of a package, and of all it needs that is not installed here."""
        self.run("install", "--download-only", "--no-install-recommends", "--reinstall", package)
        return sorted((self.directory / "archives").glob("*.deb"))

    def run(self, *arguments: str, check: bool = True) -> str:
        """Run apt-get and return what it printed. Raises CommandError."""
        command = [*self._command, *arguments]
        return run(self._what, command, self.directory / "log", check=check)


def source_texts(directory: Path = SOURCES) -> dict[str, str]:
    """Return the machine's package sources: file name -> text."""
    files = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    return {name: text for name, text in texts.items() if name.endswith((".list", ".sources"))}


LAST_LINES = 15


def run(
    what: str,
    argv: Sequence[str],
    log: Path,
    *,
    directory: Path | None = None,
    environment: Mapping[str, str] | None = None,
    check: bool = True,
) -> str:
    """Run a command and return what it printed; raise CommandError with its last lines if it failed.

    It runs in a session of its own, which ends with this call: after Ctrl-C nothing goes on writing. ``what``
    is being done, for the message; ``log`` is a file that gets what is printed.
    """
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *argv],
            cwd=directory or log.parent,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    words = log.read_text(encoding="utf-8", errors="replace")
    if check and status != 0:
        raise CommandError(what, argv, status, last_lines(words))
    return words


def last_lines(words: str) -> str:
    """Return the last lines of what a command printed."""
    return "\n".join(words.rstrip().splitlines()[-LAST_LINES:])
