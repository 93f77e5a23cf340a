"""An experiment as data: its model, the rules a model alone cannot state, and its file."""

from testbed.scenario import enforcements, networks  # whose names the model knows
from testbed.scenario.faults import ScenarioError
from testbed.scenario.files import load, parse, render_schema, render_yaml
from testbed.scenario.model import (
    Cluster,
    Container,
    Pod,
    Requests,
    Scenario,
    Service,
    Traffic,
    TrafficEndpoint,
    Transfer,
)

__all__ = [
    "Cluster",
    "Container",
    "Pod",
    "Requests",
    "Scenario",
    "ScenarioError",
    "Service",
    "Traffic",
    "TrafficEndpoint",
    "Transfer",
    "enforcements",
    "load",
    "networks",
    "parse",
    "render_schema",
    "render_yaml",
]
