"""What a machine lacks is said, each program with the package that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import doctor
from testbed.access.local import ENVIRONMENT


@pytest.mark.parametrize("tool", ["ping", "ip", "tc", "ss", "iperf3", "tcpdump"])
def test_what_people_type_in_a_pod_is_there_or_its_package_is_named(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENVIRONMENT, "PATH", str(tmp_path))
    (found,) = (one for one in doctor._tools() if one.subject.split(" (")[0] == f"program {tool}")
    assert not found.fine
    assert found.remedy.startswith("apt-get install ")
    (tmp_path / tool).touch(0o755)
    assert next(one for one in doctor._tools() if one.subject == found.subject).fine


def test_a_table_of_neighbours_that_is_too_small_for_a_node_full_of_pods_is_named(tmp_path: Path) -> None:
    from concorde.node import shares

    assert doctor.NEIGHBOURS == shares.WANTED
    assert list(doctor._neighbours(tmp_path)) == []  # as in another network namespace
    for version, room in (("ipv4", 1024), ("ipv6", doctor.NEIGHBOURS)):
        (tmp_path / version / "neigh/default").mkdir(parents=True)
        (tmp_path / version / "neigh/default/gc_thresh3").write_text(f"{room}\n")
    small, large = doctor._neighbours(tmp_path)
    assert (small.fine, small.needed, large.fine) == (False, False, True)
    assert f"is 1024: sysctl -w net.ipv4.neigh.default.gc_thresh3={shares.WANTED}" in small.remedy
