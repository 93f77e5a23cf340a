"""The pages' pictures of scenarios: nodes with their pods, segments with their devices, clusters."""

from __future__ import annotations

from bench.presentation import topology
from docs.parts.figures import DRAWN
from testbed.resources import HOME
from testbed.scenario import load


def render(name: str) -> str:
    """Draw one of the project's scenarios, and return the picture as Markdown. Raises ScenarioError."""
    scenario = load(HOME / "scenarios" / f"{name}.yaml")
    DRAWN.mkdir(parents=True, exist_ok=True)
    picture = DRAWN / f"topology-{name}.svg"
    picture.write_text(topology.svg(scenario), encoding="utf-8")
    return f"![{scenario.title or name}](/{picture.relative_to(HOME).as_posix()})"
