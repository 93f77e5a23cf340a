"""Without enforcement pods are attached, and nothing is expected of nodes."""

from __future__ import annotations

from testbed.enforcements import registry
from tests.unit.testbed.builders import addressed
from tests.unit.testbed.enforcements.doubles import standing


def test_nothing_is_installed_looked_for_or_guarded() -> None:
    addressing = addressed("contmec", "enforcement=none")
    none, up = registry.of(addressing), standing(addressing)
    none.install(up)
    assert none.check(up) == []
    assert none.guarded(up) == {}
    assert none.counters(up) == {}
    assert not none.installed
    (plugin,) = none.network_list("a", "worker-01").plugins
    assert plugin["enforcement"] == "none"
