"""What an operator writes for `concorde-networks`, checked key by key."""

from __future__ import annotations

from .. import addresses
from ..cni import shown
from ..configuration import DEFAULT_LISTS, directory, invalid, network_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..addresses import Subnet

TYPE = "concorde-networks"
DEFAULT_STATE = "/run/concorde-networks"
_NODE = "node"  # where what all networks share is


class Identity:
    """Which network this is, and where its records lie: all that DEL and GC need."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Raises CniError 7."""
        self.document = document
        self.name = network_name(document)
        self.state = directory(document, "stateDir", DEFAULT_STATE)
        self.definitions = directory(document, "definitionsDir", f"{self.state}/definitions")
        self.lists = directory(document, "confDir", DEFAULT_LISTS)
        self.forwards = forwards_of(self.state)
        self.records = records_of(self.state)
        self.directory = f"{self.records}/{self.name}"
        self.node_directory = node_of(self.state)


def forwards_of(state: str) -> str:
    """Where NAMESPACE/NAME.json are, the lists that pods name instead of having them."""
    return f"{state}/forwards"


def node_of(state: str) -> str:
    """Where what all networks share is."""
    return f"{records_of(state)}/{_NODE}"


def records_of(state: str) -> str:
    """Where the records of all networks are."""
    return f"{state}/attached"


class Settings(Identity):
    """Everything there is to set. The ranges are networks: of a cluster, and of devices behind this node."""

    def __init__(self, document: dict[str, Any]) -> None:
        """Raises CniError 7."""
        super().__init__(document)
        if self.name == _NODE:
            raise invalid("name", f"{shown(self.name)} is where this plugin keeps what all networks share")
        self.cluster = _ranges(document, "clusterRanges")
        self.segments = _ranges(document, "segments")


def _ranges(document: dict[str, Any], key: str) -> list[Subnet]:
    given = document.get(key)
    if given is None:
        return []
    if not isinstance(given, list):
        raise invalid(key, f"{shown(given)} is not a list")
    found = []
    for at, value in enumerate(given):
        if not isinstance(value, str):
            raise invalid(f"{key}[{at}]", f"{shown(value)} is not a string")
        try:
            found.append(addresses.parse_subnet(value))
        except ValueError as error:
            raise invalid(f"{key}[{at}]", f"{shown(value)} {error}") from error
    return found
