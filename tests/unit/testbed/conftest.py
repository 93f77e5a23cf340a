from __future__ import annotations

import pytest

from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed

MACHINES = {"master-01": 104, "master-02": 103, "worker-01": 102, "worker-02": 101}


@pytest.fixture
def contmec() -> Addressing:
    """The paper's scenario: two clusters, and two workers of both."""
    return addressed("contmec")


@pytest.fixture
def congested() -> Addressing:
    """A scenario whose nodes share out a link that is too slow for all."""
    return addressed("congested")


@pytest.fixture
def contmec_on_machines() -> Addressing:
    """The paper's scenario on machines that have addresses and interfaces of their own."""
    own = [f"nodes.{name}={{address: 192.168.56.{host}, uplink: ens5}}" for name, host in MACHINES.items()]
    return addressed("contmec", *own)
