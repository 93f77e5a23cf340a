"""The installer's script on a directory that stands for a node, and what its manifests ask for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from concorde import state_files
from concorde.configuration import Configuration
from ruamel.yaml import YAML

from testbed.supplies import images
from tests.installation import NAME, SCRIPT, Installation, build
from tests.paths import ROOT
from tests.waiting import until

DEPLOY = ROOT / "plugin" / "deploy"
# The commands by which the script changes something.
COMMANDS = ("cp", "mv", "rm", "mkdir", "chmod", "sync", "rmdir")
CHANGES = 17  # how many it takes for another version
CHANGES_OF_A_CHAIN = 39  # to install and to uninstall
# Stands for each of them: it counts, and at one moment does half of its work, and the script is killed.
KILLER = """#!/bin/sh
echo >>"$COUNTED"
if [ "$(wc -l <"$COUNTED")" -eq "$KILLED_AT" ]; then
    for to in "$@"; do :; done
    if [ COMMAND = cp ]; then
        /bin/cp "$@"
        if [ -d "$to" ]; then find "$to" -name "[a-m]*" -type f -delete; else truncate -s 100 "$to"; fi
    fi
    kill -9 "$PPID"
    exit
fi
exec /bin/COMMAND "$@"
"""


@pytest.fixture
def node(tmp_path: Path, built: Path) -> Installation:
    return Installation(tmp_path, built)


def installs(node: Installation) -> None:
    """Have it installed; what the machine's own limits have no room for is said besides."""
    status, words = node.run("install")
    said, *notes = words.splitlines()
    assert (status, said) == (0, f"installed: {node.bin}/concorde and {NAME}")
    assert all(note.startswith("note: net.ipv") for note in notes)


def test_it_installs_plugin_and_configuration(node: Installation) -> None:
    installs(node)
    assert (node.networks / NAME).read_text() == (node.configuration / "concorde.conflist").read_text()
    assert (
        b"supportedVersions"
        in subprocess.run(
            [node.bin / "concorde"], env={"CNI_COMMAND": "VERSION"}, input=b"", capture_output=True
        ).stdout
    )
    assert [path.name for path in node.networks.iterdir()] == [NAME]


def test_a_second_installation_changes_nothing(node: Installation) -> None:
    node.run("install")
    before = node.shown(), (node.networks / NAME).stat().st_ino, (node.bin / "concorde").stat().st_ino
    assert node.run("install")[0] == 0
    assert (
        node.shown(), (node.networks / NAME).stat().st_ino, (node.bin / "concorde").stat().st_ino
    ) == before  # fmt: skip


def test_a_changed_configuration_is_put_in_its_place(node: Installation) -> None:
    node.run("install")
    node.write(subnet="10.1.0.0/24")
    assert node.run("install")[0] == 0
    assert "10.1.0.0/24" in (node.networks / NAME).read_text()


def test_uninstalling_leaves_what_was_there_before(node: Installation) -> None:
    (node.networks / "10-flannel.conflist").write_text("flannel's")
    node.before = node.shown()
    node.run("install")
    assert node.run("uninstall") == (0, "uninstalled: the node is as it was before\n")
    assert node.shown() == node.before
    assert not (node.state / "plugin").exists()
    assert node.run("uninstall") == (0, "nothing is installed here\n")


def test_what_had_the_same_names_is_put_back(node: Installation) -> None:
    node.executable(node.bin / "concorde", "an older one")
    (node.networks / NAME).symlink_to("/nowhere")
    before = node.shown()
    node.run("install")
    node.write(subnet="10.1.0.0/24")
    node.run("install")
    assert (node.networks / NAME).is_file()
    assert node.run("uninstall")[0] == 0
    assert node.shown() == before
    assert str((node.networks / NAME).readlink()) == "/nowhere"
    assert (node.bin / "concorde").read_text() == "an older one"


def test_the_only_configuration_stays_until_the_runtime_is_done(node: Installation) -> None:
    node.run("install")
    status, words = node.run("uninstall")
    assert status == 1
    assert "waiting until the runtime is done with its pods" in words
    assert (node.networks / NAME).is_file()
    assert node.run("uninstall", QUIET="1")[0] == 0
    assert node.shown() == node.before


def test_nothing_is_put_on_a_node_that_lacks_something(node: Installation) -> None:
    node.loopback.unlink()
    node.write(subnetFile="/nowhere/subnet.env")
    status, words = node.run("install")
    assert status == 1
    assert f"concorde: there is no plugin loopback in {node.bin}" in words
    assert "concorde: subnetFile: /nowhere/subnet.env: No such file or directory" in words
    assert list(node.networks.iterdir()) == []


def test_another_configuration_that_comes_first_is_named(node: Installation) -> None:
    (node.networks / "00-a.conf").write_text("another's")
    status, words = node.run("install")
    assert status == 1
    assert f"00-a.conf is before {NAME}" in words


OTHER = "10-flannel.conflist"
FLANNELS = {"cniVersion": "0.3.1", "name": "cbr0", "plugins": [{"type": "flannel"}, {"type": "portmap"}]}


@pytest.fixture
def chain(node: Installation) -> Installation:
    """A node that has another network, and an installer that is to stand behind it."""
    for plugin in FLANNELS["plugins"]:
        node.executable(node.bin / plugin["type"])  # type: ignore[index]
    (node.networks / OTHER).write_text(json.dumps(FLANNELS))
    node.before = node.shown()
    node.write_behind()
    return node


def composed(node: Installation) -> Any:
    return json.loads((node.networks / NAME).read_text())


def test_in_a_chain_it_stands_behind_what_the_runtime_has_without_it(chain: Installation) -> None:
    (chain.networks / "20-later.conf").write_text("another's, which no runtime takes")
    status, words = chain.run("install")
    assert (status, words.splitlines()[0]) == (
        0,
        f"installed: {chain.bin}/concorde and {NAME}, behind {OTHER}",
    )
    (ours,) = json.loads((chain.configuration / "concorde.conflist").read_text())["plugins"]
    assert composed(chain) == {**FLANNELS, "plugins": [*FLANNELS["plugins"], ours]}
    assert json.loads((chain.networks / OTHER).read_text()) == FLANNELS


def test_in_a_chain_it_follows_the_other_network(chain: Installation) -> None:
    here = chain.networks / NAME
    with chain.running("install") as look:
        assert f"behind {OTHER}" in look()
        former = here.read_text(), here.stat().st_ino
        assert look() == ""
        assert (here.read_text(), here.stat().st_ino) == former
        (chain.networks / OTHER).write_text(json.dumps({**FLANNELS, "cniVersion": "1.0.0"}))
        look()
        assert composed(chain)["cniVersion"] == "1.0.0"
        assert [plugin["type"] for plugin in composed(chain)["plugins"]] == ["flannel", "portmap", "concorde"]
        # Another takes its place: a single configuration, which is no list.
        (chain.networks / OTHER).unlink()
        assert look() == "there is no other network configuration here to stand behind\n"
        assert composed(chain)["cniVersion"] == "1.0.0"
        other = {"cniVersion": "0.4.0", "name": "mine", "type": "flannel"}
        (chain.networks / "05-mine.conf").write_text(json.dumps(other))
        assert "behind 05-mine.conf" in look()
        assert (composed(chain)["name"], composed(chain)["plugins"][0]) == ("mine", other)


def test_when_a_pod_of_it_ends_nothing_of_it_runs_on(chain: Installation) -> None:
    with chain.running("install") as look:
        look()
        assert processes(chain)
    until(lambda: not processes(chain), lambda: " ".join(processes(chain)))


def processes(node: Installation) -> list[str]:
    """The command lines of all processes that have something below an installation's directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            found.append((process / "cmdline").read_text(errors="replace").replace("\0", " "))
    return [line for line in found if str(node.state.parent) in line]


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        ("{", "standard input is not valid JSON"),
        ('{"cniVersion": "0.3.1", "name": "cbr0", "plugins": [{"type": "concorde"}]}', "among them already"),
        ('{"cniVersion": "0.2.0", "name": "old", "type": "flannel"}', "cniVersion: '0.2.0' is not one of"),
    ],
)
def test_behind_a_network_that_it_cannot_follow_nothing_is_installed(
    chain: Installation, theirs: str, words: str
) -> None:
    (chain.networks / OTHER).write_text(theirs)
    status, said = chain.run("install")
    assert status == 1
    assert said.startswith(f"cannot stand behind {OTHER}: ")
    assert words in said
    assert [path.name for path in chain.networks.iterdir()] == [OTHER]
    assert not (chain.bin / "concorde").exists()


@pytest.mark.long(one_in=0)
def test_in_a_chain_uninstalling_leaves_the_other_network_as_it_was(chain: Installation) -> None:
    chain.run("install")
    # Whatever became of the ConfigMap: what goes is what was installed.
    (chain.configuration / "concorde.conflist").write_text("{}")
    with chain.running("uninstall") as look:
        # A look that finds something, and three that find nothing any more.
        assert [look() for _ in range(3)] == ["waiting until no pod is being attached\n", "", ""]
        assert not (chain.networks / NAME).exists()
        assert (chain.bin / "concorde").exists()
        assert look() == "uninstalled: the node is as it was before\n"
    assert chain.shown() == chain.before


@pytest.mark.long(one_in=40)
@pytest.mark.parametrize("killed_at", range(1, CHANGES_OF_A_CHAIN + 2))
def test_no_half_list_is_ever_read(chain: Installation, tmp_path: Path, killed_at: int) -> None:
    """Killed at each command that changes something, while it installs and while it uninstalls."""
    killing = killer(chain, tmp_path, killed_at)
    ended = [chain.run(task, QUIET="0", **killing)[0] for task in ("install", "uninstall")]
    assert (-9 in ended) == (killed_at <= CHANGES_OF_A_CHAIN)
    lists = sorted(path.name for path in chain.networks.iterdir() if path.suffix == ".conflist")
    assert json.loads((chain.networks / lists[0]).read_text())["name"] == "cbr0"
    assert chain.run("install")[0] == 0
    assert composed(chain)["plugins"][-1]["type"] == "concorde"
    assert chain.run("uninstall", QUIET="0")[0] == 0
    assert chain.shown() == chain.before


@pytest.fixture(scope="session")
def newer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("newer"), "9.9.9")


def test_another_version_takes_the_plugins_place_and_gives_it_back(
    node: Installation, built: Path, newer: Path
) -> None:
    node.run("install")
    former = node.version()
    node.bring(newer)
    installs(node)
    assert node.version() == "concorde 9.9.9"
    node.bring(built)
    assert node.run("install")[0] == 0
    assert node.version() == former
    (node.networks / "10-flannel.conflist").write_text("flannel's")
    assert node.run("uninstall")[0] == 0
    (node.networks / "10-flannel.conflist").unlink()
    assert node.shown() == node.before


def test_a_version_that_cannot_work_there_does_not_replace_one_that_can(
    node: Installation, newer: Path
) -> None:
    node.run("install")
    former = node.version()
    node.bring(newer)
    node.write(subnetFile="/nowhere/subnet.env")
    status, words = node.run("install")
    assert status == 1
    assert words.endswith("/nowhere/subnet.env: No such file or directory; the version before stays\n")
    assert node.version() == former
    assert "subnetFile" not in (node.networks / NAME).read_text()


def killer(node: Installation, directory: Path, killed_at: int) -> dict[str, str]:
    """Settings with which the script is killed at its n-th change."""
    commands = directory / "commands"
    commands.mkdir()
    for command in COMMANDS:
        node.executable(commands / command, KILLER.replace("COMMAND", command))
    return {
        "PATH": f"{commands}:{os.environ['PATH']}",
        "COUNTED": str(directory / "counted"),
        "KILLED_AT": str(killed_at),
    }


@pytest.mark.long(one_in=9)
@pytest.mark.parametrize("killed_at", range(1, CHANGES + 2))
def test_no_half_copied_plugin_is_ever_called(
    node: Installation, newer: Path, tmp_path: Path, killed_at: int
) -> None:
    """Killed at each command that changes something, in the midst of it where that is copying."""
    node.run("install")
    former = node.version()
    node.bring(newer)
    status, _ = node.run("install", **killer(node, tmp_path, killed_at))
    assert status == (-9 if killed_at <= CHANGES else 0)
    assert node.version() in (former, "concorde 9.9.9")
    assert node.run("install")[0] == 0
    assert node.version() == "concorde 9.9.9"
    assert not list(node.bin.rglob("*.n*"))


def manifests() -> dict[str, Any]:
    found = {}
    for file in sorted((DEPLOY / "manifests").glob("*.yaml")):
        document = YAML(typ="safe").load(file)
        found[document["kind"]] = document
    return found


def test_kustomization_lists_every_manifest() -> None:
    listed = YAML(typ="safe").load(DEPLOY / "manifests" / "Kustomization")["resources"]
    assert listed == [file.name for file in sorted((DEPLOY / "manifests").glob("*.yaml"))]


def test_the_installer_may_make_events_look_at_pods_and_ask_the_api_nothing_else() -> None:
    found = manifests()
    roles = {"ClusterRole", "ClusterRoleBinding"}
    assert set(found) == {"Namespace", "ServiceAccount", "ConfigMap", "DaemonSet", *roles}
    assert found["ClusterRole"]["rules"] == [
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]},
    ]
    (subject,) = found["ClusterRoleBinding"]["subjects"]
    account = found["ServiceAccount"]
    assert (subject["name"], subject["namespace"]) == (
        account["metadata"]["name"],
        account["metadata"]["namespace"],
    )
    assert account["automountServiceAccountToken"] is False  # whoever else uses it
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    assert "privileged" not in json.dumps(pod)


def test_the_directories_agree() -> None:
    found = manifests()
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    paths = {volume["name"]: volume.get("hostPath", {}).get("path") for volume in pod["volumes"]}
    assert paths["cni-bin"] == found["ConfigMap"]["data"]["bin-dir"]
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == set(paths)
    assert next(e for e in container["env"] if e["name"] == "CONFLIST")["value"] == NAME
    assert {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}} in container[
        "env"
    ]
    (key,) = [mount["mountPath"] for mount in container["volumeMounts"] if mount["name"] == "fabric"]
    assert f'"${{KEY:={key}/key}}"' in SCRIPT.read_text()


def test_the_clusters_key_is_no_part_of_what_is_shipped_and_nothing_waits_for_it() -> None:
    (secret,) = [
        volume["secret"]
        for volume in manifests()["DaemonSet"]["spec"]["template"]["spec"]["volumes"]
        if volume["name"] == "fabric"
    ]
    assert secret == {"secretName": "concorde-fabric", "optional": True, "defaultMode": 0o400}
    assert "Secret" not in manifests()


def test_the_plugin_takes_the_configuration() -> None:
    network = json.loads(manifests()["ConfigMap"]["data"]["concorde.conflist"])
    (plugin,) = network["plugins"]
    configuration = Configuration({**plugin, "name": network["name"]})
    assert configuration.enforcement == "pod"


def test_a_version_comes_to_one_node_after_the_other() -> None:
    assert manifests()["DaemonSet"]["spec"]["updateStrategy"] == {"rollingUpdate": {"maxUnavailable": 1}}


def test_uninstalling_changes_the_task_and_lets_it_enter_pods_networks() -> None:
    pod = manifests()["DaemonSet"]["spec"]["template"]["spec"]
    patch = YAML(typ="safe").load(DEPLOY / "uninstall.yaml")
    assert patch["spec"]["updateStrategy"] == {"rollingUpdate": {"maxUnavailable": "100%"}}
    (container,) = patch["spec"]["template"]["spec"]["containers"]
    usual = pod["containers"][0]["securityContext"]["capabilities"]["add"]
    entering = usual if "SYS_ADMIN" in usual else [*usual, "SYS_ADMIN"]
    assert container == {
        "name": pod["containers"][0]["name"],
        "env": [{"name": "TASK", "value": "uninstall"}],
        "securityContext": {"capabilities": {"add": entering}},
    }
    assert {"name": "TASK", "value": "install"} in pod["containers"][0]["env"]


def test_the_clusters_key_reaches_the_agent_when_it_comes_and_goes(node: Installation) -> None:
    left = node.state / "plugin" / "net" / state_files.FABRIC_KEY
    with node.running("install") as look:
        look()
        until(lambda: (node.state / "plugin" / "node" / state_files.AGENT_LOCK).exists())
        assert not left.exists()
        node.key.write_text("0123456789abcdef\n")
        look()
        until(lambda: left.exists() and left.read_text() == "0123456789abcdef")
        node.key.unlink()
        look()
        until(lambda: not left.exists())


def test_where_the_version_before_stays_its_agent_is_at_work_as_it_was(
    node: Installation, built: Path, tmp_path: Path
) -> None:
    node.bring(build(tmp_path, "0.0.1", former_options=True))
    installs(node)
    listed = (node.networks / NAME).read_text()
    node.bring(built)
    node.write(subnetFile="/nowhere/subnet.env")
    lock = node.state / "plugin" / "node" / state_files.AGENT_LOCK
    with node.running("install", NODE_NAME="node-1") as look:
        assert "No such file or directory; the version before stays\n" in look()
        until(lambda: lock.exists() and lock.read_text().strip())  # it is there before it says whose it is
        assert lock.read_text().strip() == "0.0.1"
        assert node.version() == "concorde 0.0.1"
        assert (node.bin / "concorde.before/installed").read_text() == listed
        assert look() == ""  # it goes on: the next look begins no other
        node.write(subnet="10.0.0.0/24")
        assert f"installed: {node.bin}/concorde" in look()
        until(lambda: lock.read_text().strip() != "0.0.1")


def test_the_script_calls_nothing_that_its_image_has_not() -> None:
    begins = r"(?:^|[;|&({]|\b(?:then|do|else|if|while|until)\b|!)[ \t]*([a-z]+)(?= |\)|$)"
    own = {"cd", "echo", "eval", "exec", "exit", "export", "false", "kill", "printf", "read", "return", "set"}
    own |= {"shift", "test", "trap", "true", "unset", "wait"}
    found = {word for word in re.findall(begins, SCRIPT.read_text(), re.MULTILINE) if shutil.which(word)}
    assert {"cat", "cmp", "chmod", "grep", "sleep"} <= found
    assert found - own - images.INSTALLER_TOOLS.keys() == set()


def test_a_key_that_is_too_short_is_refused_in_words_and_the_agent_stays(node: Installation) -> None:
    left = node.state / "plugin" / "net" / state_files.FABRIC_KEY
    node.key.write_text("  0123456789abcde\t \n")
    with node.running("install") as look:
        said = look()
        until(lambda: (node.state / "plugin" / "node" / state_files.AGENT_LOCK).exists())
        assert not left.exists()
        said += look()
    assert "its key must have at least 16 bytes" in said


def test_an_agent_is_at_work_while_the_script_is_and_ends_with_it(node: Installation, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            ["sh", str(SCRIPT)], env=node.environment("install"), stdout=out, stderr=out
        )
    try:
        deadline = time.monotonic() + 60
        while "agent: looks after this node" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        below = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        (agent,) = [pid for pid in below if b"agent" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        process.terminate()
        assert process.wait(60) == 0
        while Path(f"/proc/{agent}/cmdline").exists() and Path(f"/proc/{agent}/cmdline").read_bytes():
            assert time.monotonic() < deadline + 60
            time.sleep(0.05)
    finally:
        process.kill()
