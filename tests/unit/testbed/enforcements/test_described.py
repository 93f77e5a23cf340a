"""One enforcement for all descriptions: what a runtime is given of a list, and what is missing here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed import resources
from testbed.enforcements.enforcement import Enforcement
from testbed.scenario import descriptions, render_yaml
from testbed.scenario.descriptions import PLACEHOLDERS
from testbed.scenario.faults import render_path
from tests.unit.testbed.builders import addressed


def described(said: str, *overrides: str) -> Enforcement:
    return Enforcement(addressed("contmec", f"enforcement={said}", *overrides))


def missing(said: str, here: bool = True) -> list[str]:
    return [f"{render_path(path)}: {words}" for path, words in described(said).missing(here)]


def filled(said: dict[str, Any], *overrides: str) -> dict[str, Any]:
    plugins = [{"type": "x", **said}]
    network = described(f"{{name: own, conflist: {{plugins: {plugins}}}}}", *overrides)
    (plugin,) = network.network_list("b", "worker-02").plugins
    return plugin


def test_a_placeholder_alone_keeps_its_kind_and_one_in_a_text_becomes_text() -> None:
    said = {"mtu": "${mtu}", "words": ["on ${node} with ${mtu}"], "ports": "${control_ports}"}
    assert filled(said) == {
        "type": "x",
        "mtu": 1450,
        "words": ["on worker-02 with 1450"],
        "ports": [22, 6443, 10250, 20250],
    }


def test_the_pods_addresses_are_those_of_their_nodes_subnet() -> None:
    said = {key: f"${{{key}}}" for key in ("subnet", "gateway", "range_start", "range_end")}
    assert filled(said) == {
        "type": "x",
        "subnet": "172.17.2.0/24",
        "gateway": "172.17.2.1",
        "range_start": "172.17.2.2",
        "range_end": "172.17.2.254",
    }


def test_every_placeholder_has_a_value() -> None:
    said = ", ".join(f"{name}: '${{{name}}}'" for name in PLACEHOLDERS)
    whole = f"{{name: own, link: {{share: 0.5}}, conflist: {{plugins: [{{type: x, {said}}}]}}}}"
    (plugin,) = described(whole, "underlay.rate=2G").network_list("a", "worker-01").plugins
    assert not descriptions.placeholders_in(plugin)
    assert (plugin["capacity"], plugin["overhead"], plugin["uplink"]) == ("1000000000", 50, "eth0")


def test_a_list_may_say_its_own_name_version_and_that_it_is_not_to_be_checked() -> None:
    conflist = "{name: fixed, cniVersion: 0.4.0, disableCheck: true, plugins: [{type: x}]}"
    network = described(f"{{name: own, conflist: {conflist}}}").network_list("a", "worker-01")
    assert (network.name, network.cni_version, network.disable_check) == ("fixed", "0.4.0", True)
    plain = described("{name: own, conflist: {plugins: [{type: x}]}}").network_list("a", "worker-01")
    assert (plain.name, plain.cni_version, plain.disable_check) == ("cluster-a", "1.0.0", False)


def test_nothing_is_missing_where_all_plugins_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "REFERENCE_PLUGINS", (str(tmp_path),))
    (tmp_path / "ptp").touch()
    (tmp_path / "host-local").touch()
    plugins = "[{type: ptp, ipam: {type: host-local}}]"
    assert missing(f"{{name: own, conflist: {{plugins: {plugins}}}}}") == []
    assert missing("pod") == []  # Concorde is built
    assert missing("bandwidth") == [
        f"enforcement: no plugin 'bridge' in {tmp_path}",
        f"enforcement: no plugin 'bandwidth' in {tmp_path}",
    ]


def test_a_missing_plugin_is_named_with_its_place_in_the_list(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resources, "REFERENCE_PLUGINS", (str(tmp_path),))
    (tmp_path / "host-local").touch()
    (tmp_path / "ptp").touch()
    said = "{name: own, conflist: {plugins: [{type: ptp, ipam: {type: hostlocal}}]}}"
    words = f"no plugin 'hostlocal' in {tmp_path} (did you mean 'host-local'?)"
    assert missing(said) == [f"enforcement.conflist.plugins[0].ipam.type: {words}"]
    assert missing(said, here=False) == []  # what a machine has is not known


def test_a_missing_directory_and_a_missing_list_are_missed_everywhere(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    said = f"{{name: own, plugins: {gone}, conflist: {{plugins: [{{type: x}}]}}}}"
    assert missing(said, here=False) == [f"enforcement.plugins: no directory {gone}"]
    (words,) = missing("{name: cilium, claims: [ceiling], told: annotation}", here=False)
    assert words.startswith("enforcement: network cilium has no conflist: it is for clusters that exist")


def test_macvlans_pods_have_a_range_of_the_underlay_for_each_cluster_and_worker() -> None:
    where = addressed("contmec", "enforcement=macvlan")
    ranges = {
        (cluster, node): where.pod_range(cluster, node)
        for cluster in "ab"
        for node in ("worker-01", "worker-02")
    }
    assert [str(one.first) for one in ranges.values()] == [
        "192.168.56.128", "192.168.56.159", "192.168.56.190", "192.168.56.221",
    ]  # fmt: skip
    assert {one.room for one in ranges.values()} == {31}
    assert str(ranges["a", "worker-01"].gateway) == str(where.address("worker-01"))
    assert (where.pod_mtu("a"), where.overhead("a"), where.overlay_mtu("a")) == (1500, 0, 1450)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("underlay.cidr=192.168.56.0/27", "has room for 1 of a cluster's pods on each worker"),
        (
            "nodes={master-01: {address: 192.168.56.1}, master-02: {address: 192.168.56.2}, "
            "worker-01: {address: 192.168.56.3}, worker-02: {address: 192.168.56.200}}",
            "gives pods the addresses of 192.168.56.0/24 from 192.168.56.128 on, and 'worker-02' has",
        ),
    ],
)
def test_a_range_without_room_or_with_a_node_in_it_is_refused(override: str, message: str) -> None:
    with pytest.raises(LookupError, match=f"underlay.cidr: .*{message}"):
        addressed("contmec", "enforcement=macvlan", override)


def test_a_share_of_the_links_needs_their_rate() -> None:
    said = "{name: own, link: {share: 0.9}, conflist: {plugins: [{type: x}]}}"
    with pytest.raises(LookupError, match=r"underlay\.rate: enforcement own shares out the nodes' links"):
        described(said)


def test_what_is_recorded_of_a_description_is_all_of_it() -> None:
    said = "{name: own, conflist: {plugins: [{type: x}]}}"
    text = render_yaml(described(said).addressing.scenario)
    assert "  name: own\n" in text
    assert "type: x\n" in text
