"""Playbooks run for real, against real sshd: the roles that need no systemd, into each machine's own /run."""

from __future__ import annotations

import copy
import hashlib
import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.kubernetes import cell
from testbed.providers.ssh import inventory
from testbed.providers.ssh.provider import located
from testbed.provisioning import provision, variables
from testbed.provisioning.provision import PlaybookError, pack_plugin
from testbed.scenario import load
from testbed.supplies import versions
from testbed.supplies.bundle import Bundle
from tests.paths import ROOT
from tests.system.testbed import machines
from tests.system.testbed.machines import USER, Machines
from tests.waiting import until

SOME_OF_SITE = """
- name: Some of site.yml
  hosts: all
  become: true
  gather_facts: false
  any_errors_fatal: true
  pre_tasks:
    - name: Take a while
      ansible.builtin.command: sleep 60
      when: slow | default(false)
    - name: Make the directories of settings
      ansible.builtin.file: {path: "{{ settings }}/{{ item.cluster }}/net.d", state: directory, mode: "0755"}
      loop: "{{ cells }}"
  roles: [programs]
  tasks:
    - name: Keys of agents
      ansible.builtin.include_role: {name: plugin, tasks_from: keys}
    - name: Configure the pods' network of each cluster
      ansible.builtin.copy:
        content: "{{ item.plugin | string }}"
        dest: "{{ settings }}/{{ item.cluster }}/net.d/{{ item.network }}.conflist"
        mode: "0644"
      loop: "{{ cells }}"
    - name: The agents' unit, for which there is no systemd
      ansible.builtin.template:
        src: "{{ playbook_roles }}/plugin/templates/concorde-agent@.service.j2"
        dest: "{{ settings }}/unit"
        mode: "0644"
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    machines.require()
    with Machines(
        load(ROOT / "scenarios" / "kubernetes.yaml", ["enforcement=fabric", "underlay.rate=10G"]),
        tmp_path_factory.mktemp("machines"),
    ).lent() as up:
        yield up


@pytest.fixture(scope="module")
def playbook(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("playbook") / "some.yml"
    file.write_text(SOME_OF_SITE)
    return file


@pytest.fixture(scope="module")
def hosts(there: Machines, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The inventory of provisioning, but with all that is made in each machine's own /run."""
    directory = tmp_path_factory.mktemp("bundle")
    files = ("bin/kubelet", "cni/loopback")
    for file in files:
        (directory / file).parent.mkdir()
        (directory / file).write_text(file)
    sums = {file: hashlib.sha256(file.encode()).hexdigest() for file in files}
    bundle = Bundle(directory, versions.parse("1.20.2"), sums, ())
    for node in there.nodes.values():  # whose users have no home
        node.run(["install", "--directory", "--owner=2000", "/run/scratch"])
    reached = inventory.machines(there.scenario, there.inventory(USER))
    made = variables.inventory(located(there.scenario, reached), reached, bundle)
    made["all"]["vars"] |= {
        "home": "/run/home",
        "settings": "/run/settings",
        "plugin_archive": str(pack_plugin(directory)),
        "cell_program": str(cell.__file__),
        "playbook_roles": str(ROOT / "playbooks" / "roles"),
        "ansible_remote_tmp": "/run/scratch",
    }
    return made


def silent(_words: str) -> None:
    """Say nothing."""


@pytest.mark.long(one_in=0)
def test_a_second_run_changes_nothing(there: Machines, playbook: Path, hosts: dict[str, Any]) -> None:
    said: list[str] = []
    first = provision.run(playbook, hosts, said.append)
    assert first.changed.keys() == there.nodes.keys()
    assert all(first.changed.values())
    assert "programs: Copy the others" in said
    assert provision.run(playbook, hosts, silent).changed == dict.fromkeys(there.nodes, 0)
    for node in there.nodes.values():
        assert node.run(["cat", "/run/home/bin/kubelet"]).stdout == "bin/kubelet"
        answer = node.run(["/run/home/cni/concorde"], env={"CNI_COMMAND": "VERSION"}, stdin="{}", check=False)
        assert "supportedVersions" in answer.stdout


@pytest.mark.long(one_in=0)
def test_a_clusters_machines_have_one_key_and_their_unit_runs_an_agent(
    there: Machines, playbook: Path, hosts: dict[str, Any], tmp_path: Path
) -> None:
    provision.run(playbook, hosts, silent)
    ((cluster, own),) = there.scenario.clusters.items()
    key = f"/run/settings/{cluster}/fabric.key"
    (its,) = {there.nodes[name].run(["cat", key]).stdout for name in own.nodes}
    assert re.fullmatch(r"[0-9a-f]{64}", its)
    node, out = there.nodes[own.workers[0]], tmp_path / "out"
    assert node.run(["stat", "--format=%a", key]).stdout == "600\n"
    unit = node.run(["cat", "/run/settings/unit"]).stdout.replace("%i", cluster)
    said = dict(re.findall(r"^(\w+)=(.*)$", unit, re.MULTILINE))
    reading = said["StandardInput"].removeprefix("file:")
    agent = node.start(
        ["sh", "-c", f'exec {said["ExecStart"]} <"{reading}"'], stdout=out, stderr=tmp_path / "err"
    )
    try:
        until(lambda: "agent: takes part in the fabric" in out.read_text(), out.read_text)
    finally:
        agent.kill()
    node.run(["rm", "-r", "/run/concorde"])


@pytest.mark.long(one_in=0)
def test_a_failure_has_host_task_and_reason(
    there: Machines, playbook: Path, hosts: dict[str, Any], tmp_path: Path
) -> None:
    there.nodes["worker-01"].run(["rm", "-rf", "/run/settings"])
    there.nodes["worker-01"].run(["touch", "/run/settings"])
    try:
        with pytest.raises(PlaybookError) as failed:
            provision.run(playbook, hosts, silent)
    finally:
        there.nodes["worker-01"].run(["rm", "/run/settings"])
    first, *rest = str(failed.value).splitlines()
    assert first.startswith("worker-01: Make the directories of settings: ")
    assert "/run/settings" in first
    assert rest == [provision.AGAIN]


@pytest.mark.long(one_in=0)
def test_a_machine_that_does_not_answer_is_named(
    there: Machines, playbook: Path, hosts: dict[str, Any]
) -> None:
    there.stop_sshd("worker-02")
    try:
        with pytest.raises(PlaybookError, match=r"(?m)^worker-02: .*: .*Connection refused"):
            provision.run(playbook, hosts, silent)
    finally:
        there.start_sshd("worker-02")


@pytest.mark.long(one_in=0)
def test_a_host_key_that_is_not_known_is_refused(
    there: Machines, playbook: Path, hosts: dict[str, Any], tmp_path: Path
) -> None:
    reached = inventory.machines(there.scenario, there.inventory(USER))
    (tmp_path / "known_hosts").touch()
    stranger = replace(reached["worker-02"], known_hosts=tmp_path / "known_hosts")
    altered = copy.deepcopy(hosts)
    connection = variables.connection(stranger)
    altered["all"]["hosts"] = {"worker-02": altered["all"]["hosts"]["worker-02"] | connection}
    with pytest.raises(PlaybookError, match=r"(?m)^worker-02: .*: .*[Hh]ost key"):
        provision.run(playbook, altered, silent)


def left_of_ansible(scratch: str) -> list[str]:
    """Return the command lines of what Ansible has started below a directory.

    Its workers have sessions of their own, and other tests have an Ansible too.
    """
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (directory / "cmdline").read_text().replace("\0", " ")
            if f"{provision.MARK}={scratch}/".encode() in (directory / "environ").read_bytes():
                found.append(command)
    return found


@pytest.mark.long(one_in=0)
def test_an_interrupt_ends_ansible_and_says_how_to_go_on(
    there: Machines, playbook: Path, hosts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    seen: list[str] = []
    scratch = tempfile.mkdtemp()  # pytest's own path is too long for ssh's sockets
    monkeypatch.setattr(tempfile, "tempdir", scratch)

    def interrupt() -> None:
        while not any(command.startswith("ssh ") for command in seen):
            seen[:] = left_of_ansible(scratch)
        os.kill(os.getpid(), signal.SIGINT)

    def say(words: str) -> None:
        said.append(words)
        if words == "Take a while":
            threading.Thread(target=interrupt, daemon=True).start()

    hosts["all"]["vars"]["slow"] = True
    before = signal.getsignal(signal.SIGINT)
    try:
        with pytest.raises(KeyboardInterrupt):
            provision.run(playbook, hosts, say)
    finally:
        del hosts["all"]["vars"]["slow"]
    assert any("ansible-playbook" in command for command in seen)
    assert left_of_ansible(scratch) == []
    Path(scratch).rmdir()
    assert said[-1] == f"interrupted; {provision.AGAIN}"
    assert signal.getsignal(signal.SIGINT) is before
