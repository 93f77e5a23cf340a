"""A pod's life as containerd 1.6 has it: its words, their order, and how often it says them.

What it calls was written down from a real one; tests/e2e has the real one itself.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.system.plugin.conftest import GUARANTEE, Node, network
from tests.system.plugin.uplinks import ledger, on_uplink

UNLIMITED = 4_294_967_295  # the burst of one who said nothing of it
LAST_APPLIED = json.dumps({"kind": "Pod", "metadata": {"annotations": {GUARANTEE: "999G"}}}) + "\n"


@pytest.fixture
def node(node: Node) -> Node:
    node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
    node.run("ip", "link", "set", "eth0", "up")
    node.run("ip", "link", "set", "eth0-peer", "up")
    return node


def arguments(pod: str) -> str:
    """CNI_ARGS, in another order at each call: Go has no order in its maps."""
    words = [
        "K8S_POD_NAMESPACE=default",
        f"K8S_POD_NAME={pod}",
        f"K8S_POD_INFRA_CONTAINER_ID={pod}",
        "K8S_POD_UID=6e0b1a9e-3f4e-4a7e-9d68-0c9f6e0a1b2c",
        "IgnoreUnknown=1",
    ]
    random.shuffle(words)
    return ";".join(words)


def configuration(guarantee: str, ceiling: int | None = None) -> dict[str, Any]:
    """What the plugin reads: annotations, and a pod's bandwidth in capitalised keys if it asked for one."""
    found = on_uplink(guarantee, cniVersion="1.0.0")
    annotations = found["runtimeConfig"]["io.kubernetes.cri.pod-annotations"]
    annotations["kubectl.kubernetes.io/last-applied-configuration"] = LAST_APPLIED
    if ceiling is not None:
        found["runtimeConfig"]["bandwidth"] = {
            "IngressRate": 0,
            "IngressBurst": UNLIMITED,
            "EgressRate": ceiling,
            "EgressBurst": UNLIMITED,
        }
    return found


@pytest.mark.parametrize("_order", range(5))
@pytest.mark.long(one_in=5)
def test_the_pod_is_known_whatever_the_order_of_the_arguments(node: Node, _order: int) -> None:
    node.add_pod_namespace("sandbox")
    node.call("ADD", "sandbox", configuration("100M"), arguments=arguments("web"))
    (entry,) = ledger(node)["attachments"]
    assert entry["pod"] == "default/web"


def test_capitalised_keys_are_the_ceiling(node: Node) -> None:
    node.add_pod_namespace("sandbox")
    result = node.call(
        "ADD", "sandbox", configuration("100M", ceiling=200_000_000), arguments=arguments("web")
    )
    assert "code" not in result, result
    shown = node.run("tc", "class", "show", "dev", "eth0", "classid", "c0de:10")
    # Of frames that take 1538 bytes of the wire, for 1464 of the pod's.
    assert "rate 105054Kbit overhead 24 ceil 210109Kbit" in shown


def test_a_pod_is_deleted_five_times(node: Node) -> None:
    """First as it should be, then four times with nothing known, two of them at the same moment."""
    node.add_pod_namespace("sandbox", "other")
    result = node.call("ADD", "sandbox", configuration("100M"), arguments=arguments("web"))
    node.call("ADD", "other", configuration("50M"), arguments=arguments("other"))
    whole = {**configuration("100M"), "prevResult": result}
    assert node.call("DEL", "sandbox", whole, arguments=arguments("web")) == {}
    bare = network(**{key: value for key, value in configuration("").items() if key != "runtimeConfig"})
    for _ in range(2):
        calls = [node.start("DEL", "sandbox", bare, netns="", arguments=arguments("web")) for _ in range(2)]
        assert [(*call.communicate(), call.returncode) for call in calls] == [(b"", b"", 0)] * 2
    assert [entry["pod"] for entry in ledger(node)["attachments"]] == ["default/other"]
    assert [container for container, _ in node.leases("cluster-a")] == ["other"]


def test_a_refused_pod_is_tried_again_in_new_sandboxes_until_there_is_room(node: Node) -> None:
    """Each attempt has its own container id, and ends with the DEL of what was never added."""
    node.add_pod_namespace("first", "try-1", "try-2")
    node.call("ADD", "first", configuration("900M"), arguments=arguments("first"))
    before = ledger(node)["attachments"]
    refused = node.call("ADD", "try-1", configuration("100M"), arguments=arguments("late"))
    assert refused["code"] == 105
    assert refused["cniVersion"] == "1.0.0"
    assert "held by" in refused["msg"]
    assert "\n" not in refused["msg"], "it is one line in the pod's events"
    assert node.call("DEL", "try-1", configuration("100M"), arguments=arguments("late")) == {}
    assert ledger(node)["attachments"] == before
    node.call("DEL", "first", configuration("900M"), arguments=arguments("first"))
    added = node.call("ADD", "try-2", configuration("100M"), arguments=arguments("late"))
    assert "code" not in added, added
    assert [entry["pod"] for entry in ledger(node)["attachments"]] == ["default/late"]
