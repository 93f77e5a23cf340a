"""Clusters that exist, as their APIs answer."""

from __future__ import annotations

import json
from typing import Any

from testbed.access.place import Result
from testbed.clusters import kubeconfigs
from testbed.clusters.survey import Answers, Machine
from testbed.enforcements import registry
from testbed.enforcements.enforcement import Enforcement
from testbed.scenario import Scenario, load
from testbed.scenario.addressing import Addressing
from tests.doubles import Asked, RecordingNode, said, shown
from tests.paths import ROOT

PAIR = ["enforcement=node", "underlay.rate=20G"]


def scenario(*overrides: str) -> Scenario:
    return load(ROOT / "scenarios" / "contmec.yaml", [*PAIR, *overrides], scale=0.05)


def enforcement(of: Scenario) -> Enforcement:
    return registry.of(Addressing(of))


def node(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": f"{name}.example"}},
        "spec": {"podCIDR": "10.0.0.0/24", **changes.pop("spec", {})},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "192.0.2.1"}],
            "conditions": [{"type": "Ready", "status": changes.pop("ready", "True")}],
            "nodeInfo": {"bootID": changes.pop("boot_id", name)},
            "allocatable": changes.pop("allocatable", {}),
        },
    }


def configured(**keys: object) -> dict[str, str]:
    plugin = {"type": "concorde", "enforcement": "node", **keys}
    return {"bin-dir": "/opt/cni/bin", "concorde.conflist": json.dumps({"name": "a", "plugins": [plugin]})}


def answers(*nodes: dict[str, Any], **changes: Any) -> dict[str, Answers]:
    own = list(nodes) or [node("worker-01"), node("worker-02")]
    return {name: Answers(own, configured(**changes)) for name in ("a", "b")}


def machine(**changes: Any) -> Machine:
    return Machine.read(node("ip-10-0-0-7", **changes))


def without_options(asked: Asked) -> list[str]:
    """Return what kubectl was asked, without options."""
    return [word for word in asked.argv[1:] if not word.startswith("--")]


class Api(RecordingNode):
    """Answers kubectl about one namespace, and notes what else it is asked."""

    def __init__(self, metadata: dict[str, Any] | None) -> None:
        super().__init__("api")
        self.metadata = metadata

    @property
    def verbs(self) -> list[list[str]]:
        """What it was asked, without options."""
        return [without_options(asked) for asked in self.asked]

    def answer(self, asked: Asked) -> Result:
        words = without_options(asked)
        if words[0] == "create":
            return self._created(asked)
        return shown({"metadata": self.metadata}) if self.metadata and words[0] == "get" else said("")

    def _created(self, asked: Asked) -> Result:
        if self.metadata:
            return Result(1, "", "AlreadyExists")
        raise KeyboardInterrupt

    @property
    def client(self) -> kubeconfigs.Outside:
        return kubeconfigs.Outside("a", self, "kubectl", "a.conf")
