from __future__ import annotations

import pytest

from testbed.scenario.addressing import Addressing
from tests.unit.testbed.builders import addressed


@pytest.fixture
def contmec() -> Addressing:
    """The paper's scenario: two clusters, and two workers of both."""
    return addressed("contmec")


@pytest.fixture
def congested() -> Addressing:
    """A scenario whose nodes share out a link that is too slow for all."""
    return addressed("congested")
