"""The file that says which leases a resolver knows."""

from __future__ import annotations

from pathlib import Path

from edge.overlay import report
from tests.unit.edge.overlay.kernels import OWN, lease


def test_each_lease_is_a_line_in_the_order_of_subnets(tmp_path: Path) -> None:
    file = tmp_path / "leases"
    report.write(file, [lease(10), OWN, lease(2)])
    assert file.read_text(encoding="utf-8") == (
        "10.1.1.0/24 at 0e:00:00:00:00:01 behind 192.168.122.1\n"
        "10.1.2.0/24 at 0e:00:00:00:00:02 behind 192.168.122.2\n"
        "10.1.10.0/24 at 0e:00:00:00:00:0a behind 192.168.122.10\n"
    )
    assert list(tmp_path.iterdir()) == [file]
