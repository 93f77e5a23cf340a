"""What the image of the addresses' controller holds; that it works in a cluster is for tests/e2e."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from testbed import resources
from testbed.supplies import addresses


@pytest.mark.long(one_in=0)
def test_its_python_runs_its_program_and_needs_nothing_of_this_machine(tmp_path: Path) -> None:
    for entry in addresses.files():
        file = tmp_path / entry.path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(entry.data)
        file.chmod(entry.mode)
    (loader,) = tmp_path.glob("lib64/ld-*")
    libraries = ":".join({str(file.parent) for file in tmp_path.rglob("lib*.so*")})
    python = [str(loader), "--library-path", libraries, str(tmp_path / "usr/bin/python3"), "-IS"]
    done = subprocess.run([*python, str(tmp_path / addresses.HOME)], capture_output=True, text=True)
    assert (done.returncode, done.stderr[:12]) == (2, "usage: edge ")
    look = "import ssl, _ssl, http.client; print(ssl.__file__, _ssl.__file__)"
    done = subprocess.run([*python, "-c", look], capture_output=True, text=True, check=True)
    assert all(file.startswith(str(tmp_path)) for file in done.stdout.split())


def test_it_brings_edge_and_no_manifests() -> None:
    found = {one.path for one in addresses.files() if one.path.startswith(addresses.HOME)}
    there = {str(file.relative_to(resources.EDGE)) for file in resources.EDGE.rglob("*.py")}
    assert found == {f"{addresses.HOME}/{file}" for file in there}
