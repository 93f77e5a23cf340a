from __future__ import annotations

from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

import pytest
from concorde import guarantees
from concorde.cni import INVALID_CONFIGURATION, CniError
from concorde.configuration import LEAST_RATE, MOST_RATE, Configuration, Identity, bits_per_second
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.plugin.examples import ANNOTATIONS, annotated


def document(**keys: object) -> dict[str, Any]:
    return {"cniVersion": "1.1.0", "name": "net", "type": "concorde", "subnet": "172.16.1.0/24", **keys}


@pytest.mark.parametrize(
    ("keys", "path"),
    [
        ({"name": "a b"}, "name"),
        ({"name": None}, "name"),
        ({"name": ["net"]}, "name"),
        ({"name": "node"}, "name"),
        ({"bridge": "sixteen-letters-"}, "bridge"),
        ({"bridge": "lo"}, "bridge"),
        ({"bridge": "veth0123456789a"}, "bridge"),
        ({"bridge": "br0", "uplink": "br0"}, "bridge"),
        ({"bridge": "a b"}, "bridge"),
        ({"bridge": "-v"}, "bridge"),
        ({"bridge": "all"}, "bridge"),
        ({"stateDir": "run/concorde"}, "stateDir"),
        ({"stateDir": "/run/../etc"}, "stateDir"),
        ({"stateDir": "/"}, "stateDir"),
        ({"stateDir": "//./"}, "stateDir"),
        ({"enforcement": "most"}, "enforcement"),
        ({"enforcement": 1}, "enforcement"),
        ({"count": "bytes"}, "count"),
        ({"mtu": 100}, "mtu"),
        ({"mtu": True}, "mtu"),
        ({"mtu": 1450.0}, "mtu"),
        ({"burst": 0}, "burst"),
        ({"burst": "1M"}, "burst"),
        ({"subnet": "172.16.1.5/24"}, "subnet"),
        ({"subnet": "172.16.1.0"}, "subnet"),
        ({"subnet": "172.16.1.0/31"}, "subnet"),
        ({"subnet": "172.16.01.0/24"}, "subnet"),
        ({"subnet": "fd00::/64"}, "subnet"),
        ({"subnet": None}, "subnet"),
        ({"subnetFile": "/run/flannel/subnet.env"}, "subnetFile"),
        ({"subnet": None, "subnetFile": "/nowhere/subnet.env"}, "subnetFile"),
        ({"prevResult": []}, "prevResult"),
        ({"dns": "10.0.0.1"}, "dns"),
        ({"runtimeConfig": 1}, "runtimeConfig"),
        ({"runtimeConfig": {ANNOTATIONS: []}}, ANNOTATIONS),
        (annotated(guarantee=1_000_000), guarantees.GUARANTEE),
        (annotated(guarantee="lots"), guarantees.GUARANTEE),
        (annotated(ceiling="2P"), guarantees.CEILING),
        (annotated(ingress="500"), guarantees.INGRESS),
        (annotated(ingress=[5]), guarantees.INGRESS),
        (annotated(ingress="500M"), guarantees.INGRESS),
        ({"runtimeConfig": {"bandwidth": []}}, "bandwidth"),
        ({"runtimeConfig": {"bandwidth": {"egressRate": "1G"}}}, "runtimeConfig.bandwidth.egressRate"),
        ({"runtimeConfig": {"bandwidth": {"egressRate": 10}}}, "runtimeConfig.bandwidth.egressRate"),
        ({"runtimeConfig": {"bandwidth": {"egressRate": 10**9, "EgressRate": 1}}}, "egressRate"),
        ({"defaultGuarantee": "1x"}, "defaultGuarantee"),
        ({"defaultGuarantee": "1k", "burst": 1 << 30}, "burst"),
    ],
)
def test_a_bad_value_is_named_by_its_path(keys: dict[str, Any], path: str) -> None:
    with pytest.raises(CniError) as caught:
        read(document(**keys))
    assert caught.value.code == INVALID_CONFIGURATION
    assert path in caught.value.msg.partition(": ")[0]


def read(whole: dict[str, Any]) -> None:
    configuration = Configuration(whole)
    configuration.subnet()
    guarantees.terms(configuration, 1450, reserves=False, receives=False)


def test_two_long_network_names_get_different_bridges() -> None:
    one, other = (Identity(document(name=f"a-very-long-network-name-{n}")).bridge for n in "ab")
    assert one != other
    assert len(one) == len(other) == 15


def test_the_bridge_is_named_after_the_network() -> None:
    assert Identity(document(name="a")).bridge == "cni-a"


def test_flannels_file_gives_subnet_and_mtu(tmp_path: Path) -> None:
    file = tmp_path / "subnet.env"
    file.write_text("FLANNEL_NETWORK=172.16.0.0/16\nFLANNEL_SUBNET=172.16.1.1/24\nFLANNEL_MTU=1450\n")
    subnet, mtu = Configuration(document(subnet=None, subnetFile=str(file))).subnet()
    assert (str(subnet), mtu) == ("172.16.1.0/24", 1450)


@pytest.mark.parametrize(
    "content",
    ["", "FLANNEL_SUBNET=172.16.1.1/24\n", "FLANNEL_SUBNET=x\nFLANNEL_MTU=1450\n", "FLANNEL_MTU=52\n"],
)
def test_a_broken_flannel_file_is_an_error_naming_it(tmp_path: Path, content: str) -> None:
    file = tmp_path / "subnet.env"
    file.write_text(content)
    with pytest.raises(CniError, match=r"subnetFile: .*subnet\.env"):
        Configuration(document(subnet=None, subnetFile=str(file))).subnet()


FACTORS: dict[str, str | int] = {
    "": "1",
    "k": "1e3",
    "M": "1e6",
    "G": "1e9",
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "m": "1e-3",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1G", 10**9),
        ("500M", 500 * 10**6),
        ("1Gi", 2**30),
        ("1e9", 10**9),
        ("1E9", 10**9),
        ("0.5G", 500 * 10**6),
        ("+1k", 1000),
        (".5M", 500_000),
        ("1500.5", 1501),
        ("1000000m", 1000),
        ("1T", 10**12),
        ("0.001P", 10**12),
        ("0.000001E", 10**12),
        ("2000000000u", 2000),
        ("2000000000000n", 2000),
        ("0.5Ti", 2**39),
        ("0.0005Pi", 562_949_953_422),
        ("0.0000005Ei", 576_460_752_304),
        ("15e+8", 1_500_000_000),
        ("1000000e-3", 1000),
    ],
)
def test_a_quantity_is_read_as_kubernetes_reads_it(text: str, expected: int) -> None:
    assert bits_per_second(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "G",
        "1g",
        "1 G",
        "-1G",
        "0",
        "999",
        "1.1T",
        "1E",
        "1e",
        "1e9G",
        "1e999",
        "1e009",
        "1e١",
        "1KiB",
        "0x10",
        "١G",
        "NaN",
        "1..5G",
        "1" * 50,
        "1\nG",
        "1GiGi",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        bits_per_second(text)


@given(st.decimals(0, 10**9, places=3), st.sampled_from(sorted(FACTORS)))
def test_it_agrees_with_exact_decimal_arithmetic(number: Decimal, suffix: str) -> None:
    value = int((number * Decimal(FACTORS[suffix])).to_integral_value(ROUND_CEILING))
    text = f"{number:f}{suffix}"
    if LEAST_RATE <= value <= MOST_RATE:
        assert bits_per_second(text) == value
    else:
        with pytest.raises(ValueError, match="outside"):
            bits_per_second(text)


@given(st.text())
def test_no_text_makes_it_fail_otherwise(text: str) -> None:
    try:
        rate = bits_per_second(text)
    except ValueError:
        return
    assert LEAST_RATE <= rate <= MOST_RATE
