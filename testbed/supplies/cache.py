"""Where what was built or downloaded is kept, and how it gets there: all at once or not at all."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from testbed import resources
from testbed.access import locks
from testbed.access.place import in_parallel

Say = Callable[[str], None]  # told what is being done now

# What Go compiled before it was interrupted: worth minutes to whoever tries again.
GO_CACHE = "go-cache"


def root() -> Path:
    """Return the directory where everything about Kubernetes is kept."""
    return resources.cache() / "kubernetes"


def packages() -> Path:
    """Return the directory where programs of Debian's packages are kept."""
    return resources.cache() / "packages"


@contextmanager
def claimed(name: str, say: Say, within: Path | None = None) -> Iterator[None]:
    """Hold the exclusive right to change ``name``; wait while another process has it."""
    place = within or root()
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{name}.lock").open("w") as lock:
        try:
            locks.take(lock.fileno(), wait=False)
        except BlockingIOError:
            say(f"waiting for another process that is getting {name}")
            locks.take(lock.fileno())
        yield


@contextmanager
def workspace(name: str, within: Path | None = None) -> Iterator[Path]:
    """Yield a directory beside the result, so that a finished one is moved there in an instant.

    It is removed in any case, and what a killed process left is removed first; only Go's cache stays until
    the work is finished. For who has claimed ``name``.
    """
    directory = (within or root()) / f"{name}.unfinished"
    _clear(directory)
    directory.mkdir(exist_ok=True)
    try:
        yield directory
    except BaseException:
        _clear(directory)
        raise
    shutil.rmtree(directory)


def _clear(directory: Path) -> None:
    for entry in directory.glob("*"):
        if entry.is_dir() and entry.name != GO_CACHE:
            shutil.rmtree(entry)
        elif not entry.is_dir():
            entry.unlink()
    with suppress(OSError):  # there is nothing, or Go's cache is in it
        directory.rmdir()


def sha256(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of files in a directory, hexadecimal, by their names."""

    def digest(name: str) -> str:
        with (directory / name).open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()

    wanted = list(names)
    return dict(zip(wanted, in_parallel(digest, wanted), strict=True))
