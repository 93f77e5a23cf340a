"""The few lines of shell that answer for pods without an annotation, and hand on what is not theirs."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from concorde import pod_annotations

PREVIOUS = {
    "cniVersion": "1.0.0",
    "interfaces": [{"name": "br-{x}"}, {"name": "eth0", "sandbox": "/run/netns/pod"}],
    "ips": [{"address": "10.0.0.2/24", "interface": 1}],
    "dns": {"search": ['},"runtimeConfig":{', "é\\"]},
}
ANNOTATIONS = {
    "other": '"prevResult":{},"k8s.v1.cni.cncf.io/networks":""',
    "k8s.v1.cni.cncf.io/network-status": "[]",
}
WITHOUT_PYTHON = 127  # what a shell says that finds no such program


@pytest.fixture
def start(built: Path, tmp_path: Path) -> Path:
    """The executable where there is no Python."""
    text = built.with_name("concorde-networks").read_text().replace("/usr/bin/python3", "/nowhere/python3")
    path = tmp_path / "concorde-networks"
    path.write_text(text)
    path.chmod(0o755)
    return path


def call(start: Path, content: str, verb: str = "ADD") -> tuple[int, bytes]:
    done = subprocess.run([start], input=content.encode(), env={"CNI_COMMAND": verb}, capture_output=True)
    return done.returncode, done.stdout


def by_libcni(annotations: dict[str, str], **keys: Any) -> str:
    document = {
        "cniVersion": "1.0.0",
        "name": "cluster-a",
        "type": "concorde-networks",
        "capabilities": {"io.kubernetes.cri.pod-annotations": True},
        "clusterRanges": ["10.0.0.0/8"],
        "prevResult": PREVIOUS,
        "runtimeConfig": {"io.kubernetes.cri.pod-annotations": annotations},
        **keys,
    }
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("annotations", [{}, ANNOTATIONS], ids=["none", "others"])
def test_a_pod_that_asks_for_nothing_gets_the_previous_result_without_python(
    start: Path, annotations: dict[str, str]
) -> None:
    status, answer = call(start, by_libcni(annotations))
    assert (status, json.loads(answer)) == (0, PREVIOUS)


@pytest.mark.parametrize(
    ("content", "verb"),
    [
        (by_libcni({"k8s.v1.cni.cncf.io/networks": ""}), "ADD"),
        (by_libcni({"concorde.contmec.dev/forward": "[]"}), "ADD"),
        *((by_libcni({f"{promise}.net1": "1M"}), "ADD") for promise in pod_annotations.PROMISES),
        (by_libcni({}), "DEL"),
        (by_libcni({}), ""),
        (by_libcni({}, runtimeConfig={}), "ADD"),
        (by_libcni({}, prevResult=None), "ADD"),
        (json.dumps(json.loads(by_libcni({})), indent=1), "ADD"),
        ("", "ADD"),
        ("{\n", "ADD"),
    ],
)
def test_all_else_is_python_s(start: Path, content: str, verb: str) -> None:
    assert call(start, content, verb)[0] in (126, WITHOUT_PYTHON)


@pytest.mark.parametrize(
    "content", ["", "{\n", "7", "[" * 5000, by_libcni({"concorde.contmec.dev/forward": "[]"})]
)
def test_python_gets_all_of_it_also_by_a_link(built: Path, tmp_path: Path, content: str) -> None:
    link = tmp_path / "link"
    link.symlink_to(built.with_name("concorde-networks"))
    for path in (link, built.with_name("concorde-networks")):
        status, answer = call(path, content)
        error = json.loads(answer)
        assert (status, error["code"]) == (1, 4 if content[:2] == '{"' else 6), error
