"""What `kubectl apply -k` applies for each enforcement: rendered by an old and a new kustomize."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from concorde import installation
from concorde.cni import CniError
from concorde.configuration import Configuration
from concorde.enforcements import fabric
from concorde.fabric import keys
from concorde.node import uplinks
from concorde.node.settings import Settings
from ruamel.yaml import YAML

from testbed.supplies import binaries
from tests import debian13
from tests.paths import ROOT

DEPLOY = ROOT / "plugin" / "deploy"
PAGE = ROOT / "docs" / "howto" / "administer.md"
OVERLAYS = ("pod", "node", "fabric", "chain")
CANARY = {"concorde.contmec.dev/canary": "true"}
Rendered = dict[tuple[str, str], Any]


def documents(text: str) -> Rendered:
    """By kind and name, without what an old kustomize writes that says nothing."""
    found = {}
    for document in YAML(typ="safe").load_all(io.StringIO(text)):
        metadata = document["metadata"]
        for key in ("annotations", "labels"):
            if metadata.get(key) == {}:
                del metadata[key]
        found[document["kind"], metadata["name"]] = document
    return found


def rendered(command: list[str], directory: Path) -> Rendered:
    done = subprocess.run([*command, directory], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def plain() -> Rendered:
    """The manifests as `kubectl apply -f` takes them."""
    found = {}
    for file in sorted((DEPLOY / "manifests").glob("*.yaml")):
        found.update(documents(file.read_text()))
    return found


def expected(overlay: str) -> Rendered:
    """The manifests, with the overlay's network in the ConfigMap's place of it."""
    found = plain()
    data = found["ConfigMap", "concorde"]["data"]
    data["concorde.conflist"] = (DEPLOY / "overlays" / overlay / "concorde.conflist").read_text()
    data["chain"] = "true" if overlay == "chain" else "false"
    return found


def hold(command: list[str], tmp_path: Path) -> None:
    """Each overlay is the manifests but for its network, and images are named in one place."""
    assert rendered(command, DEPLOY / "manifests") == plain()
    assert rendered(command, DEPLOY) == expected("pod")
    for overlay in OVERLAYS:
        assert rendered(command, DEPLOY / "overlays" / overlay) == expected(overlay)
    canary = rendered(command, DEPLOY / "canary")
    selector = canary["DaemonSet", "concorde"]["spec"]["template"]["spec"]["nodeSelector"]
    assert selector.pop(next(iter(CANARY))) == "true"
    assert canary == expected("chain")
    mine = shutil.copytree(DEPLOY, tmp_path / "deploy") / "overlays" / "pod"
    with (mine / "kustomization.yaml").open("a") as file:
        file.write("images:\n  - {name: testbed.local/concorde, newName: mine/concorde, newTag: '2'}\n")
    (container,) = rendered(command, mine)["DaemonSet", "concorde"]["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "mine/concorde:2"


def test_by_the_kustomize_of_kubectl(tmp_path: Path) -> None:
    try:
        kubectl = binaries.find().path("kubectl")
    except LookupError as error:
        pytest.skip(str(error))
    hold([str(kubectl), "kustomize"], tmp_path)


@pytest.mark.long(one_in=0)
def test_by_a_kustomize_of_today(tmp_path: Path) -> None:
    kustomize = debian13.program("kustomize", "usr/bin/kustomize", tmp_path)
    hold([str(kustomize), "build"], tmp_path)


def test_the_page_makes_the_secret_that_the_installer_mounts(tmp_path: Path) -> None:
    try:
        kubectl = binaries.find().path("kubectl")
    except LookupError as error:
        pytest.skip(str(error))
    (line,) = re.findall(r"`(kubectl [^`]* create secret [^`]*)`", PAGE.read_text())
    done = subprocess.run(
        ["bash", "-c", f"{line} --dry-run=client --output=json"],
        env={"PATH": f"{kubectl.parent}:/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    secret = json.loads(done.stdout)
    daemons = plain()["DaemonSet", "concorde"]
    (mounted,) = [one for one in daemons["spec"]["template"]["spec"]["volumes"] if one["name"] == "fabric"]
    metadata = secret["metadata"]
    assert (metadata["namespace"], metadata["name"]) == (
        daemons["metadata"]["namespace"],
        mounted["secret"]["secretName"],
    )
    (tmp_path / "key").write_bytes(base64.b64decode(secret["data"]["key"]))
    assert len(keys.read(str(tmp_path / "key"))) == 64


@pytest.mark.parametrize("overlay", ["pod", "node", "fabric"])
def test_the_plugin_takes_each_overlays_network(overlay: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (DEPLOY / "overlays" / overlay / "concorde.conflist").read_text()
    network = json.loads(text)
    (plugin,) = network["plugins"]
    assert plugin["enforcement"] == overlay
    Configuration({**plugin, "name": network["name"]})
    assert "capacity" not in plugin
    if overlay == "fabric":  # nobody but who installs it knows that
        with pytest.raises(CniError, match=r"^fabric\.nodes: must be a list of 1 to 16 networks"):
            fabric.on_uplink(Configuration({**plugin, "name": "net", "uplink": "lo", "capacity": "1G"}))
    if overlay == "node":
        monkeypatch.setattr(uplinks, "mtu", lambda name: 1500)
        monkeypatch.setattr(uplinks, "speed", lambda name: 25 * 10**9)
        # No number of ours throttles a node that is faster.
        assert Settings({**plugin, "uplink": "lo"}).tree.capacity == 25 * 10**9


def test_the_plugin_takes_what_is_to_stand_behind_another_network() -> None:
    behind = json.loads((DEPLOY / "overlays" / "chain" / "concorde.conflist").read_text())
    assert set(behind) == {"plugins"}
    flannels = {"cniVersion": "0.3.1", "name": "cbr0", "plugins": [{"type": "flannel"}]}
    *_, plugin = installation.chained(flannels, behind)["plugins"]
    configuration = Configuration({**plugin, "name": "cbr0"})
    assert configuration.enforcement == "node"
    assert not configuration.names_subnet
    assert plugin["capabilities"] == {"io.kubernetes.cri.pod-annotations": True}


def test_the_overlays_differ_in_nothing_but_their_enforcement() -> None:
    said = [DEPLOY / "overlays" / overlay / "kustomization.yaml" for overlay in ("pod", "node", "fabric")]
    assert len({file.read_text().replace(f"overlays/{file.parent.name}", "") for file in said}) == 1
    default = json.loads(plain()["ConfigMap", "concorde"]["data"]["concorde.conflist"])
    assert json.loads((DEPLOY / "overlays" / "pod" / "concorde.conflist").read_text()) == default
