"""Downloads the programs that the Kubernetes project releases, each checked by its published checksum.

The checksum comes from the same site, so it proves that the file arrived whole; who published it is proved by
TLS alone.
"""

from __future__ import annotations

import hashlib
import os
import re
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path

from testbed.supplies.binaries import PROGRAMS, architecture
from testbed.supplies.cache import Say
from testbed.supplies.versions import Version

DOWNLOADS = "https://dl.k8s.io/release"
SITE = "CONCORDE_KUBERNETES_DOWNLOADS"  # environment variable: a mirror of it
TIMEOUT_SECONDS = 60.0
CHUNK_BYTES = 2**20


def download(version: Version, into: Path, _scratch: Path, say: Say) -> str:
    """Download all programs of a version; see testbed.supplies.getting.Source."""
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
        words = getattr(error, "reason", None) or error
        raise RuntimeError(f"{url}: {words}. Without the internet: --build, or --from DIRECTORY") from None
