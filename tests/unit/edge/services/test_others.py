"""Who else serves services on a node, where this kernel cannot show it."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from edge.services import others

VIRTUAL_SERVERS = """\
IP Virtual Server version 1.2.1 (size=4096)
Prot LocalAddress:Port Scheduler Flags
  -> RemoteAddress:Port Forward Weight ActiveConn InActConn
TCP  0A610001:01BB rr
  -> C0A83802:192B      Masq    1      0          0
UDP  0A61000A:0035 rr
"""


def test_virtual_servers_of_ipvs_are_of_the_cluster_whose_addresses_they_have(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "ip_vs").write_text(VIRTUAL_SERVERS)
    monkeypatch.setattr(others, "VIRTUAL_SERVERS", tmp_path / "ip_vs")
    monkeypatch.setattr(others, "LEGACY_TABLES", tmp_path / "none")
    monkeypatch.setattr(others, "_tables", list)
    assert others.serving(IPv4Network("10.96.0.0/16"), "services-a") == ""
    assert others.serving(IPv4Network("10.97.0.0/16"), "services-a") == "kube-proxy, mode ipvs"
