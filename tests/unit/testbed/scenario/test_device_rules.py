"""What a scenario says of segments and devices: what is refused, where they are, and who has none."""

from __future__ import annotations

import pytest

from testbed.scenario import Scenario, ScenarioError, load, parse, render_yaml, services
from tests import effort
from tests.paths import ROOT

DEVICES = ROOT / "scenarios" / "examples" / "devices.yaml"
PLANT, CAMERA, AT = "segments.plant", "devices.camera", "devices.camera.address"
VIDEO = f"{CAMERA}.components.video"
NEW = "{segment: plant, address: 172.30.16.5, components: {a: {TCP: [1]}}}"
FREE = "; choose a free one of 172.30.16.0/24"
FAULTS = {
    f"{PLANT}.nodes={{worker-9: eth1}}": f"{PLANT}.nodes.worker-9: no node 'worker-9' (nodes: master-01,",
    f"{PLANT}.nodes={{master-01: eth1}}": f"{PLANT}.nodes.master-01: 'master-01' is not a worker of any "
    "cluster, and a gateway must be one (workers: worker-01, worker-02)",
    f"{PLANT}.nodes={{worker-02: eth0}}": f"{PLANT}.nodes.worker-02: eth0 is the uplink of 'worker-02', on "
    "the underlay; choose another, such as eth1",
    f"{PLANT}.nodes={{worker-02: cni-a}}": f"{PLANT}.nodes.worker-02: cni-a is a name of interfaces that",
    f"{PLANT}.nodes={{worker-02: eth2}}": "segments.building.nodes.worker-02: eth2 of 'worker-02' is in "
    "segment 'plant'; choose another, or a node",
    f"{PLANT}.nodes={{}}": f"{PLANT}.nodes: ",
    f"{PLANT}.bridges=[br0, eth2]": f"{PLANT}.bridges[1]: eth2 is where 'worker-02' is in segment "
    "'building'; name one that a network's definition has there",
    f"{PLANT}.bridges=[eth0]": f"{PLANT}.bridges[0]: eth0 is the uplink of 'worker-02', on the underlay;",
    f"{PLANT}.nodes=[worker-02]": f"{PLANT}.nodes: input should be a mapping, as in {{name: value}}",
    f"{PLANT}.cidr=172.30.16.120/30": f"{PLANT}.cidr: 172.30.16.120/30 has 2 addresses for 3 gateways and "
    "devices: choose a larger one",
    f"{PLANT}.cidr=255.255.255.255/32": f"{PLANT}.cidr: 255.255.255.255/32 has 0 addresses",
    f"{PLANT}.cidr=192.168.56.0/25": f"{PLANT}.cidr: 192.168.56.0/25 overlaps underlay.cidr 192.168.56.0/24",
    f"{PLANT}.cidr=172.16.4.0/24": f"{PLANT}.cidr: 172.16.4.0/24 overlaps clusters.a.pod_cidr 172.16.0.0/16",
    f"{PLANT}.cidr=172.18.4.0/24": f"{PLANT}.cidr: 172.18.4.0/24 overlaps container_cidr 172.18.0.0/16",
    f"{PLANT}.cidr=172.30.17.0/25": "segments.building.cidr: 172.30.17.0/24 overlaps segments.plant.cidr",
    f"{PLANT}.rate=2T": f"{PLANT}.rate: 2T is more than 1T bits per second",
    "clusters.a.service_cidr=172.30.16.0/24": f"{PLANT}.cidr: 172.30.16.0/24 overlaps clusters.a.service",
    "segments.A_B={cidr: 10.0.0.0/24, nodes: {worker-02: eth5}}": "segments.A_B: 'A_B' is not a DNS label",
    f"{CAMERA}.segment=plan": f"{CAMERA}.segment: no segment 'plan' (segments: plant, building)",
    f"{AT}=172.30.17.3": f"{AT}: 172.30.17.3 is not in the segment{FREE}",
    f"{AT}=172.30.16.0": f"{AT}: 172.30.16.0 is the address of the network itself{FREE}",
    f"{AT}=172.30.16.255": f"{AT}: 172.30.16.255 is the address for broadcast{FREE}",
    f"{AT}=172.30.16.1": f"{AT}: 172.30.16.1 is the address of gateway 'worker-02'{FREE}",
    f"{AT}=172.30.16.121": "devices.press.address: 172.30.16.121 is the address of device",
    f"{CAMERA}.components={{}}": f"{CAMERA}.components: ",
    f"{CAMERA}.components={{a b: {{TCP: [1]}}}}": f"{CAMERA}.components.a b: 'a b' is not a DNS label",
    f"{VIDEO}={{}}": f"{VIDEO}: has no port; write some, as in {{TCP: [8554]}}",
    f"{VIDEO}={{SCTP: [1]}}": f"{VIDEO}.SCTP: no such field",
    f"{VIDEO}={{TCP: [0]}}": f"{VIDEO}.TCP[0]: must be a port from 1 to 65535, not 0",
    f"{VIDEO}={{HTTP: [65536]}}": f"{VIDEO}.HTTP[0]: must be a port from 1 to 65535, not 65536",
    f"{VIDEO}={{TCP: [8080]}}": f"{CAMERA}.components.settings.HTTP[0]: 8080 by TCP, as HTTP is, is taken by "
    f"{VIDEO}.TCP[0]; choose another",
    f"{VIDEO}={{UDP: [1, 1]}}": f"{VIDEO}.UDP[1]: 1 by UDP is taken by {VIDEO}.UDP[0]; choose another",
    f"devices.Cam={NEW}": "devices.Cam: 'Cam' is not a DNS label: a-z, 0-9 and dashes within, at most 63",
    f"devices.a-1={NEW}": "devices.a-1: the name is taken by pods.A-1",
    f"devices.worker-01={NEW}": "devices.worker-01: the name is taken by nodes.worker-01",
}


def read(*overrides: str, scale: float = 1.0) -> Scenario:
    return load(DEVICES, overrides, scale)


@pytest.mark.parametrize("override", FAULTS)
def test_what_contradicts_itself_is_refused_with_its_place(override: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read(override)
    assert f"devices.yaml: {FAULTS[override]}" in str(caught.value)


def test_ports_may_be_the_same_where_the_protocols_are_not() -> None:
    both = read(f"{VIDEO}={{TCP: [9], UDP: [9]}}").devices["camera"].components["video"]
    assert list(both.ports) == [("TCP", 0, 9), ("UDP", 0, 9)]


def test_gateways_have_the_first_addresses_in_their_order() -> None:
    segment = read(f"{PLANT}.nodes={{worker-02: eth1, worker-01: eth4}}").segments["plant"]
    assert {name: str(one) for name, one in segment.gateways.items()} == {
        "worker-02": "172.30.16.1/24",
        "worker-01": "172.30.16.2/24",
    }


def test_services_are_where_no_segment_is() -> None:
    moved = read("segments.other={cidr: 10.96.4.0/24, nodes: {worker-01: eth1}}")
    assert {name: str(one) for name, one in services.ranges(moved).items()} == {"a": "10.97.0.0/16"}


def test_a_scale_is_also_that_of_segments() -> None:
    rates = {name: one.rate for name, one in read(scale=0.1).segments.items()}
    assert rates == {"plant": 10_000_000, "building": 1_000_000}


def test_a_recording_has_them_and_others_are_as_they_were() -> None:
    assert parse(render_yaml(read())) == read()
    before = render_yaml(load(ROOT / "scenarios" / "contmec.yaml"))
    assert "segments" not in before
    assert "devices" not in before


def test_twice_as_many_devices_take_twice_as_long() -> None:
    def refuse(count: int) -> None:
        one = "{segment: plant, address: 172.30.16.1, components: {a: {TCP: [1]}}}"
        with pytest.raises(ScenarioError):
            read("devices={" + ", ".join(f"d{number}: {one}" for number in range(count)) + "}")

    effort.assert_in_proportion(refuse, 100)
