from __future__ import annotations

import pytest

from testbed.supplies import versions

NO_VERSIONS = ["1.20", "v1.20.2", "1.20.2-rc.1", "2.0.0", "latest", "", "1.20.2/..", "1.20.2\n"]


@pytest.mark.parametrize("text", NO_VERSIONS)
def test_what_is_no_version_is_refused(text: str) -> None:
    with pytest.raises(LookupError, match="--version: must be a version of Kubernetes"):
        versions.parse(text)


@pytest.mark.parametrize("text", ["1.19.16", "1.99.0"])
def test_a_version_nobody_looked_at_is_refused(text: str) -> None:
    with pytest.raises(LookupError, match=r"is not known here \(known: 1\.20 to 1\.34; run here: 1\.20\.2\)"):
        versions.parse(text)


def test_a_version_is_written_as_it_was_read() -> None:
    assert str(versions.parse("1.20.2")) == "1.20.2"


@pytest.mark.parametrize(
    ("difference", "last_with_it"),
    [
        ("assumes_docker", "1.23.17"),
        ("has_insecure_ports", "1.23.17"),
        ("can_forgo_device_plugins", "1.25.16"),
        ("limits_disks_by_gate", "1.24.17"),
    ],
)
def test_a_difference_ends_with_a_minor_version(difference: str, last_with_it: str) -> None:
    last = versions.parse(last_with_it)
    assert getattr(last, difference)
    assert not getattr(versions.Version(last.minor + 1, 0), difference)
