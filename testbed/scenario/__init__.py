"""An experiment as data: its model, the rules a model alone cannot state, and its file."""

from testbed.scenario.files import ScenarioError, load, render_schema, render_yaml
from testbed.scenario.model import Cluster, Container, Pod, Scenario, Traffic, TrafficEndpoint

__all__ = [
    "Cluster",
    "Container",
    "Pod",
    "Scenario",
    "ScenarioError",
    "Traffic",
    "TrafficEndpoint",
    "load",
    "render_schema",
    "render_yaml",
]
