"""CHECK notices every single thing that differs from what ADD made."""

from __future__ import annotations

import pytest
from concorde import shaping

from tests.system.plugin.conftest import Node, promising

LEDGER = "/run/concorde/node/ledger.sqlite"


def sql(statement: str) -> list[str]:
    code = "import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute(sys.argv[2])"
    return ["/usr/bin/python3", "-c", code, LEDGER, statement]


@pytest.mark.long(one_in=6)
@pytest.mark.parametrize(
    ("where", "tampering", "message"),
    [
        ("pod", "ip addr del 172.16.1.2/24 dev eth0", "lost its address 172.16.1.2/24"),
        ("pod", "ip route del default", "lost its default route"),
        ("pod", "ip link set dev eth0 down", "eth0 is down"),
        ("pod", "ip link set dev eth0 address 0a:58:00:00:00:01", "hardware address"),
        ("pod", "tc qdisc del dev eth0 root", "no root qdisc"),
        ("pod", "tc qdisc replace dev eth0 root handle 2: htb default 1", "no root qdisc"),
        ("pod", "tc class del dev eth0 classid 1:1", "class 1:1 of eth0 is missing"),
        (
            "pod",
            "tc class change dev eth0 classid 1:1 htb rate 999mbit ceil 1gbit quantum 65536",
            "rate 999Mbit",
        ),
        ("pod", "tc class change dev eth0 classid 1:1 htb rate 1gbit ceil 2gbit quantum 65536", "ceil 2Gbit"),
        ("node", "ip link set dev HOST nomaster", "not a port of cni-a"),
        ("node", "ip link set dev HOST down", "is down"),
        ("node", "ip link del dev HOST", "does not exist"),
        ("node", "ip addr del 172.16.1.1/24 dev cni-a", "cni-a has lost its address"),
        ("node", "ip link set dev cni-a down", "cni-a is down"),
        ("ledger", "DELETE FROM attachment WHERE container = 'A-1'", "no lease"),
        (
            "ledger",
            "UPDATE attachment SET address = address + 1 WHERE container = 'A-1'",
            "not in prevResult",
        ),
        ("ledger", "UPDATE promise SET guarantee = 7 WHERE container = 'A-1'", "guarantee 7"),
        ("ledger", "UPDATE attachment SET rate = 2000000 WHERE container = 'A-1'", "rate 2000000"),
    ],
)
def test_one_difference_is_noticed(node: Node, where: str, tampering: str, message: str) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising("1G"))
    checked = promising("1G", prevResult=result)
    assert node.call("CHECK", "A-1", checked) == {}
    command = tampering.replace("HOST", result["interfaces"][1]["name"]).split()
    if where == "pod":
        node.in_pod("A-1", *command)
    elif where == "node":
        node.run(*command)
    else:
        node.run(*sql(tampering))
    error = node.call("CHECK", "A-1", checked)
    assert error["code"] == 104
    assert message in error["msg"]


def test_check_needs_the_previous_result(node: Node) -> None:
    node.add_pod_namespace("A-1")
    node.call("ADD", "A-1", promising("1G"))
    assert node.call("CHECK", "A-1", promising("1G"))["code"] == 7


def test_another_plugins_hardware_address_in_the_result_is_accepted(node: Node) -> None:
    node.add_pod_namespace("A-1")
    result = node.call("ADD", "A-1", promising("1G"))
    node.in_pod("A-1", "ip", "link", "set", "dev", "eth0", "address", "0a:58:00:00:00:01")
    result["interfaces"][2]["mac"] = "0a:58:00:00:00:01"
    node.in_pod("A-1", "ip", "route", "replace", "default", "via", "172.16.1.1", "dev", "eth0")
    assert node.call("CHECK", "A-1", promising("1G", prevResult=result)) == {}


@pytest.mark.parametrize(
    "rate", [1000, 1007, 8192, 999_999, 954_321_987, 1_464_000_000, 25_000_000_001, 10**12]
)
def test_rates_are_written_as_the_installed_tc_writes_them(node: Node, rate: int) -> None:
    node.run("ip", "link", "add", "name", "eth0", "type", "veth", "peer", "name", "eth1")
    burst = shaping.default_burst(rate)
    node.run("tc", "-batch", "-", stdin=shaping.batch("eth0", rate, burst))
    output = node.run("tc", "-j", "class", "show", "dev", "eth0")
    assert shaping.rates_of_class(output) == (shaping.shown_rate(rate),) * 2
