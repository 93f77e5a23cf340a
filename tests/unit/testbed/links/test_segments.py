"""Private networks as ``ip``, ``tc`` and ``nft`` are given them, and what answers at a device's ports."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from testbed.links import device_server, segments
from testbed.scenario import Scenario
from tests.doubles import RecordingNode
from tests.unit.testbed.builders import addressed
from tests.waiting import PATIENCE


@pytest.fixture
def devices() -> Scenario:
    return addressed("examples/devices").scenario


def test_each_segment_has_a_switch_and_a_cable_to_each_gateway_and_device(devices: Scenario) -> None:
    links = segments.render_switches(
        devices, {name: f"/{name}" for name in (*devices.nodes, *devices.devices)}
    )
    ends = [line.split() for line in links.splitlines() if " type veth " in line]
    assert [(end[2], end[9], end[-1]) for end in ends] == [
        ("seg0p0", "eth1", "/worker-02"),
        ("seg0p1", "eth0", "/camera"),
        ("seg0p2", "eth0", "/press"),
        ("seg1p0", "eth2", "/worker-02"),
        ("seg1p1", "eth0", "/door"),
    ]
    assert "address 02:00:ac:1e:10:01 mtu 1500 netns /worker-02\n" in links
    assert links.count("link set seg0p1 master segment0\n") == 1
    assert links.count("link set seg1p1 master segment1\n") == 1


def test_cables_have_their_segments_rate_both_ways(devices: Scenario) -> None:
    rates = segments.render_rates(devices)
    for port in ("seg0p0", "seg0p2"):
        assert f"qdisc add dev {port} root tbf rate 100000000bit " in rates
        assert f"qdisc add dev {port}-in root tbf rate 100000000bit " in rates
    assert "qdisc add dev seg1p1-in root tbf rate 10000000bit " in rates
    unlimited = addressed(
        "examples/devices", "segments.plant={cidr: 172.30.16.0/24, nodes: {worker-02: eth1}}"
    )
    assert "seg0" not in segments.render_rates(unlimited.scenario)
    assert segments.render_switches(addressed("contmec").scenario, {}) == ""


def test_a_gateway_is_closed_before_it_has_an_address(devices: Scenario) -> None:
    closed, own = segments.gateway_steps(devices, "worker-02")
    assert closed.argv[0] == "nft"
    assert '    oifname { "eth1", "eth2" } goto closed\n' in closed.stdin
    assert "    jump proxies\n    counter drop\n" in closed.stdin
    assert '    iifname != "lo" ip daddr { 172.30.16.1, 172.30.17.1 } counter drop\n' in closed.stdin
    assert "address add 172.30.16.1/24 broadcast + dev eth1\n" in own.stdin
    assert segments.gateway_steps(devices, "worker-01") == []


def test_who_is_behind_a_bridge_begins_with_its_segment_and_no_other(devices: Scenario) -> None:
    opened = addressed("examples/devices", "segments.plant.bridges=[eb]").scenario
    closed, also = (
        segments.gateway_steps(scenario, "worker-02")[0].stdin.splitlines() for scenario in (devices, opened)
    )
    assert [line.strip() for line in also if line not in closed] == [
        'iifname "eb" oifname "eth1" accept',
        'iifname "eth1" oifname "eb" ct state established,related accept',
    ]


def test_a_device_has_its_address_and_what_answers_at_its_ports(devices: Scenario) -> None:
    node = RecordingNode("camera")
    device = segments.Device(node, devices)
    device.up()
    said = "".join(one.stdin for one in node.asked)
    assert "address add 172.30.16.120/24 broadcast + dev eth0\n" in said
    assert "route" not in said
    assert device.address == "172.30.16.120"
    ports = json.loads(device.component.argv[-1])["ports"]
    assert ports == [["TCP", 8554], ["UDP", 5004], ["HTTP", 8080]]
    beside = segments.Device(node, devices, {("TCP", 8554), ("TCP", 8080)})
    assert json.loads(beside.component.argv[-1])["ports"] == ports[1:2]


@contextmanager
def answering(protocol: str) -> Iterator[int]:
    """Have a server of a device on a port of loopback that is free; yield that."""
    server = device_server.server(protocol, 0, "camera")
    assert isinstance(server, socketserver.TCPServer)  # as one by UDP is, too
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.socket.getsockname()[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_what_is_sent_by_tcp_comes_back() -> None:
    with answering("TCP") as port, socket.create_connection(("127.0.0.1", port), PATIENCE) as asking:
        asking.sendall(b"frame")
        asking.shutdown(socket.SHUT_WR)
        assert b"".join(iter(lambda: asking.recv(100), b"")) == b"frame"


def test_what_is_sent_by_udp_comes_back() -> None:
    with answering("UDP") as port, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(PATIENCE)
        asking.sendto(b"frame", ("127.0.0.1", port))
        assert asking.recv(100) == b"frame"


def test_http_answers_with_the_body_or_with_name_and_path() -> None:
    with answering("HTTP") as port:
        url = f"http://127.0.0.1:{port}/version"
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:
            assert page.read() == b"camera /version\n"
        with urllib.request.urlopen(url, b"set", timeout=PATIENCE) as page:
            assert page.read() == b"set"


@pytest.mark.parametrize(("length", "status"), [("-1", "400"), ("x", "400"), ("99999999999", "413")])
def test_http_refuses_a_length_that_is_none(length: str, status: str) -> None:
    with answering("HTTP") as port, socket.create_connection(("127.0.0.1", port), PATIENCE) as asking:
        asking.sendall(f"POST / HTTP/1.1\r\nHost: camera\r\nContent-Length: {length}\r\n\r\n".encode())
        assert asking.recv(100).split()[1].decode() == status
