"""Programs of Debian's packages that daemons on nodes are: fetched and unpacked, never installed.

A package that is installed starts a service, which a testbed has no use for, and takes root. So apt fetches
it, with all it needs that this machine has not, and checks it by its signatures; dpkg-deb unpacks it into the
cache. What the machine has in its PATH counts too, and comes first.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from testbed.access.local import ENVIRONMENT
from testbed.access.place import CommandError
from testbed.supplies import cache
from testbed.supplies.cache import Say

# The programs that nodes need, and Debian's packages of them. ``invokew`` installs those of this machine; it
# has their names too, since it comes before any Python package.
NODE = {
    "ip": "iproute2",
    "tc": "iproute2",
    "bridge": "iproute2",
    "ss": "iproute2",
    "nft": "nftables",
    "iperf3": "iperf3",
    "nsenter": "util-linux",
}
# For nodes that are namespaces of this machine.
SANDBOX = {**NODE, "unshare": "util-linux", "setpriv": "util-linux", "mount": "mount"}
# For a node that is a machine.
MACHINE = {
    **NODE,
    "timeout": "coreutils",
    "tar": "tar",
    "/usr/bin/python3": "python3",
}

GET = "./invokew programs.get"
SOURCES = Path("/etc/apt")
COMPLAINT = ("E: ", "W: ")  # of apt, on its lines
LAST_LINES = 15
# What is fetched, and which of its programs are used; the first tells its version.
PACKAGES: dict[str, tuple[str, ...]] = {
    "bird2": ("bird", "birdc"),
    "dnsmasq-base": ("dnsmasq",),
    "etcd-server": ("etcd",),
    "socat": ("socat",),
}
ASKS_VERSION = {"socat": "-V"}  # of programs that do not take the usual word
SBIN = ("usr/sbin", "usr/bin", "sbin", "bin")
LIBRARIES = ("usr/lib/*-linux-*", "lib/*-linux-*")
UNKNOWN = "Unable to locate package"  # as apt-get says it
WRAPPERS = "programs"  # in a package's directory: what is to be run
# Runs a program with the libraries that came with it, if this machine has them not. What it is given is where
# its own file is: the directory stays whole, wherever it is moved.
WRAPPER = """#!/bin/sh
root=${0%/*}/..
LD_LIBRARY_PATH=$(echo "$root"/usr/lib/*-linux-*/ "$root"/lib/*-linux-*/ | tr ' ' :) exec "$root/PROGRAM" "$@"
"""


def find(package: str, program: str) -> Path:
    """Return where a program of a package is. Raises LookupError with what gets it."""
    if found := shutil.which(program, path=ENVIRONMENT["PATH"]):
        return Path(found)
    kept = _directory(package) / WRAPPERS / program
    if os.access(kept, os.X_OK):
        return kept
    raise LookupError(f"no program {program}, of Debian's package {package}: {GET}")


def unpacked(package: str, program: str) -> tuple[Path, dict[str, Path]]:
    """Return the file of a program, and the libraries that came with it, by their places in a system.

    Raises LookupError with what gets it.
    """
    found = find(package, program)
    if found.parent.name != WRAPPERS:
        return found, {}
    root = _directory(package)
    files = (file for place in LIBRARIES for file in root.glob(f"{place}/*.so*"))
    return root / _inside(package, program, root), {
        str(file.relative_to(root)): file for file in sorted(files)
    }


def missing(package: str) -> Iterator[str]:
    """Yield, in words, what is missing of a package."""
    for program in PACKAGES[package]:
        try:
            find(package, program)
        except LookupError as error:
            yield str(error)
            return


def get(package: str, say: Say = lambda _stage: None, sources: Path = SOURCES) -> Path:
    """Return the directory of a package's programs; fetch it if one of them is not there.

    Raises LookupError for what this machine cannot get, RuntimeError for what went wrong.
    """
    programs = PACKAGES[package]
    with cache.claimed(package, say, cache.packages()):
        if not list(missing(package)):
            return find(package, programs[0]).parent
        if absent := [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]:
            raise LookupError(f"{package}: needs {' and '.join(absent)}, or the package installed")
        with cache.workspace(package, cache.packages()) as scratch:
            root = _unpack(package, programs, scratch, say, sources)
            directory = _directory(package)
            if directory.exists():
                directory.rename(scratch / "replaced")
            root.rename(directory)
        return directory / WRAPPERS


def _unpack(package: str, programs: Sequence[str], scratch: Path, say: Say, sources: Path) -> Path:
    """Return a directory with what a package and those that it needs hold."""
    what, root = f"getting {package}", scratch / "root"
    texts = source_texts(sources)
    # apt leaves the archives of a mirror in a directory where they are, if it may.
    fetching = Apt(what, scratch, {name: text.replace("file:/", "copy:/") for name, text in texts.items()})
    say(f"fetching Debian's package {package}")
    complaints = fetching.update()
    try:
        archives = fetching.fetch(package)
    except CommandError as error:
        if complaints:
            raise RuntimeError("\n".join(["cannot read the package sources:", *complaints])) from None
        if UNKNOWN in str(error):
            message = f"this machine's package sources have no {package}, which is in Debian 12"
            raise LookupError(message) from None
        raise
    root.mkdir()
    for archive in archives:
        run(what, ["dpkg-deb", "--extract", str(archive), str(root)], scratch / "log")
    (root / WRAPPERS).mkdir()
    for program in programs:
        wrapper = root / WRAPPERS / program
        wrapper.write_text(WRAPPER.replace("PROGRAM", _inside(package, program, root)), encoding="utf-8")
        wrapper.chmod(0o755)
    asked = [str(root / WRAPPERS / programs[0]), ASKS_VERSION.get(programs[0], "--version")]
    run(what, asked, scratch / "log")  # does it run?
    return root


def _inside(package: str, program: str, root: Path) -> str:
    """Return where a program of a package is that was unpacked. Raises RuntimeError if it is nowhere."""
    places = (f"{one}/{program}" for one in SBIN)
    if found := next((place for place in places if (root / place).is_file()), ""):
        return found
    raise RuntimeError(f"{package} has no program {program}")


def _directory(package: str) -> Path:
    return cache.packages() / package


class Apt:
    """apt with lists of its own, below one directory: it needs no root, and the machine's stay as they are.

    It checks packages by their signatures, and installs nothing. What is installed already counts as there.
    """

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
        text = self.run("update", check=False)
        return [line for line in text.splitlines() if line.startswith(COMPLAINT)][-LAST_LINES:]

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
            cwd=directory or log.parent, env=environment, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
        )  # fmt: skip
        try:
            status = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    text = log.read_text(encoding="utf-8", errors="replace")
    if check and status != 0:
        raise CommandError(what, argv, status, "\n".join(text.rstrip().splitlines()[-LAST_LINES:]))
    return text
