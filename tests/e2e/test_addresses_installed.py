"""What ``kubectl apply -k edge/deploy/addresses`` brings to a real cluster, does there, and leaves behind.

The cluster is the overlapped pair's first. Its nodes have their blocks; those here are names in its API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from edge.addresses import kinds
from testbed import resources
from testbed.access.place import in_parallel
from testbed.resources import version
from testbed.supplies import addresses
from testbed.testbed import Testbed
from tests.e2e.conftest import PATIENCE_SECONDS, until
from tests.e2e.installed import NEXT, Installed, cluster_wide
from tests.manifests import FILES, GONE, another, documents

DEPLOY = resources.EDGE / "deploy" / "addresses"
# What the files have not: requirements of expressions and fields. It applies like them.
WITH_TERMS = """
apiVersion: baremetal.cluster.gke.io/v1alpha1
kind: ClusterCIDRConfig
metadata: {name: terms, namespace: cluster-edge}
spec:
  ipv4: {cidr: 10.63.0.0/16, perNodeMaskSize: 24}
  nodeSelector:
    nodeSelectorTerms:
      - matchExpressions: [{key: size, operator: In, values: [large]}, {key: gpu, operator: Exists}]
      - matchFields: [{key: metadata.name, operator: In, values: [worker-04]}]
"""
# What is refused, by the field that the refusal names: of which file, and what of it is another.
TERMS = "nodeSelector.nodeSelectorTerms"
REFUSED: dict[str, list[tuple[str, str, object]]] = {
    "spec.ipv4.cidr": [
        ("whole-cluster", "ipv4.cidr", "10.60.0.0"),
        ("whole-cluster", "ipv4.cidr", "10.60.256.0/16"),
        ("by-pool-and-node", "ipv4.cidr", "10.61.4.0/33"),
        ("dual-stack", "ipv4.cidr", "fd62::/112"),
        ("whole-cluster", "ipv4.cidr", 16),
        ("by-pool-and-node", "ipv4.cidr", GONE),
    ],
    "spec.ipv4.perNodeMaskSize": [
        ("whole-cluster", "ipv4.perNodeMaskSize", 31),
        ("by-pool-and-node", "ipv4.perNodeMaskSize", 7),
        ("dual-stack", "ipv4.perNodeMaskSize", "24"),
        ("by-pool-and-node", "ipv4.perNodeMaskSize", 28.5),
        ("whole-cluster", "ipv4.perNodeMaskSize", GONE),
    ],
    "spec.ipv6.cidr": [
        ("dual-stack", "ipv6.cidr", "10.62.0.0/16"),
        ("dual-stack", "ipv6.cidr", "fd62::/129"),
        ("dual-stack", "ipv6.cidr", GONE),
    ],
    "spec.ipv6.perNodeMaskSize": [("dual-stack", "ipv6.perNodeMaskSize", 127)],
    # neither family, not a family
    "spec.ipv4": [("whole-cluster", "ipv4", GONE), ("by-pool-and-node", "ipv4", "10.61.4.0/25")],
    "spec.nodeSelector.matchLabels.size": [("by-pool-and-node", "nodeSelector.matchLabels.size", 5)],
    "spec.nodeSelector.nodeSelectorTerms.matchExpressions.operator": [
        ("by-pool-and-node", TERMS, [{"matchExpressions": [{"key": "size", "operator": "Near"}]}]),
    ],
    "spec.nodeSelector.nodeSelectorTerms.matchExpressions.key": [
        ("by-pool-and-node", TERMS, [{"matchExpressions": [{"operator": "Exists"}]}]),
    ],
    "spec.nodeSelector.nodeSelectorTerms.matchFields.key": [
        (
            "by-pool-and-node",
            TERMS,
            [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]}],
        ),
    ],
    "spec": [("whole-cluster", "", GONE)],
}
KIOSK = {"baremetal.cluster.gke.io/node-pool": "kiosks"}
STATIONS = "cluster-edge"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STATIONS}}
CONFIGS = "clustercidrconfigs.baremetal.cluster.gke.io"
IN_SPACE = "--namespace=concorde-addresses"
# What an administrator of this cluster says besides: where the API is, to which no kube-proxy leads, and who
# has the image.
CLUSTER = """
apiVersion: apps/v1
kind: Deployment
metadata: {{name: addresses, namespace: concorde-addresses}}
spec:
  template:
    spec:
      nodeSelector: {{kubernetes.io/hostname: {worker}}}
      containers:
        - name: addresses
          env:
            - {{name: KUBERNETES_SERVICE_HOST, value: "{host}"}}
            - {{name: KUBERNETES_SERVICE_PORT, value: "{port}"}}
"""


class Cluster(Installed):
    """The API of a cluster in which the controllers are installed."""

    def __init__(self, pair: Testbed, directory: Path) -> None:
        super().__init__(pair, directory, "addresses", addresses.provide(), CLUSTER)

    def leave(self) -> None:
        """Take finalizers away, as is said where that is done."""
        patch = (DEPLOY / "uninstall.yaml").read_text()
        self.client.run("patch", IN_SPACE, "deployment", "addresses", "--type=json", f"--patch={patch}")
        self.rolled_out()

    def block(self, node: str) -> str:
        return str(self.client.get("node", node)["spec"].get("podCIDR", ""))

    def joined(self, node: str) -> str:
        """Have a node that is a kiosk, and return its block."""
        made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": KIOSK}}
        self.client.apply([made])
        until(lambda: self.block(node), lambda: self.words(), every=0.1)
        return self.block(node)


@pytest.fixture(scope="module")
def before(pair: Testbed) -> set[str]:
    return cluster_wide(pair)


@pytest.fixture(scope="module")
def cluster(pair: Testbed, before: set[str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster in which it is installed; it is as before when the last test is over."""
    del before
    cluster = Cluster(pair, tmp_path_factory.mktemp("administrator"))
    try:
        cluster.apply(version())
        cluster.client.apply([NAMESPACE])
        yield cluster
    finally:
        cluster.client.run("delete", "node", "--selector=baremetal.cluster.gke.io/node-pool")


def documents_in(text: str) -> list[dict[str, Any]]:
    return [dict(one) for one in YAML(typ="safe").load_all(text)]


def test_the_vendors_manifests_apply_as_they_are(cluster: Cluster) -> None:
    wanted = [*documents_in(WITH_TERMS), *(one for file in FILES for one in documents(file))]
    files = [f"--filename={file}" for file in FILES.values()]
    cluster.client.run("apply", *files, "--filename=-", stdin=WITH_TERMS)  # validated by kubectl, too
    shown = cluster.client.get(CONFIGS, f"--namespace={STATIONS}")
    assert {one["metadata"]["name"]: one["spec"] for one in shown["items"]} == {
        one["metadata"]["name"]: one["spec"] for one in wanted
    }
    assert all(kinds.parse(one) for one in shown["items"])
    cluster.client.run("delete", *files, "--filename=-", stdin=WITH_TERMS)


def test_what_the_schema_can_refuse_is_refused_with_the_field(cluster: Cluster) -> None:
    """In one group: the other's schema is the same."""
    cases = {
        f"bad-{number:02}": (field, another(*one))
        for number, (field, one) in enumerate((field, one) for field, ones in REFUSED.items() for one in ones)
    }
    items = [
        {**changed, "apiVersion": kinds.OURS, "metadata": {"name": name}}
        for name, (_, changed) in cases.items()
    ]

    def refusals(part: list[dict[str, Any]]) -> list[str]:
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": part})
        done = cluster.client.run("create", "--validate=false", "--filename=-", stdin=text, check=False)
        assert done.stdout == ""
        return done.stderr.splitlines()

    # One kubectl asks ten at once, and then five a second.
    parts = in_parallel(refusals, [items[:10], items[10:20], items[20:]])
    said = {line.partition(" is invalid: ")[0].split('"')[-2]: line for part in parts for line in part}
    assert set(said) == set(cases)
    for name, line in said.items():
        field, changed = cases[name]
        assert re.search(rf"[ \[]{re.escape(field)}: ", line), (changed, line)


# What the schema lets through, by what kubectl shows: of which file, and what of it is another.
WRONG: dict[str, tuple[str, str, object]] = {
    'spec.ipv4.cidr: Invalid value: "10.60.0.1/16": has host bits set': (
        "whole-cluster", "ipv4.cidr", "10.60.0.1/16"
    ),
    "spec.ipv4.perNodeMaskSize: Invalid value: 12: must be an integer from 16": (
        "whole-cluster", "ipv4.perNodeMaskSize", 12
    ),
    "spec.ipv6.perNodeMaskSize: Invalid value: 121: must be 120": (
        "dual-stack", "ipv6.perNodeMaskSize", 121
    ),
    "10.96.0.0/16 has no block outside 10.96.0.0/12": ("whole-cluster", "ipv4.cidr", "10.96.0.0/16"),
}  # fmt: skip


def test_what_the_schema_cannot_refuse_the_webhook_does_with_the_field(cluster: Cluster) -> None:
    """By a Service, to which no kube-proxy leads, and in the vendor's group, which is asked about alike."""

    def applied(config: dict[str, Any], *options: str) -> str:
        text = json.dumps(config)
        return cluster.client.run("apply", "--filename=-", *options, stdin=text, check=False).stderr

    first = another(*next(iter(WRONG.values())))
    until(lambda: applied(first, "--dry-run=server"), cluster.words, every=0.2)  # who is asked has just begun
    for words, wrong in WRONG.items():
        told = applied(another(*wrong))
        assert re.match(r'The ClusterCIDRConfig "[a-z-]*" is invalid: spec', told), told
        assert words in told
    (good,) = documents("whole-cluster")
    assert applied(good) == ""
    told = applied(another("whole-cluster", "ipv4.perNodeMaskSize", 27))
    assert "spec.ipv4.perNodeMaskSize: Invalid value: 27: field is immutable" in told
    cluster.client.run("delete", "--filename=-", stdin=json.dumps(good))


def test_the_controllers_account_may_do_what_it_does_and_nothing_else(cluster: Cluster) -> None:
    def rules(account: str, namespace: str) -> set[str]:
        """What an account may in a namespace."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectRulesReview",
            "spec": {"namespace": namespace},
        }
        who = f"--as=system:serviceaccount:concorde-addresses:{account}"
        done = cluster.client.run("create", who, "--filename=-", "--output=json", stdin=json.dumps(review))
        status = done.json()["status"]
        assert not status["incomplete"]
        both = (*status["resourceRules"], *status["nonResourceRules"])
        return {json.dumps(one, sort_keys=True) for one in both}

    def granted(kind: str) -> set[str]:
        texts = [file.read_text() for file in (DEPLOY / "manifests").iterdir()]
        (role,) = [one for text in texts for one in documents_in(text) if one["kind"] == kind]
        return {json.dumps(rule, sort_keys=True) for rule in role["rules"]}

    own, others = "concorde-addresses", "kube-system"
    asked = [(account, space) for account in ("addresses", "default") for space in (own, others)]
    mine, elsewhere, anybodys, anybodys_elsewhere = in_parallel(lambda one: rules(*one), asked)
    assert mine - anybodys == granted("ClusterRole") | granted("Role")
    assert elsewhere - anybodys_elsewhere == granted("ClusterRole")


@pytest.mark.parametrize("first", ["leave", pytest.param("delete", marks=pytest.mark.long(one_in=0))])
def test_nodes_get_blocks_go_on_through_an_upgrade_and_nothing_is_left(
    pair: Testbed, cluster: Cluster, before: set[str], first: str
) -> None:
    client = cluster.client
    cluster.apply(version())
    client.apply([NAMESPACE])
    client.apply(documents("by-pool-and-node")[:1])
    assert cluster.joined("kiosk-1") == "10.61.4.0/28"

    cluster.apply(NEXT)
    running = [
        pod for pod in client.get("pods", IN_SPACE)["items"] if "deletionTimestamp" not in pod["metadata"]
    ]
    assert [pod["spec"]["containers"][0]["image"].rpartition(":")[2] for pod in running] == [NEXT, NEXT]
    assert cluster.joined("kiosk-2") == "10.61.4.16/28"

    client.run("delete", "namespace", STATIONS, "--wait=false")
    # The namespace would do so some seconds later.
    client.run("delete", CONFIGS, f"--namespace={STATIONS}", "kiosks", "--wait=false")
    if first == "delete":
        cluster.delete("--wait=false")
        client.run("wait", "--for=delete", "namespace/concorde-addresses", timeout=PATIENCE_SECONDS)
        kind = client.get("customresourcedefinition", CONFIGS)
        assert "deletionTimestamp" in kind["metadata"]  # and there it would stay
        cluster.apply(NEXT)
    # For it has nodes.
    assert "deletionTimestamp" in client.get(CONFIGS, f"--namespace={STATIONS}", "kiosks")["metadata"]
    cluster.leave()
    cluster.delete()
    until(lambda: cluster_wide(pair) == before, every=0.2)
    node = client.get("node", "kiosk-1")
    assert node["spec"]["podCIDR"] == "10.61.4.0/28"
    assert "finalizers" not in node["metadata"]
    client.run("delete", "node", "kiosk-1", "kiosk-2")
