"""A network that nobody here has code for, on real Kubernetes: containerd calls its plugin."""

from __future__ import annotations

import pytest

from testbed.access.place import Place
from testbed.scenario import load
from tests.e2e.conftest import SCENARIOS, brought_up
from tests.paths import ROOT

MINE = ROOT / "docs" / "examples" / "network" / "mine.yaml"
RUN = "/run/kubernetes"  # a directory for each cluster there


def processes(node: Place) -> set[str]:
    """The process ids of a node's containerds and kubelets."""
    return set(node.run(["sh", "-c", f"cat {RUN}/*/containerd/pid {RUN}/*/kubelet/pid"]).stdout.split())


@pytest.mark.by_turns
@pytest.mark.usefixtures("untouched_host")
def test_the_plugin_of_the_docs_attaches_pods_and_hears_their_limits() -> None:
    alone = ["containers={}", "disturbances=[]", f"network={MINE}"]
    with brought_up(load(SCENARIOS / "kubernetes.yaml", alone, scale=0.1)) as testbed:
        networks = testbed.networks
        (link,) = networks["A-1"].run(["ip", "-j", "link", "show", "dev", "eth0"]).json()
        assert link["mtu"] == testbed.addressing.pod_mtu("a")
        (bucket,) = networks["A-1"].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
        assert (bucket["kind"], bucket["options"]["rate"]) == ("tbf", 10**8 // 8)  # bytes per second
        (plain,) = networks["A-3"].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
        assert plain["kind"] == "noqueue"
        answered = testbed.pods["A-1"].run(["ping", "-c1", "-W5", testbed.pods["A-4"].address], check=False)
        assert "1 received" in answered.stdout
        assert testbed.check() == []

        node = testbed.nodes["worker-01"]
        before = processes(node)
        restarted = testbed.restart_agents("worker-01")
        after = processes(node)
        assert {one.partition(" ")[0] for one in restarted} >= {"containerd", "kubelet"}
        assert len(before) == len(after) == 2 * len(testbed.scenario.clusters)
        assert not before & after
        (kept,) = networks["A-1"].run(["tc", "-j", "qdisc", "show", "dev", "eth0"]).json()
        assert kept == bucket
        assert testbed.check() == []
