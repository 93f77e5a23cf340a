"""Parts that tests make known, or take away: afterwards those are known that were, in the order of before.

Which tests share a process, and in which order, differs from time to time; and the order of parts is seen, in
messages and in reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from bench import generators
from bench.observations.observation import OBSERVATIONS
from bench.presentation.figures.registry import FIGURES
from bench.studies.known import STUDIES
from testbed import assembly
from testbed.enforcements import registry as enforcements
from testbed.overlays import registry as overlays
from testbed.scenario import enforcements as kinds
from testbed.scenario import networks

DICTIONARIES: tuple[dict[str, Any], ...] = (
    FIGURES,
    OBSERVATIONS,
    STUDIES,
    assembly.ORCHESTRATORS,
    assembly.PROVIDERS,
    enforcements.MAKERS,
    generators.TOOLS,
    kinds.KINDS,
    networks.KINDS,
    overlays.MAKERS,
)


@contextmanager
def put_back() -> Iterator[None]:
    """Let parts be known as before when the block ends."""
    with ExitStack() as dictionaries:
        for known in DICTIONARIES:
            dictionaries.enter_context(mock.patch.dict(known))
        yield
