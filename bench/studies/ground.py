"""What studies measure on beside recordings: nodes of this machine, which have one kernel and one clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from bench.recording.records import StudyRequest
from testbed.assembly import assemble
from testbed.scenario import Scenario
from testbed.testbed import Testbed

PROVIDER, ORCHESTRATOR = "netns", "cni"


def refuse_elsewhere(asked: StudyRequest) -> None:
    """Raise LookupError for other nodes than these."""
    if (asked.provider, asked.orchestrator) != (PROVIDER, ORCHESTRATOR):
        raise LookupError(
            f"{asked.study}: measured on nodes of one kernel: --provider {PROVIDER} and "
            f"--orchestrator {ORCHESTRATOR}, or neither"
        )


@contextmanager
def ground(scenario: Scenario) -> Iterator[Testbed]:
    """Bring a testbed up, and take it down at the end of the block.

    Raises LookupError for a part that this machine cannot run, RuntimeError when it does not come up.
    """
    with assemble(scenario, PROVIDER, ORCHESTRATOR).running() as testbed:
        yield testbed
