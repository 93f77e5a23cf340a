"""What ``kubectl apply -k edge/deploy/devices`` brings to a real cluster, does there, and leaves behind.

The cluster is the overlapped pair's first. The thesis' gateway is a name in its API: pods for it wait.
"""

from __future__ import annotations

import json
from pathlib import Path

from edge.devices.picture import CONNECTIONS, DEPLOYMENTS, DEVICES, SERVICES
from testbed.resources import version
from testbed.testbed import Testbed
from tests.e2e.conftest import until
from tests.e2e.installed import NEXT, cluster_wide
from tests.e2e.operated import DIRECTORY, Cluster
from tests.thesis import CONNECTION, DEFINITION, DEVICE

GATEWAY = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "kedge1", "labels": {"edge": "true"}}}


def test_the_thesis_manifests_work_through_an_upgrade_and_nothing_is_left(
    pair: Testbed, tmp_path: Path
) -> None:
    before = cluster_wide(pair)
    cluster = Cluster(pair, tmp_path)
    cluster.apply(version())
    cluster.client.apply([GATEWAY])
    # Who is asked has just begun. What is wrong is refused with the field.
    bad = {**DEVICE, "spec": {**DEVICE["spec"], "nodeName": "kedge9"}}
    until(lambda: cluster.applied(bad, "--dry-run=server"), cluster.words, every=0.2)
    assert 'spec.nodeName: Invalid value: "kedge9": there is no node kedge9' in cluster.applied(bad)
    assert "spec.networkName" in cluster.applied(CONNECTION)
    for one in (DEFINITION, DEVICE, CONNECTION):
        assert cluster.applied(one) == ""
    until(lambda: cluster.one(DEPLOYMENTS), cluster.words, every=0.2)
    until(lambda: cluster.ports() == [("TCP", 443)], cluster.words, every=0.2)
    until(lambda: cluster.files() == f"{DIRECTORY}/default/bridge-conf.json\n", cluster.words, every=0.2)
    address = cluster.one(SERVICES)["spec"]["clusterIP"]

    cluster.apply(NEXT)
    more = json.loads(json.dumps(DEVICE))
    more["spec"]["components"][0]["handlers"].append({"protocol": "UDP", "port": 443})
    assert cluster.applied(more) == ""
    until(lambda: cluster.ports() == [("TCP", 443), ("UDP", 443)], cluster.words, every=0.2)
    assert cluster.one(SERVICES)["spec"]["clusterIP"] == address
    until(lambda: cluster.one(CONNECTIONS, "sample-connection").get("status"), cluster.words, every=0.2)

    # While nobody is there, one goes, and the other with its kind.
    scaled = ["scale", cluster.in_space, "deployment", "devices", "--replicas=0"]
    cluster.client.run(*scaled)
    cluster.client.run("delete", "connections", "sample-connection")
    until(lambda: not cluster.one(DEPLOYMENTS) and not cluster.one(SERVICES), every=0.2)
    assert cluster.one(DEVICES, "device01-01")
    cluster.delete()
    until(lambda: cluster_wide(pair) == before, every=0.2)
    assert cluster.client.run("get", "pods", "--output=name").stdout.count("dop-") == 0
    assert cluster.files() == ""
    cluster.client.run("delete", "node", "kedge1")
