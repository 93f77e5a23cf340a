"""Nodes as network namespaces of one Linux host, inside a sandbox."""

from __future__ import annotations

from testbed.access.clocks import Clock
from testbed.access.place import in_parallel
from testbed.networks import underlay
from testbed.providers.netns.sandbox import Entrance, Sandbox, node_directory
from testbed.scenario import Scenario

# The dot keeps a run's own sandbox apart from lasting testbeds, whose names have none.
RUN = "a.run"


class NetnsProvider:
    """Brings up a scenario's nodes in a sandbox; see testbed.providers.Provider."""

    def __init__(self, scenario: Scenario, name: str = RUN) -> None:
        self.scenario = scenario
        self._name = name
        self.sandbox: Sandbox | None = None
        self.nodes: dict[str, Entrance] = {}

    @property
    def between(self) -> list[Entrance]:
        """The switch."""
        return [self.sandbox.switch] if self.sandbox else []

    @property
    def beneath(self) -> list[Entrance]:
        """Nothing that they do not see: they have this machine's processors."""
        return []

    def clocks(self) -> dict[str, Clock]:
        """None: all have this machine's."""
        return {}

    def up(self) -> None:
        """Start the sandbox, make the nodes, and plug their cables into the switch."""
        scenario = self.scenario
        self.sandbox = box = Sandbox.start(self._name)
        box.add_nodes(list(scenario.nodes))
        self.nodes = {name: box.node(name) for name in scenario.nodes}
        namespaces = {name: f"{node_directory(name)}/ns/net" for name in scenario.nodes}
        box.switch.run(["ip", "-batch", "-"], stdin=underlay.render_switch(scenario, namespaces))
        if rates := underlay.render_rates(scenario):
            box.switch.run(["tc", "-batch", "-"], stdin=rates)
        in_parallel(self._connect, scenario.nodes)

    def down(self) -> None:
        """End the sandbox and with it all it holds."""
        if self.sandbox is not None:
            self.sandbox.stop()
            self.sandbox = None

    def _connect(self, name: str) -> None:
        self.nodes[name].run(["ip", "-batch", "-"], stdin=underlay.render_uplink(self.scenario, name))
