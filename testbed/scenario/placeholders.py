"""What a CNI configuration list may leave open, as ``${mtu}``, until it is known for which node it is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from testbed.scenario.faults import Fault, Path, listed, meant

# A text that is one placeholder and nothing else becomes its value: a number stays a number.
MEANINGS: Mapping[str, str] = {
    "name": "the network's name",
    "cluster": "the cluster's name in the scenario",
    "node": "the node's name in the scenario",
    "bridge": "a name for the cluster's bridge",
    "subnet": "the pods' subnet on the node; with addresses underlay, the underlay's",
    "gateway": "the address of the pods' gateway; with addresses underlay, the node's own",
    "range_start": "the first address for the node's pods",
    "range_end": "the last address for the node's pods",
    "subnet_file": "the file in which flannel tells subnet and MTU",
    "mtu": "the pods' MTU, bytes (a number)",
    "overhead": "bytes that a pod's packet grows by on the underlay (a number)",
    "frame_overhead": "bytes of a link that a frame takes besides its own (a number)",
    "uplink": "the node's interface on the underlay",
    "capacity": "what may be used of the node's link, bits per second",
    "control_ports": "TCP ports that go before all promises (a list)",
    "count": "what the scenario says that a guarantee counts",
}

_OPEN = re.compile(r"\$\{([^}]*)\}")


def used(value: Any) -> set[str]:
    """Return the placeholders in a value, however deep."""
    return {name for _, text in _texts(value, ()) for name in _OPEN.findall(text)}


def unknown(value: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield a fault for each placeholder that does not exist."""
    for at, text in _texts(value, path):
        for name in _OPEN.findall(text):
            if name not in MEANINGS:
                known = f"placeholders: {listed(MEANINGS)}"
                yield Fault(at, f"no placeholder ${{{name}}}{meant(name, MEANINGS)} ({known})")


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Return a value with every placeholder replaced."""
    if isinstance(value, dict):
        return {key: filled(one, values) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    if not isinstance(value, str):
        return value
    if whole := _OPEN.fullmatch(value):
        return values[whole[1]]
    return _OPEN.sub(lambda match: str(values[match[1]]), value)


def _texts(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _texts(one, (*path, key))
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _texts(one, (*path, index))
