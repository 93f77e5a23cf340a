"""What kubectl is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.existing.here import Here
from testbed.kubernetes import manifests, versions
from testbed.kubernetes.client import Client
from testbed.nodes import CommandError
from testbed.scenario import load

SCENARIOS = Path(__file__).parents[4] / "scenarios"
KUBECTL = """#!/bin/sh
shift 2
echo "$@" >>"$0.asked"
[ "$1" != wait ] || exec test -e "$0.ready"
"""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    return Client("a", Here(), str(kubectl), "a.conf")


def asked(client: Client) -> Sequence[str]:
    return Path(f"{client.kubectl}.asked").read_text().splitlines()


def test_bandwidth_is_published_to_a_node_that_is_ready(client: Client) -> None:
    Path(f"{client.kubectl}.ready").touch()
    congested = load(SCENARIOS / "congested.yaml", ["enforcement=pod"])
    client.publish("worker-01", manifests.publication(congested, versions.parse("1.26.0")), 5)
    status = (
        '{"status": {"capacity": {"concorde.contmec.dev/egress": "9000000000"}, '
        '"allocatable": {"concorde.contmec.dev/egress": "9000000000"}}}'
    )
    assert asked(client) == [
        "wait --for=condition=Ready --timeout=5s node/worker-01",
        f"patch node worker-01 --subresource=status --type=merge --patch={status}",
    ]


def test_nothing_is_published_to_a_node_whose_kubelet_may_still_take_it_out(client: Client) -> None:
    with pytest.raises(CommandError):
        client.publish("worker-01", {}, 5)
    assert len(asked(client)) == 1
