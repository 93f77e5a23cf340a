"""What a scenario is made of, as people see it: nothing is left out, and nothing leaves its box."""

from __future__ import annotations

import io
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from rich.console import Console

from bench.presentation import topology
from testbed.scenario import Scenario, load
from tests.paths import ROOT

SVG = "{http://www.w3.org/2000/svg}"
SIZES = "examples/stations-of-different-sizes.yaml"
SERVICES = "examples/services.yaml"
DEVICES = "examples/devices.yaml"
SCENARIOS = (
    "contmec.yaml",
    "examples/two-stations.yaml",
    "promise/full-10.yaml",
    SIZES,
    SERVICES,
    DEVICES,
)
WAITS = ("nodes.worker-02.expect=unassigned", "pods.A-4.node=worker-03", "flows[0].to=A-3", "flows[1].to=A-4")
ADDRESSES = {"A-1": "172.16.1.2", "worker-01": "192.168.56.13"}


@pytest.fixture(params=SCENARIOS)
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return load(ROOT / "scenarios" / request.param)


def shown(scenario: Scenario) -> str:
    out = io.StringIO()
    Console(file=out, width=100).print(topology.tree(scenario, ADDRESSES))
    return out.getvalue()


def names(scenario: Scenario) -> list[str]:
    things = (scenario.zones, scenario.nodes, scenario.pods, scenario.containers, scenario.services)
    return [name for group in (*things, scenario.segments, scenario.devices) for name in group]


def test_all_there_is_is_in_the_tree_and_in_the_picture(scenario: Scenario) -> None:
    picture = "\n".join(ET.fromstring(topology.svg(scenario, ADDRESSES)).itertext())
    for text in (shown(scenario), picture):
        assert [name for name in names(scenario) if name not in text] == []
        for cluster in scenario.clusters.values():
            assert [one for one in cluster.pod_networks if str(one) not in text] == []


def test_promises_links_trunks_and_addresses_are_said() -> None:
    stations = shown(load(ROOT / "scenarios" / "examples" / "two-stations.yaml"))
    assert "zone south: trunk 500 Mbit/s, 2.5 ms each way" in stations
    assert "worker-03  link 400 Mbit/s" in stations
    assert "A-1  cluster a  172.16.1.2  200 Mbit/s promised" in stations
    assert "A-2  cluster a  300 Mbit/s promised, at most 500 Mbit/s" in shown(
        load(ROOT / "scenarios" / "contmec.yaml", ["pods.A-2.ceiling=500M", "pods.A-2.guarantee=300M"])
    )


def test_services_are_said_with_their_pods_and_who_of_them_is_asked() -> None:
    local = "services.near={cluster: a, pods: [A-2], port: 443, policy: Local}"
    said = shown(load(ROOT / "scenarios" / SERVICES, ["services.data.hints=close", local]))
    assert "service web  10.96.0.11:80  A-2, A-3, A-4\n" in said
    assert "service near  10.96.0.12:443  A-2  policy Local\n" in said
    assert "service data  10.97.0.11:80  B-1, B-2, B-3  hints close\n" in said


def test_blocks_are_said_where_nodes_differ_in_size() -> None:
    more = "{name: kiosk, cidr: 172.16.40.0/29, mask: 29, nodes: {size: kiosk}}"
    waiting = f"clusters.a.pod_cidrs=[{{name: large, cidr: 172.16.0.0/23, mask: 24}}, {more}]"
    said = shown(load(ROOT / "scenarios" / SIZES, [waiting, *WAITS]))
    assert "worker-01  192.168.56.13  a: 172.16.1.0/24  b: 172.17.1.0/24\n" in said
    assert "worker-02  a: waits for a block  b: 172.17.32.0/27\n" in said
    assert "worker-03  a: 172.16.40.0/29\n" in said


def test_boxes_lie_within_the_picture_and_beside_or_in_each_other(scenario: Scenario) -> None:
    root = ET.fromstring(topology.svg(scenario, ADDRESSES))
    rows = [group.find(f"{SVG}rect") for group in root.iter(f"{SVG}g")]
    boxes = [
        tuple(float(row.attrib[key]) for key in ("x", "y", "width", "height"))
        for row in rows
        if row is not None
    ]
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
    for (x, y, w, h), (u, v, a, b) in combinations(boxes, 2):
        apart = x + w <= u or u + a <= x or y + h <= v or v + b <= y
        within = x <= u and y <= v and u + a <= x + w and v + b <= y + h
        assert apart or within, ((x, y, w, h), (u, v, a, b))


def test_a_name_is_text_and_nothing_else(scenario: Scenario) -> None:
    evil = scenario.model_copy(update={"title": "<script>alert(1)</script>"})
    root = ET.fromstring(topology.svg(evil))
    assert [one for one in root.iter() if one.tag.endswith("script")] == []
