"""What is decided about clusters that exist, from what their APIs answer."""

from __future__ import annotations

import json
import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.access.place import CommandError, Result
from testbed.clusters import kubeconfigs, manifests, namespaces
from testbed.clusters.survey import Answers, Machine, needed, survey
from testbed.enforcements import registry
from testbed.enforcements.enforcement import Enforcement
from testbed.enforcements.resource import RESOURCE
from testbed.kubernetes.client import ATTEMPTS, TOO_LATE, PodError
from testbed.providers.helpers.provider import HelpersProvider
from testbed.scenario import Scenario, load
from testbed.scenario.addressing import Addressing
from testbed.scenario.rules import render_path
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


def found(wanted: Scenario, given: dict[str, Answers]) -> list[str]:
    _, faults = survey(wanted, enforcement(wanted), given)
    return [f"{render_path(path)}: {message}" for path, message in faults]


def real(wanted: Scenario, given: dict[str, Answers]) -> dict[tuple[str, str], str]:
    ground, faults = survey(wanted, enforcement(wanted), given)
    assert faults == []
    return {key: machine.name for key, machine in ground.machines.items()}


def test_nodes_of_the_same_names_are_the_scenarios() -> None:
    given = answers(node("worker-02"), node("another"), node("worker-01"))
    assert real(scenario(), given) == {
        (cluster, name): name for cluster in ("a", "b") for name in ("worker-01", "worker-02")
    }


def test_others_are_taken_in_order_and_usable_ones_only() -> None:
    taint = {"taints": [{"key": "node-role.kubernetes.io/master", "effect": "NoSchedule"}]}
    given = answers(node("c"), node("a", spec=taint), node("d"), node("b", ready="False"))
    assert real(scenario(), given) == {
        ("a", "worker-01"): "c", ("b", "worker-01"): "c", ("a", "worker-02"): "d", ("b", "worker-02"): "d"
    }  # fmt: skip


def test_a_stated_name_goes_before_all() -> None:
    given = answers(node("ip-10-0-0-7"), node("worker-01"), node("worker-02"))
    assert real(scenario("nodes.worker-01.name=ip-10-0-0-7"), given)["a", "worker-01"] == "ip-10-0-0-7"


def test_masters_need_not_be_known() -> None:
    assert list(needed(scenario())) == ["worker-01", "worker-02"]


@pytest.mark.parametrize(
    ("overrides", "given", "fault"),
    [
        (
            ["nodes.worker-01.name=x"],
            answers(),
            "nodes.worker-01.name: cluster 'a' has no node 'x' (nodes: worker-01, worker-02)",
        ),
        (
            ["nodes.worker-01.name=worker-02"],
            answers(),
            "nodes.worker-02.name: worker-02 is 'worker-01' already",
        ),
        (
            [],
            answers(node("one")),
            "nodes.worker-02: no node is left for it that pods can run on and that clusters a and b share "
            "(nodes: a: one; b: one)",
        ),
        (
            [],
            answers(node("worker-01", spec={"unschedulable": True}), node("worker-02")),
            "nodes.worker-01: node 'worker-01' of cluster 'a' is cordoned",
        ),
        (
            [],
            {
                "a": answers()["a"],
                "b": Answers([node("worker-01", boot_id="x"), node("worker-02")], configured()),
            },
            "nodes.worker-01: 'worker-01' is one machine in cluster 'a' and another in 'b'",
        ),
        (
            [],
            answers(enforcement="pod"),
            "enforcement: node, but ConfigMap concorde in namespace concorde of cluster 'a' says pod; "
            "run with --set enforcement=pod, or change it",
        ),
        (
            ["count=payload"],
            answers(),
            "count: payload, but ConfigMap concorde in namespace concorde of cluster 'a' says layer2; "
            "run with --set count=layer2, or change it",
        ),
        (
            [],
            {name: Answers([node("worker-01"), node("worker-02")], {}) for name in ("a", "b")},
            "enforcement: node needs the plugin on the nodes, and there is no ConfigMap concorde in "
            "namespace concorde of cluster 'a': install it (docs/deploy.md)",
        ),
    ],
)
def test_what_speaks_against_a_run_is_named(
    overrides: list[str], given: dict[str, Answers], fault: str
) -> None:
    assert fault in found(scenario(*overrides), given)


def test_without_guarantees_no_plugin_is_needed() -> None:
    given = {name: Answers([node("worker-01"), node("worker-02")], {}) for name in ("a", "b")}
    assert found(scenario("enforcement=none"), given) == []


def test_kubeconfigs_go_by_name_or_by_order(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.touch()
    second.touch()
    assert kubeconfigs.files(scenario(), f"{first},{second}") == {"a": first, "b": second}
    assert kubeconfigs.files(scenario(), f"b={first},a={second}") == {"a": second, "b": first}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("{file}", "none for b; scenario 'contmec' has the clusters a, b"),
        ("{file},{file},{file}", "no cluster 'number 3' (clusters: a, b)"),
        ("c={file}", "no cluster 'c' (clusters: a, b)"),
        ("{file},a={file}", "cluster 'a' has one already"),
        ("/nowhere,{file}", "/nowhere: no such file"),
    ],
)
def test_a_wrong_kubeconfig_is_named(tmp_path: Path, given: str, words: str) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LookupError) as raised:
        kubeconfigs.files(scenario(), given.format(file=file))
    assert words in str(raised.value)


def machine(**changes: Any) -> Machine:
    return Machine.read(node("ip-10-0-0-7", **changes))


def test_a_pod_is_the_scenarios_and_ends_by_itself() -> None:
    made = manifests.pod(scenario(), enforcement(scenario()), "A-1", machine(), "example/iperf3:1", 100)
    assert made["metadata"]["namespace"] == kubeconfigs.NAMESPACE
    assert made["metadata"]["labels"] == manifests.LABEL
    assert made["metadata"]["annotations"] == {"concorde.contmec.dev/egress-guarantee": "50M"}
    spec = made["spec"]
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "ip-10-0-0-7.example"}
    assert spec["activeDeadlineSeconds"] == 100
    assert "hostNetwork" not in spec
    (container,) = spec["containers"]
    assert container["image"] == "example/iperf3:1"
    assert "resources" not in container


def test_a_pod_asks_for_bandwidth_where_that_is_published() -> None:
    made = manifests.pod(
        scenario(), enforcement(scenario()), "A-1", machine(allocatable={RESOURCE: "1"}), "image", 100
    )
    assert made["spec"]["containers"][0]["resources"] == {"limits": {RESOURCE: "50000000"}}


def test_what_a_kubelet_has_set_to_zero_is_not_published() -> None:
    made = manifests.pod(
        scenario(), enforcement(scenario()), "A-1", machine(allocatable={RESOURCE: "0"}), "image", 100
    )
    assert "resources" not in made["spec"]["containers"][0]


def test_a_container_is_in_its_nodes_network_and_promised_nothing() -> None:
    made = manifests.container("container-1", machine(), "image", 100)
    assert made["spec"]["hostNetwork"] is True
    assert made["metadata"]["annotations"] == {}
    assert "privileged" not in json.dumps(made)


def test_only_helpers_are_privileged_and_are_where_they_must_be() -> None:
    made = manifests.helper("worker-01", machine(), "image", 100)
    assert made["spec"]["nodeName"] == "ip-10-0-0-7"
    assert made["spec"]["containers"][0]["securityContext"] == {"privileged": True}


def test_a_run_that_goes_on_is_not_left_behind() -> None:
    assert not namespaces.left_behind(namespaces.owner(100), datetime.now(UTC))


def test_a_process_that_ended_here_left_something_behind() -> None:
    who = {
        manifests.OWNER: f"me@{socket.gethostname()} {os.getpid()}-1",
        manifests.UNTIL: "2999-01-01T00:00:00Z",
    }
    assert namespaces.left_behind(who, datetime.now(UTC))


def test_elsewhere_only_time_tells() -> None:
    who = {**namespaces.owner(100), manifests.OWNER: "me@elsewhere 1-1"}
    assert not namespaces.left_behind(who, datetime.now(UTC))
    assert namespaces.left_behind(who, datetime.now(UTC) + timedelta(seconds=101))


def _words(asked: Asked) -> list[str]:
    return [word for word in asked.argv[1:] if not word.startswith("--")]


class Api(RecordingNode):
    """Answers kubectl about one namespace, and notes what else it is asked."""

    def __init__(self, metadata: dict[str, Any] | None) -> None:
        super().__init__("api")
        self.metadata = metadata

    @property
    def verbs(self) -> list[list[str]]:
        """What it was asked, without options."""
        return [_words(asked) for asked in self.asked]

    def answer(self, asked: Asked) -> Result:
        words = _words(asked)
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


def test_nothing_is_removed_where_nothing_was_left() -> None:
    api = Api(None)
    namespaces.remove_leftovers(api.client)
    assert api.verbs == [["get", "namespace", kubeconfigs.NAMESPACE]]


def test_what_was_left_behind_is_removed() -> None:
    past = {manifests.UNTIL: "2020-01-01T00:00:00+00:00"}
    api = Api({"labels": manifests.LABEL, "annotations": past})
    namespaces.remove_leftovers(api.client)
    assert api.verbs[-1] == ["delete", "namespace", kubeconfigs.NAMESPACE]


@pytest.mark.parametrize(
    ("labels", "words"),
    [({}, "a namespace concorde-bench that is not ours"), (manifests.LABEL, "is under way, until")],
)
def test_what_is_not_left_behind_stays(labels: dict[str, str], words: str) -> None:
    api = Api({"labels": labels, "annotations": namespaces.owner(100)})
    with pytest.raises(LookupError, match=words):
        namespaces.remove_leftovers(api.client)
    assert [asked[0] for asked in api.verbs] == ["get"]


class Stuck(Api):
    """Its namespace stays, because of a pod."""

    def answer(self, asked: Asked) -> Result:
        words = _words(asked)
        message = "Some resources are remaining: pods. has 1 resource instances"
        event = {"involvedObject": {"name": "a-1"}, "message": "error killing pod: not found"}
        answers: dict[str, Any] = {
            "namespace": {"status": {"conditions": [{"status": "True", "message": message}]}},
            "pods": {"items": [{"metadata": {"name": "a-1"}}]},
            "events": {"items": [event]},
        }
        if words[0] == "delete":
            return Result(1, "", "warning\nerror: timed out waiting for the condition\n")
        return shown(answers[words[1]])


def test_it_is_said_what_keeps_a_namespace() -> None:
    with pytest.raises(PodError) as raised:
        namespaces.remove(Stuck(None).client)
    assert str(raised.value) == (
        "cluster a: namespace concorde-bench cannot be removed: error: timed out waiting for the condition; "
        "Some resources are remaining: pods. has 1 resource instances; pod a-1: error killing pod: not found"
    )


class Late(Api):
    """Says of some deletions, or of all, that they took too long."""

    def __init__(self, times: int) -> None:
        super().__init__(None)
        self._times = times

    def answer(self, asked: Asked) -> Result:
        if _words(asked)[0] != "delete" or self._times == 0:
            return super().answer(asked)
        self._times -= 1
        return Result(1, "", f"{TOO_LATE[0]}: the server was unable to return a response in time\n")


def test_an_api_that_is_late_is_asked_for_a_removal_again() -> None:
    api = Late(2)
    namespaces.remove(api.client)
    pods, namespace = ["delete", "pods"], ["delete", "namespace", kubeconfigs.NAMESPACE]
    assert api.verbs == [pods, pods, pods, namespace]


def test_an_api_that_stays_late_is_not_asked_for_ever() -> None:
    api = Late(1000)
    with pytest.raises(PodError, match=r"cannot be removed: Error from server \(Timeout\)"):
        namespaces.remove(api.client)
    assert api.verbs.count(["delete", "pods"]) == ATTEMPTS


class LateMaker(Api):
    """Makes the namespace, says that it had no time, and then that there is one."""

    def _created(self, asked: Asked) -> Result:
        if self.metadata:
            return super()._created(asked)
        self.metadata = json.loads(asked.stdin)["metadata"]
        return Result(1, "", f"{TOO_LATE[0]}: the server was unable to return a response in time\n")


def test_a_namespace_that_an_api_made_too_late_is_ones_own() -> None:
    api = LateMaker(None)
    claimed = namespaces.Namespaces([api.client], 100)
    claimed.claim()
    words = [asked[0] for asked in api.verbs]
    assert words == ["get", "create", "create", "get", "apply"]
    claimed.remove()
    assert api.verbs[-1] == ["delete", "namespace", kubeconfigs.NAMESPACE]


@pytest.mark.parametrize(
    ("there", "removed"),
    [
        ({"labels": manifests.LABEL, "annotations": {manifests.UNTIL: "2020-01-01T00:00:00+00:00"}}, False),
        (None, True),
    ],
)
def test_only_ones_own_namespace_is_removed(there: dict[str, Any] | None, removed: bool) -> None:
    """Another run was faster, or Ctrl-C came while the namespace was made."""
    api = Api(there)
    ground, _ = survey(scenario(), enforcement(scenario()), answers())
    nodes = HelpersProvider(scenario(), ground, {"a": api.client}, "image")
    with pytest.raises((CommandError, KeyboardInterrupt)):
        nodes.up()
    api.asked.clear()
    nodes.down()
    assert ["delete", "namespace", kubeconfigs.NAMESPACE] in api.verbs if removed else api.verbs == []
