"""What kubectl is asked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from testbed.access.local import Local
from testbed.access.place import CommandError
from testbed.enforcements import registry
from testbed.kubernetes import manifests
from testbed.kubernetes.client import ATTEMPTS, TOO_LATE, Client
from testbed.scenario import load
from testbed.scenario.addressing import Addressing
from testbed.supplies import versions
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
KUBECTL = """#!/bin/sh
shift 2
echo "$@" >>"$0.asked"
[ "$1" != wait ] || exec test -e "$0.ready"
[ ! -s "$0.late" ] || { head -n 1 "$0.late" >&2; sed -i 1d "$0.late"; exit 1; }
"""


@pytest.fixture
def client(tmp_path: Path) -> Client:
    kubectl = tmp_path / "kubectl"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    return Client("a", Local(), str(kubectl), "a.conf")


def asked(client: Client) -> Sequence[str]:
    return Path(f"{client.kubectl}.asked").read_text().splitlines()


def test_bandwidth_is_published_to_a_node_that_is_ready(client: Client) -> None:
    Path(f"{client.kubectl}.ready").touch()
    congested = load(SCENARIOS / "congested.yaml", ["enforcement=pod"])
    enforcement = registry.of(Addressing(congested))
    client.publish("worker-01", manifests.publication(enforcement, versions.parse("1.26.0")), 5)
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


def will_say(client: Client, *words: str) -> None:
    Path(f"{client.kubectl}.late").write_text("".join(f"{line}\n" for line in words))


def test_an_api_that_is_late_is_asked_again(client: Client) -> None:
    will_say(client, *(f"{words}: ..." for words in TOO_LATE))
    client.run("get", "nodes")
    assert asked(client) == ["get nodes"] * (len(TOO_LATE) + 1)


def test_an_api_that_stays_late_is_not_asked_for_ever(client: Client) -> None:
    will_say(client, *[f"{TOO_LATE[0]}: ..."] * (ATTEMPTS + 1))
    with pytest.raises(CommandError, match=r"get nodes ended with 1: Error from server \(Timeout\)"):
        client.run("get", "nodes")
    assert asked(client) == ["get nodes"] * ATTEMPTS


def test_what_an_api_refuses_is_not_asked_twice(client: Client) -> None:
    will_say(client, "Error from server (NotFound): ...")
    assert client.run("get", "nodes", check=False).status == 1
    assert asked(client) == ["get nodes"]
