"""Gets the programs of a Kubernetes version and keeps them; decides where they come from."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from testbed.supplies import binaries, cache, debian, versions
from testbed.supplies.binaries import FLANNELD, PROGRAMS, Binaries
from testbed.supplies.cache import Say
from testbed.supplies.versions import Version

# Puts the programs of a version into a directory and returns, in words, where they came from. It may leave
# anything in the second directory, which is scratch.
Source = Callable[[Version, Path, Path, Say], str]


def get(
    version: str = versions.DEFAULT,
    source: Source | None = None,
    flanneld: Path | None = None,
    without_flanneld: bool = False,
    say: Say = lambda _stage: None,
) -> Binaries:
    """Return the programs of a version; without a source, those that are kept or can be built here.

    What is kept is replaced if there is a source. ``flanneld`` is a program to keep beside them; or one that
    is kept shall go. Raises LookupError for what cannot be had, RuntimeError for what went wrong; then what
    was kept is still there.
    """
    wanted = versions.parse(version)
    if flanneld is not None and not flanneld.is_file():
        raise LookupError(f"--flannel: no file {flanneld}")
    with cache.claimed(str(wanted), say):
        kept = _kept(wanted, say) if source is None else None
        if kept is not None and flanneld is None and not (without_flanneld and kept.flanneld):
            return kept
        chosen = source or (_again(kept) if kept is not None else _default(wanted))
        with cache.workspace(str(wanted)) as scratch:
            staged = scratch / "programs"
            staged.mkdir()
            words = chosen(wanted, staged, scratch, say)
            if flanneld is not None:
                shutil.copyfile(flanneld, staged / FLANNELD)
            elif without_flanneld:
                (staged / FLANNELD).unlink(missing_ok=True)
            say("checking that every program runs and is of this version")
            return binaries.keep(wanted, staged, words)


def from_directory(directory: Path) -> Source:
    """Return a source that copies programs somebody has already. Raises LookupError if some are missing."""
    missing = [program for program in PROGRAMS if not (directory / program).is_file()]
    if missing:
        raise LookupError(f"--from: {directory} has no {', '.join(missing)} (needs {', '.join(PROGRAMS)})")

    def copy(_version: Version, into: Path, _scratch: Path, say: Say) -> str:
        say(f"copying from {directory}")
        for program in (*PROGRAMS, FLANNELD):
            if (directory / program).is_file():
                shutil.copyfile(directory / program, into / program)
        return f"copied from {directory.absolute()}"

    return copy


def _kept(version: Version, say: Say) -> Binaries | None:
    try:
        return binaries.find(str(version))
    except LookupError:
        return None
    except RuntimeError as error:
        say(f"getting it again: {error}")
        return None


def _again(kept: Binaries) -> Source:
    copy = from_directory(kept.directory)

    def copy_and_keep_words(version: Version, into: Path, scratch: Path, say: Say) -> str:
        copy(version, into, scratch, say)
        return kept.source

    return copy_and_keep_words


def _default(version: Version) -> Source:
    if str(version) in versions.BUILDABLE:
        return debian.build
    raise LookupError(
        f"Kubernetes {version} is not in {cache.root()}, and only {', '.join(versions.BUILDABLE)} can be "
        "built here: say --download, or --from DIRECTORY"
    )
