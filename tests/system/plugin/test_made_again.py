"""Who is force-deleted and made again keeps its network when the first one's DEL comes late."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests import cases
from tests.system.plugin.again import Run
from tests.system.plugin.conftest import Node

SEQUENCES = cases.some_of("CONCORDE_MADE_AGAIN", 1, 34)  # of six kinds: 204
STEPS = 10


@pytest.mark.long(one_in=4, counted=True)
@pytest.mark.parametrize("naming", ["own", "fixed"])
@pytest.mark.parametrize("enforcement", ["none", "pod", "node"])
def test_whatever_comes_late_no_living_pod_notices(plugin: Path, enforcement: str, naming: str) -> None:
    counted: Counter[str] = Counter()
    for number in SEQUENCES(1):
        node = Node(plugin)
        try:
            node.run("ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0-peer")
            node.run("ip", "link", "set", "eth0", "up")
            run = Run(node, enforcement, naming == "fixed", number)
            run.begin()
            for _ in range(STEPS):
                run.step()
            run.check(0)
            counted += run.counted
        finally:
            node.close()
    assert counted["late"], counted
