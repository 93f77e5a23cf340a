"""What names a machine or a person is replaced, and nothing else."""

from __future__ import annotations

import json

import pytest

from bench.observations.neighbours import Others, notes
from bench.recording.anonymous import without_names
from testbed.clusters.survey import Machine
from tests.unit.bench.builders import DATA

OUTPUT = "raw/repetition-0/a.sender.json"
NODE = {
    "metadata": {"name": "lab-7"},
    "spec": {"podCIDR": "172.16.1.0/24"},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [
            {"type": "InternalIP", "address": "192.0.2.7"},
            {"type": "Hostname", "address": "lab-7.example.org"},
        ],
        "nodeInfo": {"machineID": "d1ad", "systemUUID": "d1ae", "bootID": "bd90", "osImage": "Debian"},
    },
}


def masked(path: str, text: str) -> str:
    return without_names(path, text.encode()).decode()


def test_iperf3_tells_a_kernel_and_no_host() -> None:
    said = '"system_info":\t"Linux lab-7.example.org 6.1.0 #1 SMP x86_64"'
    assert masked(OUTPUT, said) == '"system_info":\t"Linux host 6.1.0 #1 SMP x86_64"'


def test_real_output_loses_one_line_only() -> None:
    before = (DATA / "held/raw/repetition-0/1-a-1-a-4.sender.json").read_text().splitlines()
    after = masked(OUTPUT, "\n".join(before)).splitlines()
    assert ["system_info" in new for old, new in zip(before, after, strict=True) if old != new] == [True]


def test_nodes_of_a_cluster_have_neither_names_nor_what_is_unique_to_a_machine() -> None:
    facts = {"clusters": {"a": {"nodes": {"worker-01": dict(Machine.read(NODE).facts)}}}}
    found = json.loads(masked("environment.json", json.dumps(facts, indent=1)))
    assert found["clusters"]["a"]["nodes"]["worker-01"] == {
        "name": "host",
        "addresses": {"InternalIP": "192.0.2.7", "Hostname": "host"},
        "pod_cidr": "172.16.1.0/24",
        "info": {"machineID": "", "systemUUID": "", "bootID": "", "osImage": "Debian"},
    }


def test_runs_beside_ours_were_nobodys() -> None:
    (note,) = notes(Others(frozenset({"process 17 of user ada"}), False), Others(frozenset(), False))
    for path in ("raw/run.json", "raw/repetition-0/finished.json", "summary.json"):
        assert masked(path, json.dumps([note])) == json.dumps([note.replace("ada", "unnamed")])


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ("ssh:/srv/ada/lab/inventory.yaml", "ssh:inventory.yaml"),
        ("ssh:/home/ada/inventory.yaml", "ssh:inventory.yaml"),
        ("existing:a=/root/a.conf,b=/home/ada/.kube/b.conf", "existing:a=a.conf,b=b.conf"),
        ("ssh:lab/inventory.yaml", "ssh:lab/inventory.yaml"),
        ("netns", "netns"),
    ],
)
@pytest.mark.parametrize("path", ["raw/beginning.json", "asked.json"])
def test_of_what_a_run_was_given_the_files_names_are_left(path: str, given: str, left: str) -> None:
    said = json.dumps({"started_at": "2026-01-01T00:00:00+00:00", "provider": given}, indent=1)
    assert json.loads(masked(path, said)) == json.loads(said) | {"provider": left}


def test_a_home_is_nobodys_anywhere() -> None:
    assert masked(OUTPUT, "cannot read /home/ada/x, /root/y") == "cannot read ~/x, ~/y"


def test_paths_of_the_system_and_what_is_no_text_stay() -> None:
    for text in ('"subnetFile": "/run/flannel/subnet-a.env"', '"root": true', '"raw/run.json": "0f"'):
        assert masked("environment.json", text) == masked("raw/run.json", text) == text
    assert without_names(OUTPUT, b"\xff/home/ada/x") == b"\xff/home/ada/x"
