"""What ways are measured on: testbeds of this machine's own nodes, with pods and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from testbed.assembly import assemble
from testbed.providers import Together
from testbed.scenario import Scenario
from testbed.testbed import Testbed

PROVIDER, ORCHESTRATOR = "netns", "cni"


@contextmanager
def ground(scenario: Scenario) -> Iterator[tuple[Testbed, Together]]:
    """Bring a testbed up, and take it down at the end of the block.

    Raises LookupError for a backend that this machine cannot run, RuntimeError when it does not come up.
    """
    with assemble(scenario, PROVIDER, ORCHESTRATOR).running() as testbed:
        assert isinstance(testbed.provider, Together), "these nodes have one kernel"
        yield testbed, testbed.provider


def network_of(testbed: Testbed, together: Together, pod: str) -> str:
    """Return the path of a pod's network, where all are seen."""
    return together.inside(testbed.networks[pod])
