from __future__ import annotations

from typing import Any

import pytest
from concorde.node.listing import Listed


@pytest.mark.parametrize(
    ("element", "key", "value"),
    [
        ("veth1", ["veth1"], None),
        (4789, ["4789"], None),
        ({"concat": ["cni-a", "172.16.1.2"]}, ["cni-a", "172.16.1.2"], None),
        (["172.16.1.2", "c0de:10"], ["172.16.1.2"], "c0de:10"),
        ({"elem": {"val": "veth1", "counter": {"packets": 3, "bytes": 9}}}, ["veth1"], None),
        ({"elem": {"val": {"concat": ["cni-a", "1.2.3.4"]}}}, ["cni-a", "1.2.3.4"], None),
    ],
)
def test_each_form_of_an_element_is_read(element: Any, key: list[str], value: str | None) -> None:
    listed = Listed(element)
    assert (listed.key, listed.value) == (key, value)


def test_an_element_is_written_as_nft_reads_it() -> None:
    assert (
        Listed({"concat": ["cni-a", "172.16.1.2"]}).text(['"cni-a"', "172.16.1.2"]) == '"cni-a" . 172.16.1.2'
    )
    limit = {
        "rate": 50,
        "rate_unit": "kbytes",
        "burst": 3000,
        "burst_unit": "bytes",
        "per": "second",
        "inv": True,
    }
    assert (
        Listed({"elem": {"val": "veth1", "limit": limit}}).text(['"veth1"'])
        == '"veth1" limit rate over 51200 bytes/second burst 3000 bytes'
    )
    in_packets = {"rate": 100, "burst": 200, "per": "second", "inv": True}  # is the set's, for all alike
    assert Listed({"elem": {"val": "veth1", "limit": in_packets}}).text(['"veth1"']) == '"veth1"'
    assert Listed(["172.16.1.2", "c0de:10"]).text(["172.16.1.2"]) == "172.16.1.2 : c0de:10"
