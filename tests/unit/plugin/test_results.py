from __future__ import annotations

import pytest
from concorde import results

from tests.unit.plugin.examples import LINK


@pytest.mark.parametrize("version", ["0.3.0", "0.3.1", "0.4.0"])
def test_old_results_say_the_ip_version(version: str) -> None:
    result = results.of_link(version, LINK, "/run/netns/pod", None, True)
    assert result["cniVersion"] == version
    assert result["ips"] == [
        {"version": "4", "address": "172.16.1.2/24", "gateway": "172.16.1.1", "interface": 2}
    ]


def test_the_newest_result_says_the_mtu() -> None:
    result = results.of_link("1.1.0", LINK, "/run/netns/pod", {"nameservers": ["10.0.0.1"]}, True)
    assert result["interfaces"] == [
        {"name": "cni-a"},
        {"name": "veth0123456789a", "mac": "0e:58:ac:10:01:02", "mtu": 1450},
        {"name": "eth0", "mac": "0a:58:ac:10:01:02", "sandbox": "/run/netns/pod", "mtu": 1450},
    ]
    assert result["ips"] == [{"address": "172.16.1.2/24", "gateway": "172.16.1.1", "interface": 2}]
    assert result["routes"] == [{"dst": "0.0.0.0/0", "gw": "172.16.1.1"}]
    assert result["dns"] == {"nameservers": ["10.0.0.1"]}
    assert results.of_link("1.1.0", LINK, "/run/netns/pod", None, False)["routes"] == []


def test_1_0_0_results_have_neither() -> None:
    result = results.of_link("1.0.0", LINK, "/run/netns/pod", None, True)
    assert all("mtu" not in interface for interface in result["interfaces"])
    assert all("version" not in ip for ip in result["ips"])


def test_a_previous_result_is_passed_on_in_the_version_in_use() -> None:
    previous = {"cniVersion": "0.4.0", "ips": [{"version": "6", "address": "fd00::1/64"}], "other": 1}
    assert results.of_previous("1.0.0", previous) == {
        "cniVersion": "1.0.0",
        "ips": [{"address": "fd00::1/64"}],
        "other": 1,
    }
    assert results.of_previous("0.3.1", results.of_previous("1.0.0", previous))["ips"] == previous["ips"]
