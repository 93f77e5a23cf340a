"""What nodes turned out to have that were there before the testbed: nobody can know it before they are up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from testbed.scenario.model import Scenario
from testbed.scenario.words import Address, Interface, Name, Part


class Found(Part):
    """Addresses, uplinks and names of nodes, and the MTU between them; empty for nodes a testbed makes."""

    addresses: dict[Name, Address] = Field({}, description="on the underlay")
    uplinks: dict[Name, Interface] = Field({}, description="interfaces on the underlay")
    names: dict[Name, str] = Field({}, description="in clusters that exist")
    mtu: int | None = Field(None, description="of the underlay, bytes")

    def __bool__(self) -> bool:
        return self != Found()

    def merged(self, later: Found) -> Found:
        """Return what is known once more has been found."""
        return Found(
            addresses={**self.addresses, **later.addresses},
            uplinks={**self.uplinks, **later.uplinks},
            names={**self.names, **later.names},
            mtu=self.mtu if later.mtu is None else later.mtu,
        )

    def applied(self, scenario: Scenario) -> Scenario:
        """Return a scenario that states what was found."""
        nodes = dict(scenario.nodes)
        stated: Mapping[str, Mapping[str, Any]] = {
            "address": self.addresses,
            "uplink": self.uplinks,
            "name": self.names,
        }
        for field, values in stated.items():
            for name, value in values.items():
                nodes[name] = nodes[name].model_copy(update={field: value})
        underlay = scenario.underlay
        if self.mtu is not None:
            underlay = underlay.model_copy(update={"mtu": self.mtu})
        return scenario.model_copy(update={"nodes": nodes, "underlay": underlay})
