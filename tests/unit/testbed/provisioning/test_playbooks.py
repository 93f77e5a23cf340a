"""The playbooks as Ansible reads them, and what is made of Ansible's events."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from testbed.provisioning import kubeadm, provision
from testbed.provisioning.provision import Outcome, reason
from tests.paths import ROOT

BIN = Path(sys.executable).parent


PLAYBOOKS = [provision.SITE, provision.RESET]


@pytest.mark.parametrize("playbook", PLAYBOOKS, ids=lambda file: file.name)
def test_ansible_understands_the_playbook(playbook: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [BIN / "ansible-playbook", "--syntax-check", "--inventory", "somebody,", playbook],
        cwd=ROOT,
        env={**os.environ, "ANSIBLE_LOCAL_TEMP": str(tmp_path), "ANSIBLE_CONFIG": "playbooks/ansible.cfg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_every_role_is_used_and_every_used_role_is_there() -> None:
    there = {role.name for role in (ROOT / "playbooks" / "roles").iterdir()}
    texts = [playbook.read_text() for playbook in PLAYBOOKS]
    used = {line.split()[1] for text in texts for line in text.splitlines() if line.startswith("    - ")}
    assert used == there


def test_playbooks_fill_in_what_kubeadm_was_not_told() -> None:
    joining = (ROOT / "playbooks" / "roles" / "worker" / "tasks" / "one.yml").read_text()
    assert f"replace('{kubeadm.TOKEN}'" in joining
    assert f"replace('{kubeadm.AUTHORITY}'" in joining


def test_no_kubelet_starts_before_it_is_told_what_its_node_is_called() -> None:
    """It would ask for a certificate in its host's name, and be refused as a node of another for ever."""
    unit = (ROOT / "playbooks" / "roles" / "cell" / "templates" / "kubelet@.service.j2").read_text()
    (line,) = [line for line in unit.splitlines() if "kubeadm-flags.env" in line]
    assert line.startswith("EnvironmentFile={{")  # and not "-", by which a missing file is no fault


def event(kind: str, **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": data}


def test_a_task_is_told_as_it_begins_and_a_failure_has_host_task_and_reason() -> None:
    outcome, said = Outcome(), list[str]()
    outcome.take(event("playbook_on_task_start", name="cell : Start containerd", role="cell"), said.append)
    failed = event(
        "runner_on_failed",
        host="worker-01",
        role="cell",
        task="Start containerd",
        res={"rc": 1, "stderr": "no\n such  unit", "msg": "non-zero return code", "invocation": {"much": 1}},
    )
    outcome.take(failed, said.append)
    outcome.take(event("runner_on_failed", host="x", ignore_errors=True, res={}), said.append)
    assert said == ["cell: Start containerd"]
    assert outcome.failures == ["worker-01: cell: Start containerd: ended with 1: no such unit"]


def test_what_changed_is_counted_for_every_host() -> None:
    outcome = Outcome()
    stats = event("playbook_on_stats", ok={"a": 3, "b": 4}, changed={"b": 2}, processed={"a": 1, "b": 1})
    outcome.take(stats, lambda _: None)
    assert outcome.changed == {"a": 0, "b": 2}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"msg": "Failed to connect:\nno route to host"}, "Failed to connect: no route to host"),
        ({"rc": 2, "stdout": "E: broken", "msg": "non-zero return code"}, "ended with 2: E: broken"),
        ({"censored": "hidden", "rc": 1, "stderr": "token"}, "it failed, and its output holds a secret"),
        (
            {
                "msg": "One or more items failed",
                "results": [{"item": "a"}, {"item": "bin/kubelet", "failed": True, "msg": "no space left"}],
            },
            "bin/kubelet: no space left",
        ),
        ({}, "no message"),
    ],
)
def test_the_reason_is_what_a_person_would_look_for(result: dict[str, Any], words: str) -> None:
    assert reason(result) == words


def test_a_long_output_is_cut_to_its_end() -> None:
    words = reason({"rc": 1, "stderr": "x" * 5000 + " the end"})
    assert words.endswith("the end")
    assert len(words) < 450
