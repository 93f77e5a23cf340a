"""No kernel is asked for what only one with IPv6 has."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.links import underlay
from testbed.overlays.backends.ipip import Tunnels
from testbed.overlays.backends.vxlan import Overlay
from testbed.overlays.backends.vxlan_miss import Resolved
from testbed.runtime import containers
from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


def rendered(addressing: Addressing) -> str:
    namespaces = dict.fromkeys(addressing.nodes, "/run/x")
    overlays = (one(addressing, "a").links("worker-01") for one in (Overlay, Resolved, Tunnels))
    return "".join(
        [
            underlay.render_switch(addressing, namespaces, {}),
            underlay.render_uplink(addressing, "worker-01"),
            containers.render_links(addressing, "worker-01"),
            *overlays,
        ]
    )


@pytest.mark.parametrize("has_ipv6", [True, False])
def test_a_kernel_that_has_ipv6_is_asked_for_no_addresses(
    has_ipv6: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("testbed.links.IPV6", tmp_path if has_ipv6 else tmp_path / "none")
    addressing = addressed("contmec", "underlay.rate=9G")
    text = rendered(addressing)
    silenced = {line.split()[2] for line in text.splitlines() if line.endswith(" addrgenmode none")}
    up = {line.split()[2] for line in text.splitlines() if line.endswith(" up")} - {"lo"}
    assert len(up) > 5
    assert silenced == (up if has_ipv6 else set())
    assert ("addrgenmode" in text) is has_ipv6
