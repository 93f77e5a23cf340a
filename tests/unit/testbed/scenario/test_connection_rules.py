"""What a scenario says of connections: what is refused, what is made for them, and what is promised."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from testbed import assembly
from testbed.enforcements import registry
from testbed.runtime import proxies
from testbed.scenario import Scenario, ScenarioError, connections, load, parse, render_yaml, services
from testbed.scenario.addressing import Addressing
from testbed.supplies import packages
from tests import effort
from tests.paths import ROOT

DEVICES = ROOT / "scenarios" / "examples" / "devices.yaml"
CAM = "connections.cam"
LONG = "a" * 60
WAY = "{cluster: a, device: camera, components: [video]}"
TO_CAM = "{from: A-1, to: cam, duration: 5"
B = "clusters.b={master: master-01, workers: [worker-01], pod_cidr: 172.20.0.0/16, flannel: {vni: 2}}"
FAULTS = {
    f"{CAM}.cluster=b": f"{CAM}.cluster: no cluster 'b' (clusters: a)",
    f"{CAM}.device=cam": f"{CAM}.device: no device 'cam' (devices: camera, press, door)",
    f"{CAM}.components=[video, lens]": f"{CAM}.components[1]: no component 'lens' (components: video, "
    "settings)",
    f"{CAM}.components=[video, video]": f"{CAM}.components[1]: 'video' is named twice in this connection",
    f"{CAM}.components=[]": f"{CAM}.components: ",
    f"{CAM}.mode=forward": f"{CAM}.mode: input should be 'translate' or 'relay'",
    f"{CAM}.replicas=0": f"{CAM}.replicas: ",
    f"{CAM}.replicas=2": f"{CAM}.replicas: must be at most 1: each is on another gateway, and cluster "
    "'a' has 1 of "
    "'plant' (worker-02)",
    f"connections.{LONG}={WAY}": f"connections.{LONG}: a connection's name has at most 59 characters",
    f"connections.a-1={WAY}": "connections.a-1: the name is taken by pods.A-1",
    "services={cam: {cluster: a, pods: [A-1]}}": f"{CAM}: the name is taken by services.cam",
    "services={dop-cam: {cluster: a, pods: [A-1]}}": f"{CAM}: dop-cam is made for it, which is the name of "
    "services.dop-cam: choose another",
    "pods.dop-cam-1={cluster: a, node: worker-01}": f"{CAM}: dop-cam-1 is made for it, which is the "
    "name of pods.",
    f"{CAM}.guarantee.toDevice=200M": f"{CAM}.guarantee.toDevice: 200M does not fit 100M of segment "
    "'plant' at "
    "'worker-02': promise less",
    "connections.two={cluster: a, device: press, components: [control], guarantee: {toDevice: 81M}}": ""
    "connections.two.guarantee.toDevice: 81M does not fit 100M of segment 'plant' at 'worker-02' beside the "
    "others', which leave 80M: promise less",
    f"{CAM}.guarantee.fromDevice=2G": f"{CAM}.guarantee.fromDevice: 2G is more than the 1G of the link of "
    "'worker-02': promise less",
    f"{CAM}.guarantee.toDevice=10": f"{CAM}.guarantee.toDevice: 10 is less than 1k bits per second",
    "enforcement=bandwidth": f"{CAM}.guarantee.toDevice: network bandwidth keeps no promises on links "
    "of segments",
    "enforcement=macvlan": "connections: network macvlan gives pods addresses of the underlay",
    "segments.plant.nodes={worker-02: proxies0}": "segments.plant.nodes.worker-02: proxies0 is a name "
    "of interfaces",
    "clusters.a.pod_cidr=100.64.0.0/10": f"{CAM}: no /24 of 100.64.0.0/10 is free for its proxy pods at "
    "segment",
    "flows[0].to=camera": "flows[0].to: no pod or connection 'camera' (pods or connections: A-1, A-2, cam)",
    "flows[0].component=video": "flows[0].component: only devices have components, and 'A-2' is no "
    "connection to "
    "one (connections: cam)",
    f"flows[0]={TO_CAM}, component: lock}}": "flows[0].component: no component 'lock' (components: "
    "video, settings)",
    f"flows[0]={TO_CAM}, component: settings, protocol: udp, rate: 1M}}": "flows[0].to: component 'settings' "
    "has no UDP port: name a",
    f"flows[0]={TO_CAM}, protocol: udp, rate: 1M}}": "flows[0].protocol: a flow by UDP needs TCP at "
    "port 5004, too, "
    "which connection 'cam' has not: add it to the device, or take requests",
    f"flows=[{TO_CAM}}}, {{from: A-2, to: cam}}]": "flows[1].to: flows[0] is sent to port 8554 of "
    "'camera' already: "
    "choose another component",
}


def read(*overrides: str, scale: float = 1.0) -> Scenario:
    return load(DEVICES, overrides, scale)


@pytest.mark.parametrize("override", FAULTS)
def test_what_contradicts_itself_is_refused_with_its_place(override: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(override)
    assert f"devices.yaml: {FAULTS[override]}" in str(caught.value)


def test_a_gateway_is_a_worker_of_the_connections_cluster() -> None:
    with pytest.raises(ScenarioError) as caught:
        read(B, f"{CAM}.cluster=b")
    assert (
        f"{CAM}.cluster: no gateway of segment 'plant', where 'camera' is, is a worker of cluster 'b' "
        "(gateways: worker-02; workers: worker-01)"
    ) in str(caught.value)


def test_who_asks_is_a_pod_of_the_connections_cluster() -> None:
    with pytest.raises(ScenarioError) as caught:
        read(B, "pods.B-1={cluster: b, node: worker-01}", "requests=[{from: B-1, to: cam, rate: 1}]")
    assert "requests[0].to: 'cam' is in cluster 'a', 'B-1' in 'b'" in str(caught.value)


def test_only_links_of_a_known_rate_are_shared_out() -> None:
    with pytest.raises(ScenarioError) as caught:
        read("enforcement=node", "segments.plant={cidr: 172.30.16.0/24, nodes: {worker-02: eth1}}")
    assert f"{CAM}.guarantee.toDevice: enforcement node shares out links, so that" in str(caught.value)


def test_proxy_pods_are_spread_over_gateways_and_are_one_services_endpoints() -> None:
    addressing = Addressing(
        read("segments.plant.nodes={worker-02: eth1, worker-01: eth1}", f"{CAM}.replicas=2")
    )
    assert {name: addressing.pods[name].node for name in addressing.proxies} == {
        "dop-cam-1": "worker-02",
        "dop-cam-2": "worker-01",
    }
    assert addressing.services["dop-cam"].pods == ["dop-cam-1", "dop-cam-2"]
    assert str(addressing.service("dop-cam")) == "10.96.0.11"
    assert addressing.pods["dop-cam-2"].guarantee == 50_000_000
    assert services.clusters(addressing.scenario) == ["a"]


@pytest.mark.parametrize(
    ("mode", "taken"), [("translate", [8554, 5004, 8080]), ("relay", [8000, 8001, 8002])]
)
def test_a_proxy_pod_takes_what_is_for_the_device_at_ports_of_its_mode(mode: str, taken: list[int]) -> None:
    one = read(f"{CAM}.mode={mode}")
    assert [port.taken for port in connections.ports(one, "cam")] == taken
    told = connections.annotations_of(one, "cam")
    assert told["k8s.v1.cni.cncf.io/networks"] == "plant"
    assert told["concorde.contmec.dev/egress-guarantee.net1"] == "20M"
    forwarded = json.loads(told.get("concorde.contmec.dev/forward", "[]"))
    relayed = [arguments for _, arguments in connections.socats(one, "cam", "172.16.2.3")]
    # And at one more, by which a pod is asked whether its device answers.
    assert [one["port"] for one in forwarded][:-1] == (taken if mode == "translate" else [])
    assert len(relayed) == (0 if mode == "translate" else 3)
    if relayed:
        assert relayed[1] == [
            *("-T", "30", "UDP4-LISTEN:8001,bind=172.16.2.3,reuseaddr,fork", "UDP4:172.30.16.120:5004"),
        ]


def test_what_is_promised_is_the_least_of_the_sender_and_the_way() -> None:
    promised = {
        "A-1": 20_000_000,  # of 100
        "A-2": None,
    }
    one = read("flows=[" + TO_CAM + "}]", "requests=[{from: A-2, to: cam, rate: 1, protocol: udp}]")
    assert {each.source: one.guarantee_of(each) for each in one.transfers} == promised
    narrow = read("flows=[" + TO_CAM + "}]", "pods.A-1.guarantee=5M")
    assert narrow.guarantee_of(narrow.flows[0]) == 5_000_000
    unpromised = read("flows=[" + TO_CAM + "}]", f"connections.cam={WAY}")
    assert unpromised.guarantee_of(unpromised.flows[0]) is None


def test_traffic_goes_to_a_components_first_port_where_the_device_itself_is_silent() -> None:
    one = read("flows=[" + TO_CAM + "}]", "requests=[{from: A-2, to: cam, rate: 1, protocol: udp}]")
    addressing = Addressing(one)
    assert [addressing.port_of(each) for each in one.transfers] == [8554, 5004]
    assert [addressing.port_for(each) for each in one.transfers] == [8554, 5004]
    assert connections.sent(one)["camera"] == {("TCP", 8554), ("UDP", 5004)}
    assert one.receivers_of(one.flows[0]) == ("camera",)
    assert one.nodes_of(one.flows[0]) == ("worker-01", "worker-02")


def test_what_speaks_http_is_reached_by_tcp() -> None:
    one = read(f"flows=[{TO_CAM}, component: settings}}]")
    assert Addressing(one).port_of(one.flows[0]) == 8080
    assert connections.sent(one)["camera"] == {("TCP", 8080)}


def test_a_scale_is_also_that_of_what_is_promised() -> None:
    guarantee = read(scale=0.1).connections["cam"].guarantee
    assert (guarantee.to_device, guarantee.from_device) == (2_000_000, 5_000_000)


def test_a_recording_has_them_and_others_are_as_they_were() -> None:
    assert parse(render_yaml(read("flows=[" + TO_CAM + ", component: video}]"))) != read()
    assert parse(render_yaml(read())) == read()
    before = render_yaml(load(ROOT / "scenarios" / "contmec.yaml"))
    assert "connections" not in before
    assert "component" not in before


@pytest.mark.parametrize(
    ("enforcement", "told"),
    [
        ("pod", {"enforcement": "pod", "count": "layer2"}),
        ("none", {"enforcement": "none", "count": "layer2"}),
        (
            "node",
            {
                "enforcement": "node",
                "count": "layer2",
                "uplink": "eth1",
                "capacity": "99000000",
                "encapsulation": 0,
                "frameOverhead": 0,
                "controlPorts": [],
            },
        ),
    ],
)
def test_promises_on_a_segments_link_are_kept_as_on_nodes(enforcement: str, told: object) -> None:
    assert (
        registry.of(Addressing(read(f"enforcement={enforcement}"))).segment_plugin("plant", "worker-02")
        == told
    )


def test_on_a_segment_nobody_grants() -> None:
    told = [
        registry.of(Addressing(read(f"enforcement={one}"))).segment_plugin("plant", "worker-02")
        for one in ("fabric", "node")
    ]
    assert told[0] == told[1]


def test_others_plugins_keep_none_there() -> None:
    addressing = Addressing(read("enforcement=bandwidth", f"connections.cam={WAY}"))
    assert registry.of(addressing).segment_plugin("plant", "worker-02") == {"enforcement": "none"}


def test_what_is_sent_into_the_cluster_is_admitted_with_all_that_the_node_promises() -> None:
    addressing = Addressing(read("enforcement=node", f"{CAM}.guarantee.fromDevice=960M"))
    (fault,) = registry.of(addressing).refused([*addressing.pods])
    assert fault.path == ("connections", "cam", "guarantee", "fromDevice")
    assert "no room for 960M on worker-02" in fault.message


def test_what_is_sent_to_devices_is_admitted_on_their_segments_link() -> None:
    two = "{cluster: a, device: press, components: [control], guarantee: {toDevice: 60M}}"
    addressing = Addressing(
        read("enforcement=node", f"{CAM}.guarantee.toDevice=40M", f"connections.two={two}")
    )
    (fault,) = registry.of(addressing).refused([*addressing.pods])
    assert fault.path == ("connections", "two", "guarantee", "toDevice")
    assert fault.message == (
        "no room for 60M on segment plant at worker-02: with headers it takes 60 Mbit/s of its link, and "
        "57.02 are free"
    )


def test_what_has_no_proxies_refuses_connections_with_a_remedy() -> None:
    runner = replace(assembly.CNI, connects=False)
    with pytest.raises(ScenarioError) as caught:
        assembly.accept(Addressing(read()), runner)
    words = "what runs the pods has no proxies to devices: take --provider netns --orchestrator cni, "
    assert f"connections: {words}--provider netns --orchestrator kubernetes, or" in str(caught.value)


def test_a_relay_needs_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "missing", lambda package: iter([f"no program {package}"]))
    faults = list(assembly.relays_missing(Addressing(read(f"{CAM}.mode=relay"))))
    assert [str(fault.path) for fault in faults] == ["('connections', 'cam', 'mode')"]
    assert list(assembly.relays_missing(Addressing(read()))) == []


def test_only_gateways_with_proxies_are_prepared() -> None:
    addressing = Addressing(read())
    assert proxies.preparation(addressing, "worker-01", lambda *_: {}) == []
    said = "\n".join(step.stdin for step in proxies.preparation(addressing, "worker-02", lambda *_: {}))
    assert 'iifname "proxies0" oifname "eth1" accept' in said
    assert "eth2" not in said  # nothing leads to the building


def test_twice_as_many_connections_take_twice_as_long() -> None:
    def refuse(count: int) -> None:
        one = "{cluster: a, device: camera, components: [lens]}"
        with pytest.raises(ScenarioError):
            read("connections={" + ", ".join(f"c{number}: {one}" for number in range(count)) + "}")

    effort.assert_in_proportion(refuse, 100)
