"""A component that is killed has ended, and that is noted, when who killed it goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from testbed.access.components import Component
from testbed.access.local import Local
from testbed.access.place import Node
from tests.waiting import until

# What notes an end takes its time, as on a machine that has its hands full.
SLOW_MV = '#!/bin/sh\nsleep 0.2\nexec /bin/mv "$@"\n'


@pytest.fixture
def component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Component]:
    (tmp_path / "mv").write_text(SLOW_MV, encoding="utf-8")
    (tmp_path / "mv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    found = Component("it", cast(Node, Local()), str(tmp_path / "it"), ["sleep", "1000"])
    yield found
    found.kill()


def test_its_end_is_known_once_it_is_killed(component: Component) -> None:
    component.start()
    assert component.fault() is None
    component.kill()
    assert (component.fault() or "").startswith("it on this machine ended with 137: ")
    component.kill()  # again is fine


def test_what_it_had_begun_is_not_done_after_it(component: Component) -> None:
    script = "sleep 1000 & echo $! >child.new; mv child.new child; wait"
    begins = Component("it", component.place, component.directory, ["sh", "-c", script])
    begins.start()
    until(lambda: (Path(begins.directory) / "child").exists())
    begins.kill()
    child = (Path(begins.directory) / "child").read_text().strip()
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_who_has_just_been_started_can_be_killed(component: Component) -> None:
    component.start()
    component.restart()
    component.restart()
    assert component.fault() is None
    component.kill()
    assert component.fault()


def test_who_was_never_started_is_not_waited_for(component: Component) -> None:
    component.kill()
    assert not Path(component.directory).exists()


@pytest.mark.parametrize(
    "why",
    [
        "panic: assignment to entry in nil map",
        "fatal error: concurrent map writes",
        "F1129 13:47:00.1 1 server.go:1] lost",
    ],
)
def test_a_go_programs_end_is_told_by_its_reason_not_its_stacks(component: Component, why: str) -> None:
    script = 'echo "$0"; for line in 1 2 3 4 5 6 7 8 9; do echo "created by main.go:$line"; done; exit 2'
    ends = Component("it", component.place, component.directory, ["sh", "-c", script, why])
    ends.start()
    until(ends.fault)
    assert ends.fault() == f"it on this machine ended with 2: {why}"
