"""Programs of Debian 13 that tests try, on Debian 12 too: fetched by apt, checked by its signatures."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from testbed.supplies import packages

CODENAMES = ("bookworm", "trixie")


def program(package: str, path: str, directory: Path) -> Path:
    """A program of a package, unpacked into a directory. Skips the test where no Debian 12's sources are."""
    texts = {
        name: text.replace(*CODENAMES).replace("file:/", "copy:/")
        for name, text in packages.source_texts().items()
        if any(codename in text for codename in CODENAMES)
    }
    if not texts or shutil.which("dpkg-deb") is None:
        pytest.skip("no package sources of Debian 12 or 13")
    fetching = packages.Apt(f"fetching {package}", directory, texts)
    fetching.update()
    fetching.run("download", package)
    (archive,) = directory.glob(f"{package}_*.deb")
    subprocess.run(["dpkg-deb", "--extract", archive, directory / "root"], check=True)
    found = directory / "root" / path
    assert os.access(found, os.X_OK)
    return found
