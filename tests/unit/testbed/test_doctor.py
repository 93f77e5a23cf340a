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
