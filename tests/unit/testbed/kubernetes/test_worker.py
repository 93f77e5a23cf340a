"""How a cluster's containerd and kubelet on a worker are configured."""

from __future__ import annotations

import json
import tomllib

import pytest

from testbed.enforcements import registry
from testbed.kubernetes.worker import (
    kubelet_arguments,
    render_containerd,
    render_kubelet,
    render_network,
    reserved_processors,
)
from testbed.scenario.addressing import Addressing
from testbed.supplies import images, versions

OLD, NEW = versions.parse("1.20.2"), versions.parse("1.30.0")


def test_no_flag_is_used_that_a_version_of_the_kubelet_lacks() -> None:
    assert "--container-runtime=remote" in kubelet_arguments(OLD, "/d", "worker-01", "192.168.56.13")
    assert "--container-runtime=remote" not in kubelet_arguments(NEW, "/d", "worker-01", "192.168.56.13")


def test_kubelets_of_one_worker_have_ports_of_their_own() -> None:
    first, second = (
        json.loads(render_kubelet(OLD, "/d", "192.168.56.13", offset, {})) for offset in (0, 10000)
    )
    assert (first["port"], second["port"]) == (10250, 20250)
    assert (first["healthzPort"], second["healthzPort"]) == (10248, 20248)
    assert first["readOnlyPort"] == 0
    gates = {"DevicePlugins": False, "LocalStorageCapacityIsolation": False}
    assert first["featureGates"] == gates
    assert "localStorageCapacityIsolation" not in first
    new = json.loads(render_kubelet(NEW, "/d", "192.168.56.13", 0, {}))
    assert "featureGates" not in new
    assert new["localStorageCapacityIsolation"] is False


@pytest.mark.parametrize(
    ("cpus", "milli"),
    [
        ((None, None), None),
        ((4, 4), (2000, 2000)),
        ((3, 1), (1998, 666)),
        ((0.5, 8), (125, 2000)),
        ((4, None), (2000, 0)),  # it does not say, and so hints have no ratio
        ((3.001, 2), (2000, 1332)),  # as near as thousandths are
    ],
)
def test_a_kubelet_offers_processors_in_the_scenarios_proportion(
    contmec: Addressing, cpus: tuple[float | None, ...], milli: tuple[int, ...] | None
) -> None:
    nodes = dict(contmec.scenario.nodes)
    workers = dict(zip(("worker-01", "worker-02"), cpus, strict=True))
    nodes |= {name: nodes[name].model_copy(update={"cpus": one}) for name, one in workers.items()}
    scenario = contmec.scenario.model_copy(update={"nodes": nodes})
    found = [reserved_processors(scenario, name, processors=2) for name in workers]
    if milli is None:
        assert found == [{}, {}]
        return
    assert [one["systemReserved"]["cpu"] for one in found] == [f"{2000 - one}m" for one in milli]
    kubelet = json.loads(render_kubelet(OLD, "/d", "192.168.56.13", 0, found[0]))
    assert kubelet["enforceNodeAllocatable"] == ["none"]


def test_containerds_configuration_names_the_clusters_plugins_and_networks() -> None:
    configuration = tomllib.loads(
        render_containerd(
            "/run/kubernetes/a/cni/bin", "/run/kubernetes/a/cni/net.d", "/run/kubernetes/a/runc"
        )
    )
    cri = configuration["plugins"]["io.containerd.grpc.v1.cri"]
    assert cri["cni"] == {
        "bin_dir": "/run/kubernetes/a/cni/bin",
        "conf_dir": "/run/kubernetes/a/cni/net.d",
        "max_conf_num": 1,
    }
    assert cri["sandbox_image"] == images.PAUSE


def test_a_runtime_reads_the_same_network_as_is_spoken_to_without_kubernetes(contmec: Addressing) -> None:
    network = registry.of(contmec).network_list("a", "worker-01")
    written = json.loads(render_network(network))
    assert written["cniVersion"] == "1.0.0"
    assert written["name"] == "cluster-a"
    assert written["plugins"] == network.plugins
