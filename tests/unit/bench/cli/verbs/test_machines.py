from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli.verbs import machines
from testbed.supplies.binaries import PROGRAMS
from tests.unit.testbed.supplies.builders import write_program


@pytest.mark.parametrize(
    ("directory", "download", "build"), [("x", True, False), ("x", False, True), ("", True, True)]
)
def test_kubernetes_comes_from_one_place_only(directory: str, download: bool, build: bool) -> None:
    with pytest.raises(LookupError, match="--from, --download and --build are mutually exclusive"):
        machines.get_kubernetes("", directory, download, build, "")


def test_getting_kubernetes_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONCORDE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("testbed.supplies.images.provide", list)
    for program in PROGRAMS:
        write_program(tmp_path / program, "Kubernetes v1.20.2")
    assert machines.get_kubernetes("", str(tmp_path), False, False, "") == 0
    *_, where, overlays = capsys.readouterr().out.splitlines()
    assert where.endswith(
        f"Kubernetes 1.20.2 is in {tmp_path}/cache/kubernetes/1.20.2, copied from {tmp_path}"
    )
    assert overlays.endswith("overlays: flannel's entries, made by the testbed")
