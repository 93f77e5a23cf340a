"""What a cluster's API answers of nodes, configs and pods, as an inventory; what it is asked only reads."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from edge.addresses.books import FIRST_SPEC
from testbed.access.place import Result
from testbed.clusters import questions
from testbed.clusters.addresses import Answers, ask, inventory
from testbed.clusters.kubeconfigs import Access, Outside
from tests.doubles import RecordingNode
from tests.unit.testbed.clusters import api as apis

OURS, VENDOR = (f"/apis/{group}/v1alpha1/clustercidrconfigs" for group in
                ("addresses.contmec.dev", "baremetal.cluster.gke.io"))  # fmt: skip
NODES, PODS, EVENTS = "/api/v1/nodes", "/api/v1/pods", "/api/v1/events"
CHANGED = '{"ipv4":{"cidr":"10.1.0.0/24","perNodeMaskSize":27}}'


def node(name: str, *blocks: str, **labels: str) -> dict[str, Any]:
    spec = {"podCIDR": blocks[0], "podCIDRs": list(blocks)} if blocks else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def config(name: str, cidr: str, mask: int, size: str = "", **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"ipv4": {"cidr": cidr, "perNodeMaskSize": mask}}
    if size:
        spec["nodeSelector"] = {"matchLabels": {"size": size}}
    metadata = {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", **more.pop("metadata", {})}
    return {"metadata": metadata, "spec": spec, **more}


def pod(on: str | None, **spec: Any) -> dict[str, Any]:
    return {"spec": {**({"nodeName": on} if on else {}), **spec}}


class Api(apis.Api):
    """One without events, unless it is said which."""

    def __init__(self, objects: apis.Objects) -> None:
        super().__init__({EVENTS: [], **objects})


def test_nodes_configs_of_both_groups_and_pods_with_addresses_are_read() -> None:
    api = Api(
        {
            NODES: [node("n1", "10.1.0.0/27", size="small"), node("n0", "10.0.0.0/24")],
            OURS: [config("large", "10.0.0.0/22", 24)],
            VENDOR: [config("small", "10.1.0.0/25", 27, "small", metadata={"namespace": "cluster-a"})],
            PODS: [pod("n0"), pod("n0", hostNetwork=True), pod("n1"), pod("n1"), pod(None)],
        }
    )
    found = inventory("a", ask(api.client))
    assert [(row.node, row.config, str(row.blocks[0]), row.pods) for row in found.rows()] == [
        ("n0", "large", "10.0.0.0/24", 1),
        ("n1", "cluster-a/small", "10.1.0.0/27", 2),
    ]
    assert (found.notes, found.waiting) == ([], {})
    assert EVENTS not in "".join(api.paths)  # nobody waits
    (pods,) = (path for path in api.paths if path.startswith(PODS))
    assert parse_qs(urlsplit(pods).query)["fieldSelector"] == ["status.phase!=Succeeded,status.phase!=Failed"]


def test_a_large_cluster_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "PAGE", 2)
    names = [f"n{number}" for number in range(5)]
    api = Api({NODES: [node(name, f"10.0.{name[1]}.0/24") for name in names], PODS: []})
    assert [one.name for one in ask(api.client).nodes] == names
    assert sum(path.startswith(NODES) for path in api.paths) == 3


def test_without_the_kinds_blocks_are_of_no_config_and_a_note_says_so() -> None:
    found = inventory("a", ask(Api({NODES: [node("n0", "10.0.0.0/24")], PODS: []}).client))
    assert [(row.config, str(row.blocks[0])) for row in found.rows()] == [("", "10.0.0.0/24")]
    (note,) = found.notes
    assert "knows no ClusterCIDRConfig, neither of addresses.contmec.dev/v1alpha1 nor of baremetal" in note


def test_a_block_with_host_bits_and_of_one_field_alone_is_read() -> None:
    old = {"metadata": {"name": "n0"}, "spec": {"podCIDR": "10.0.0.1/24"}}
    (found,) = ask(Api({NODES: [old], PODS: []}).client).nodes
    assert [str(block) for block in found.blocks] == ["10.0.0.0/24"]


def test_who_waits_is_told_why_or_that_nobody_gives() -> None:
    said = {"involvedObject": {"name": "n1"}, "message": "the gate", "lastTimestamp": "2026-01-02T00:00:00Z"}
    api = Api(
        {
            NODES: [node("n0", size="x"), node("n1", size="small")],
            OURS: [config("small", "10.1.0.0/25", 27, "small")],
            PODS: [],
            EVENTS: [said, {**said, "message": "before", "lastTimestamp": "2026-01-01T00:00:00Z"}],
        }
    )
    assert inventory("a", ask(api.client)).waiting == {
        "n0": "small is for nodes with size=small: label the node so",
        "n1": "small has one for it that nobody has given: does the controller run? Its last event: the gate",
    }


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"metadata": {"deletionTimestamp": "2026-01-03T00:00:00Z"}}, "small is being deleted"),
        ({"metadata": {"annotations": {FIRST_SPEC: CHANGED}}}, "small its spec was changed"),
    ],
)
def test_a_config_that_gives_nothing_says_so(more: dict[str, Any], why: str) -> None:
    nodes = ask(Api({NODES: [node("n0")], PODS: []}).client).nodes
    found = inventory("a", Answers(nodes, [config("small", "10.1.0.0/25", 27, **more)], ["ours"]))
    assert found.waiting["n0"].startswith(why)
    (note,) = found.notes
    assert note.startswith(why)


def test_where_the_server_keeps_one_family_the_controller_has_found_out() -> None:
    nodes = ask(Api({NODES: [node("n0")], PODS: []}).client).nodes
    told = config("two", "10.1.0.0/25", 27)
    told["spec"]["ipv6"] = {"cidr": "fd00::/121", "perNodeMaskSize": 123}
    assert "does the controller run?" in inventory("a", Answers(nodes, [told], ["ours"])).waiting["n0"]
    told["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "OneFamily"}]}
    assert "IPv6DualStack" in inventory("a", Answers(nodes, [told], ["ours"])).waiting["n0"]


def test_configs_of_one_cluster_agree_as_the_controller_wants_it() -> None:
    nodes = ask(Api({NODES: [node("n0")], PODS: []}).client).nodes
    single = config("single", "10.0.0.0/24", 27, metadata={"creationTimestamp": "2026-01-01T00:00:01Z"})
    both = config("both", "10.1.0.0/25", 27, metadata={"creationTimestamp": "2026-01-01T00:00:00Z"})
    both["spec"]["ipv6"] = {"cidr": "fd00::/121", "perNodeMaskSize": 123}
    (note,) = inventory("a", Answers(nodes, [single, both], ["ours"])).notes
    assert note.startswith("single must have IPv6 too, as both has, which comes first")
    both["status"] = {"conditions": [{"type": "Ready", "status": "False", "reason": "OneFamily"}]}
    (note,) = inventory("a", Answers(nodes, [single, both], ["ours"])).notes
    assert note.startswith("both is for IPv4 and IPv6, and this server keeps one block a node")


@pytest.mark.parametrize("reason", ["Unlike", "Reserved"])
def test_what_the_controller_alone_can_know_it_says_in_the_status(reason: str) -> None:
    nodes = ask(Api({NODES: [node("n0")], PODS: []}).client).nodes
    condition = {"type": "Ready", "status": "False", "reason": reason, "message": "must have another"}
    told = config("all", "10.0.0.0/24", 27, status={"conditions": [condition]})
    found = inventory("a", Answers(nodes, [told], ["ours"]))
    assert found.waiting == {"n0": "all must have another"}
    assert found.notes == ["all must have another"]


@pytest.mark.parametrize(
    ("given", "free", "notes"),
    [
        (1, 2, ["large: its controller has 2 free; what it reserves is free here"]),
        (1, 3, []),
        (0, 2, []),  # it has not heard of the latest yet
    ],
)
def test_what_the_controller_reserves_is_noted(given: int, free: int, notes: list[str]) -> None:
    nodes = ask(Api({NODES: [node("n0", "10.0.0.0/24")], PODS: []}).client).nodes
    told = config("large", "10.0.0.0/22", 24, status={"given": given, "free": free})
    assert inventory("a", Answers(nodes, [told], ["ours"])).notes == notes


def test_of_which_config_a_block_is_its_status_says() -> None:
    """Labels may have changed since."""
    nodes = ask(Api({NODES: [node("n0", "10.0.0.0/24", size="small")], PODS: []}).client).nodes
    status = {"nodes": [{"name": "n0", "blocks": ["10.0.0.0/24"]}]}
    told = [config("best", "10.0.0.0/22", 24, "small"), config("first", "10.0.0.0/20", 24, status=status)]
    assert [row.config for row in inventory("a", Answers(nodes, told, ["ours"])).rows()] == ["first"]
    assert [row.config for row in inventory("a", Answers(nodes, told[:1], ["ours"])).rows()] == ["best"]


def test_a_config_that_cannot_be_used_is_a_note_with_its_field() -> None:
    found = inventory("a", Answers([], [config("bad", "10.0.0.0/22", 31)], ["ours"]))
    assert found.notes == [
        "bad gives nothing: spec.ipv4.perNodeMaskSize: must be an integer from 22, the range's own, to 30"
    ]


@pytest.mark.parametrize("at", [NODES, OURS, PODS])
def test_what_may_not_be_read_is_refused_with_kubeconfig_and_path(at: str) -> None:
    refused = Result(1, "", "warning\nError from server (Forbidden): it is forbidden")
    api = Api({NODES: [], OURS: [], PODS: [], at: refused})
    with pytest.raises(LookupError, match=rf"^--kubeconfig /a.conf: {at}: Error from server \(Forbidden\)"):
        ask(api.client)


def test_events_may_be_hidden() -> None:
    refused = Result(1, "", "Error from server (Forbidden): events is forbidden")
    assert ask(Api({NODES: [node("n0")], PODS: [], EVENTS: refused}).client).events == {}


def test_the_context_is_named_where_one_is_meant() -> None:
    node = RecordingNode("here", lambda _: Result(1, "", ""))
    client = Outside("a", node, "kubectl", "/a.conf", context="second")
    with pytest.raises(LookupError, match=r"/a\.conf@second: /api/v1/nodes: kubectl ended with 1$"):
        ask(client)
    assert "--context=second" in node.commands[0]
    assert client.access == Access.of("/a.conf")._replace(context="second")
