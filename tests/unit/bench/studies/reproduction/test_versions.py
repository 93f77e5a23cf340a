from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from bench.studies.reproduction import claims, pages
from bench.studies.reproduction.pages import Versions

NODE = {"kubeletVersion": "v1.20.2", "containerRuntimeVersion": "containerd://1.6.20"}


def told(system: str = "Linux 6.18.44-x #1 SMP x86_64", **more: Any) -> Versions:
    environment = {
        "tools": {
            "tc": "tc utility, iproute2-6.1.0, libbpf 1.1.2",
            "nft": "nftables v1.0.6 (Lester)",
            "python": "Python 3.11.2",
        },
        "clusters": {},
        "nodes": {"worker-01": {"system": system}},
        **more,
    }
    run = {"provider": "netns", "orchestrator": "kubernetes"}
    return pages.versions_of(
        {"environment.json": json.dumps(environment).encode(), "raw/run.json": json.dumps(run).encode()}
    )


def test_versions_are_what_a_run_found() -> None:
    found = told(
        clusters={"a": {"nodes": {"worker-01": {"info": NODE}}}},
        packages={"containernetworking-plugins": "1.1.1+ds1-3"},
    )
    assert found == Versions(
        "6.18.44", "6.1.0", "1.0.6", "3.11.2", "1.20.2", "1.6.20", "1.1.1+ds1-3", "namespaces", "Kubernetes"
    )


def test_a_kernel_of_debian_s_has_debian_s_version_and_what_is_not_known_is_a_dash() -> None:
    found = told(
        "Linux 6.1.0-56-amd64 #1 SMP Debian 6.1.192-2 (2026-11-16) x86_64",
        tools={"tc": "x", "nft": "", "python": ""},
    )
    assert (found.linux, found.iproute2, found.kubernetes, found.cni_plugins) == (
        "6.1.192-2 (Debian)", "–", "–", "–",
    )  # fmt: skip


def test_newer_kernels_come_first_and_recordings_are_named() -> None:
    lines = pages.table({told(): ["b", "a"], told("Linux 6.2.0"): ["c"]}).splitlines()
    assert [line.split(" | ")[0] for line in lines[2:]] == ["| 6.18.44", "| 6.2.0"]
    assert lines[2].endswith(" | a, b |")


def rows(page: str) -> dict[str, list[str]]:
    """Return which recordings stand behind each row's versions."""
    found = re.findall(r"^(\| .*) \| (.*) \|$", page, re.MULTILINE)
    return {versions: recordings.split(", ") for versions, recordings in found}


@pytest.mark.parametrize("name", sorted(place.name for place in claims.REFERENCE.iterdir()))
@pytest.mark.long(one_in=5)
def test_what_a_recording_that_is_kept_ran_on_is_on_the_page(name: str, tmp_path: Path) -> None:
    shutil.copytree(claims.REFERENCE / name, tmp_path / name)
    kept = rows(pages.VERSIONS_FILE.read_text(encoding="utf-8"))
    made = [
        versions for versions, recordings in rows(pages.versions(tmp_path)).items() if recordings == [name]
    ]
    assert made
    assert made == [versions for versions, recordings in kept.items() if name in recordings]


@pytest.mark.long(one_in=0)
def test_the_page_is_what_follows_from_the_recordings_that_are_kept() -> None:
    assert pages.VERSIONS_FILE.read_text(encoding="utf-8") == pages.versions(claims.REFERENCE)
