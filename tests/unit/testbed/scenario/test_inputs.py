"""Scenarios and overrides, near to real ones and broken in all ways: each is read, or refused with a path.

CONCORDE_SCENARIO_INPUTS says how many of them are made up.
"""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.scenario import Scenario, ScenarioError, load, render_yaml
from testbed.scenario.reading import parse
from testbed.scenario.texts import unshown
from tests import cases, effort
from tests.paths import ROOT

SCENARIOS = ROOT / "scenarios"
TEXTS = [file.read_text(encoding="utf-8") for file in sorted(SCENARIOS.rglob("*.yaml"))]
INPUTS = cases.count("CONCORDE_SCENARIO_INPUTS", 300, 50_000)
MOST_LINES = 1_000_000  # of ours that run; a scenario as large as may be takes them
LINE = re.compile(r"(?:\S+\.yaml|--set|--scale): .")

ODD_TEXTS = [
    "", "~", "yes", "0x1F", "0o17", "010", "1_000", "1e99", ".inf", ".nan", "-1", "9" * 50, "2022-02-30",
    "2022-02-03T25:00:00Z", "12:30:45", "<<", "*a", "&a 1", "!!python/object:os.system x", "!!timestamp x",
    "%TAG ! x", "\x1b[31m", "\u202e", "\u2028", "a\x00b", "\ud800", "a" * 300, "A-1", "worker-01", "1G",
    "1GB", "172.16.0.0/12", "10.0.0.0/33", "0.0.0.0/0", '"\\uD800"', '"\\UFFFFFFFF"', "'", '"', "|", "> x",
    "? x", "- x", "{a: [", "[" * 100, "{x: *a}", "@", "`", "%", "\t", "a: b: c",
]  # fmt: skip
SNIPPETS = [
    "<<: *a\n", "<<: [*a, *a]\n", "x: &a {b: c}\n", "  <<: {a: b}\n", "---\n", "...\n", "? [a]\n: b\n",
    "1: 2\n", "null: {}\n", "2022-02-03: {}\n", "%YAML 1.1\n---\n", "\t\n", "\x07", "\ufeff", "\x85",
    "name: again\n",
]  # fmt: skip

values: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**45)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(ODD_TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(data: Any) -> list[tuple[Any, str | int]]:
    """Every mapping and list in some data, with each of its keys."""
    found = []
    for key in list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        found.append((data, key))
        found += places(data[key])
    return found


@st.composite
def structures(draw: st.DrawFn) -> str:
    """A real scenario with some of its fields replaced, removed, added, renamed or moved."""
    data = parse(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(1, 4))):
        there = places(data)
        if not there:
            break
        place, key = there[draw(st.integers(0, len(there) - 1))]
        match draw(st.sampled_from(["replace", "replace", "remove", "add", "rename", "move"])):
            case "replace":
                place[key] = draw(values)
            case "remove":
                del place[key]
            case "add" if isinstance(place, list):
                place.append(draw(values))
            case "add":
                place[draw(st.text(max_size=8) | st.sampled_from(ODD_TEXTS))] = draw(values)
            case "rename" if isinstance(place, dict):
                place[draw(st.sampled_from(ODD_TEXTS))] = place.pop(key)
            case _:
                other, elsewhere = there[draw(st.integers(0, len(there) - 1))]
                other[elsewhere] = copy.deepcopy(place[key])
    return json.dumps(data, ensure_ascii=draw(st.booleans()))


short = st.text(max_size=6)


@st.composite
def broken_texts(draw: st.DrawFn) -> str:
    """The text of a real scenario with lines lost, doubled and cut, and with what YAML knows besides."""
    lines = draw(st.sampled_from(TEXTS)).splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(lines) - 1)) if lines else 0
        line = lines[at] if lines else ""
        cut = draw(st.integers(0, len(line)))
        name, _, rest = line.partition(":")
        snippet, odd, text = draw(st.sampled_from(SNIPPETS)), draw(st.sampled_from(ODD_TEXTS)), draw(short)
        changes = [
            [], [line, line], [line[:cut]], [line[:cut], line[cut + 1 :]], [" ", line], [line.lstrip()],
            [f"{name}: &a ", rest], [f"{name}: *a\n"], [line, snippet], [f"{name}: {odd}\n"],
            [line[:cut], text, line[cut:]],
        ]  # fmt: skip
        lines[at : at + 1] = draw(st.sampled_from(changes))
    return "".join(lines)


PATHS = [
    "title", "name", "nodes", "nodes.master-01", "nodes.master-01.address", "clusters.a.workers",
    "clusters.a.workers[0]", "clusters.a.pod_cidr", "clusters.b.flannel.vni", "pods.A-1",
    "pods.A-1.guarantee", "flows", "flows[0]", "flows[0].name", "flows[1].start", "flows[0].duration",
    "disturbances[0].to",
    "underlay.rate", "underlay.mtu", "measurement.interval", "thresholds.mean", "shaping.at", "enforcement",
    "flows[99].to", "flows[-1]", "flows[٣]", f"flows[{'9' * 5000}]", "a." * 100, "..", "[0]", "",
    "pods.\x1b.node", "nodes[0]", "flows.to", "new.new.new", "<<",
]  # fmt: skip
overrides = st.tuples(
    st.sampled_from(PATHS) | st.text(max_size=12),
    st.sampled_from(["=", "=", "=", "=", ""]),
    st.sampled_from(ODD_TEXTS) | st.text(max_size=12),
).map("".join)


def read(file: Path, changes: list[str]) -> None:
    """Assert that a scenario is read, and then can be written, or is refused as it should be."""

    def attempt() -> None:
        try:
            found.append(load(file, changes))
        except ScenarioError as error:
            found.append(error)

    found: list[Scenario | ScenarioError] = []
    assert effort.lines(attempt) < MOST_LINES
    if isinstance(found[0], ScenarioError):
        message = str(found[0])
        assert all(LINE.match(line) for line in message.split("\n")), message
        assert set(unshown(message)) <= {"\n"}
        assert len(message) < 50_000
    else:
        file.write_text(render_yaml(found[0]), encoding="utf-8")
        assert load(file) == found[0]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("inputs") / "input.yaml"


made_up = settings(
    max_examples=INPUTS // 2,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.long
@made_up
@given(text=structures() | broken_texts())
def test_any_file_is_read_or_refused_with_a_path(file: Path, text: str) -> None:
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    read(file, [])


@pytest.mark.long
@made_up
@given(text=st.sampled_from(TEXTS), changes=st.lists(overrides, min_size=1, max_size=3))
def test_any_override_is_taken_or_refused_with_a_path(file: Path, text: str, changes: list[str]) -> None:
    file.write_text(text, encoding="utf-8")
    read(file, changes)
