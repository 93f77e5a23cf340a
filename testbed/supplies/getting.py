"""Gets the programs of a Kubernetes version and keeps them; decides where they come from."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from testbed.supplies import binaries, cache, debian, versions
from testbed.supplies.binaries import FLANNELD, PROGRAMS, PROXY, Binaries, architecture
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
        return _fresh(wanted, chosen, flanneld, without_flanneld, say)


def _fresh(
    version: Version, source: Source, flanneld: Path | None, without_flanneld: bool, say: Say
) -> Binaries:
    """Get the programs of a version that is claimed, and keep them."""
    with cache.workspace(str(version)) as scratch:
        staged = scratch / "programs"
        staged.mkdir()
        origin = source(version, staged, scratch, say)
        if flanneld is not None:
            shutil.copyfile(flanneld, staged / FLANNELD)
        elif without_flanneld:
            (staged / FLANNELD).unlink(missing_ok=True)
        say("checking that every program runs and is of this version")
        return binaries.keep(version, staged, origin)


def proxy(version: str = versions.DEFAULT, say: Say = lambda _stage: None) -> Path:
    """Return a version's kube-proxy, and build it if it is not kept. Raises LookupError and RuntimeError."""
    wanted = versions.parse(version)
    name = f"{PROXY}-{wanted}"
    kept = cache.root() / name
    with cache.claimed(name, say):
        if not kept.exists():
            with cache.workspace(name) as scratch:
                staged = scratch / "programs"
                staged.mkdir()
                debian.build_proxy(wanted, staged, scratch, say)
                binaries.confirm(staged / PROXY, wanted)
                staged.rename(kept)
    return kept / PROXY


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


DOWNLOADS = "https://dl.k8s.io/release"
SITE = "CONCORDE_KUBERNETES_DOWNLOADS"  # environment variable: a mirror of it
TIMEOUT_SECONDS = 60.0
CHUNK_BYTES = 2**20


def download(version: Version, into: Path, _scratch: Path, say: Say) -> str:
    """Download all programs of a version that the Kubernetes project has released; see ``Source``.

    Each is checked by its checksum, which comes from the same site: so it arrived whole. Who published it is
    proved by TLS alone.
    """
    site = os.environ.get(SITE, DOWNLOADS).rstrip("/")
    directory = f"{site}/v{version}/bin/linux/{architecture()}"
    for program in PROGRAMS:
        say(f"downloading {directory}/{program}")
        _fetch(f"{directory}/{program}", into / program)
    return f"downloaded from {directory}"


def _fetch(url: str, file: Path) -> None:
    """Save what is at a URL, if it has the checksum that is published beside it."""
    published = _read(f"{url}.sha256").decode(errors="replace").split()
    if not published or not re.fullmatch(r"[0-9a-f]{64}", published[0]):
        raise RuntimeError(f"{url}.sha256 is not a checksum: {' '.join(published)[:80] or 'it is empty'}")
    digest = _read(url, file).hex()
    if digest != published[0]:
        raise RuntimeError(f"{url} has sha256 {digest}, but {published[0]} is published: not used")


def _read(url: str, file: Path | None = None) -> bytes:
    """Return what is at a URL; or save it, and return its SHA-256."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            if file is None:
                return bytes(answer.read())
            digest = hashlib.sha256()
            with file.open("wb") as out:
                while chunk := answer.read(CHUNK_BYTES):
                    digest.update(chunk)
                    out.write(chunk)
            return digest.digest()
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            raise LookupError(f"--download: there is no {url}") from None
        raise RuntimeError(f"{url}: {error}") from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", None) or error
        raise RuntimeError(f"{url}: {reason}. Without the internet: --build, or --from DIRECTORY") from None
