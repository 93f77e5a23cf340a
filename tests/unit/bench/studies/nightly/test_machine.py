"""A machine is the same after a boot, and another when it is one."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from bench.measurement import environment
from bench.studies.nightly import night

ENVIRONMENT: dict[str, Any] = {
    "host": {
        "kernel": "6.18.44-1-cloud",
        "machine": "x86_64",
        "processors": ["Intel(R) Xeon(R) Processor @ 2.30GHz"] * 2,
        "processors_usable": 2,
        "hypervisor": "KVM",
        "memory_bytes": 8 * 2**30 - 300 * 2**20,
        "load_average": [0.1, 0.2, 0.3],
        "kernel_version": "#1 SMP",
    },
    "tools": {"iperf3": "iperf 3.12"},
    "harness": {"commit": "c" * 40, "python": "3.11.2", "requirements": "0123"},
}


def of(**host: Any) -> str:
    changed = copy.deepcopy(ENVIRONMENT)
    changed["host"].update(host)
    return night.identity(changed)


def test_it_has_twelve_hex_digits() -> None:
    assert re.fullmatch("[0-9a-f]{12}", of())
    assert re.fullmatch("[0-9a-f]{12}", night.identity({}))
    assert re.fullmatch("[0-9a-f]{12}", night.identity(environment.surroundings()))


@pytest.mark.parametrize(
    "host",
    [
        {"kernel": "6.18.45-2-cloud"},
        {"processors": ["Intel(R) Xeon(R) Processor @ 2.29GHz"] * 2},
        {"memory_bytes": 8 * 2**30 - 301 * 2**20},
        {"load_average": [9.0, 9.0, 9.0], "kernel_version": "#2 SMP", "clock_source": "tsc"},
    ],
)
def test_what_differs_from_boot_to_boot_makes_no_other(host: dict[str, Any]) -> None:
    assert of(**host) == of()


@pytest.mark.parametrize(
    "host",
    [
        {"kernel": "6.19.1-1-cloud"},
        {"machine": "aarch64"},
        {"processors": ["AMD EPYC"] * 2},
        {"processors_usable": 4},
        {"memory_bytes": 16 * 2**30},
        {"hypervisor": "Microsoft"},
    ],
)
def test_another_machine_is_another(host: dict[str, Any]) -> None:
    assert of(**host) != of()


def test_what_may_change_stands_beside() -> None:
    beside = night.circumstances(ENVIRONMENT)
    assert beside == {
        "commit": "c" * 40,
        "iperf3": "iperf 3.12",
        "pinned packages": "0123",
        "kernel": "6.18.44-1-cloud",
        "Python": "3.11.2",
    }
    uncommitted = {**ENVIRONMENT, "harness": {**ENVIRONMENT["harness"], "uncommitted_changes": True}}
    assert night.circumstances(uncommitted)["commit"] == f"{'c' * 40} with uncommitted changes"
    assert night.circumstances({})["kernel"] == "unknown"
