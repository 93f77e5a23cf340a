"""Whoever clones the project waits for what it needs, and for no more."""

from __future__ import annotations

import subprocess

import pytest

from tests.paths import ROOT

# 16 MiB: what addresses, services and zones brought filled the 15,000,000 bytes that the project was cut
# down to; devices and promises that arrive come on top, and the recordings of both.
MOST_BYTES = 16 * 2**20
LARGEST = 5  # files that a failure names


def test_a_clone_is_at_most_16_mib_of_files() -> None:
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode:
        pytest.skip("nothing says what is committed: no git, or no checkout")
    files = [ROOT / path for path in listed.stdout.decode().split("\0") if path]
    sizes = {file.relative_to(ROOT): file.lstat().st_size for file in files if file.exists()}
    largest = ", ".join(
        f"{file} ({sizes[file]})" for file in sorted(sizes, key=lambda file: -sizes[file])[:LARGEST]
    )
    total = sum(sizes.values())
    assert total <= MOST_BYTES, f"{total} bytes, at most {MOST_BYTES}; the largest files: {largest}"
