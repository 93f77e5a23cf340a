"""apt with lists of its own: fetches Debian's packages, checks them by their signatures, installs nothing.

The machine's own lists stay as they are, so it needs no root. What is installed already counts as there.
"""

from __future__ import annotations

from pathlib import Path

from testbed.supplies import running
from testbed.supplies.running import LAST_LINES

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
        return running.run(self._what, command, self.directory / "log", check=check)


def source_texts(directory: Path = SOURCES) -> dict[str, str]:
    """Return the machine's package sources: file name -> text."""
    files = [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]
    texts = {file.name: file.read_text(encoding="utf-8") for file in files if file.is_file()}
    return {name: text for name, text in texts.items() if name.endswith((".list", ".sources"))}
