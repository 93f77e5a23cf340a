"""A network as data: how pods are attached, how a promise is told to its plugins, and what it claims.

A description says nothing that only code can do, so anybody's CNI plugins can be measured without any. Its
configuration list may leave open, as ``${mtu}``, what is only known once it is known for which node it is.

The shipped ones have names, anybody's own are files. A file may name others: the configuration list, and the
directory of plugins, both relative to itself. What is read holds the list itself and a whole path, so that a
recording is complete without these files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path as FilePath
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, ValidationError

from testbed import resources
from testbed.scenario import reading, texts
from testbed.scenario.faults import Fault, Path, ScenarioError, explained, listed, meant
from testbed.scenario.words import Interface, Name, Part, Rate, Share, Title

Claim = Literal["floor", "ceiling", "arrival"]
Told = Literal["annotation", "capability", "nothing"]
Direction = Literal["egress", "ingress"]
Counts = Literal["layer2", "payload", "underlay"]

# A key of an annotation (Kubernetes' documentation, "Annotations: Syntax and character set").
Key = Annotated[str, StringConstraints(pattern=r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61})$")]

# What machines are rid of with all in it, so it is nothing that could be somebody's.
StateDirectory = Annotated[str, StringConstraints(pattern=r"^/run/[a-z0-9][a-z0-9-]{2,40}$")]

BANDWIDTH = "bandwidth"  # the capability by which runtimes tell limits (CNI conventions)
OURS = "concorde"  # as ``plugins``: those of this project, which are built
MOST_BYTES = 1 << 20  # of a configuration list

# A text that is one placeholder and nothing else becomes its value: a number stays a number.
PLACEHOLDERS: Mapping[str, str] = {
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
    "underlay": "the network of all nodes' addresses there",
    "capacity": "what may be used of the node's link, bits per second",
    "control_ports": "TCP ports that go before all promises (a list)",
    "count": "what the scenario says that a guarantee counts",
}

_OPEN = re.compile(r"\$\{([^}]*)\}")


class Annotations(Part):
    """By which annotations a pod says its rates."""

    guarantee: Key | None = Field(
        None, description="for the rate promised; none: a limit is all that can be said, so it is that"
    )
    answers: Key | None = Field(
        None, description="for the rate promised to acknowledgements; none: they cannot be promised any"
    )
    receives: Key | None = Field(
        None, description="for the rate promised to what a pod receives; none: that cannot be promised any"
    )
    ceiling: Key | None = Field("kubernetes.io/egress-bandwidth", description="for the limit")
    ingress: Key | None = Field(
        "kubernetes.io/ingress-bandwidth", description="for the limit of what comes in, where one is"
    )


class LinkShare(Part):
    """What a network shares out of each node's link."""

    share: float = Field(1.0, gt=0, le=1, description="of the link's rate, that its classes use")
    reserve: Share = Field(0.0, description="of that, which is promised to no pod")


class Remains(Part):
    """What a network makes on a node, beside the pods' own interfaces."""

    state: list[StateDirectory] = Field([], description="directories in which it keeps what it knows")
    tables: list[tuple[str, str]] = Field([], description="of nftables: family and name")
    trees: list[Interface | Literal["${uplink}"]] = Field(
        [], description="interfaces of the node whose root qdisc is its own"
    )


class Description(Part):
    """A network that pods can be attached to."""

    name: Name = Field(description="as tables and figures call it")
    title: Title = Field("", max_length=120)
    claims: list[Claim] = Field(
        [],
        description="what it claims to be for a rate: a floor, a ceiling, both; arrival: a floor also at the "
        "receiver's link; none: no promise",
    )
    told: Told = Field(
        "nothing",
        description="how it hears of a pod's rate: from the pod's annotations, by the capability bandwidth "
        "(which runtimes make of annotations), or not at all",
    )
    direction: list[Direction] = Field(
        ["egress"], min_length=1, description="what of a pod's traffic it rules"
    )
    counts: Counts = Field(
        "layer2",
        description="what its rates count: Ethernet frames as the pod sends them, their payload, or frames "
        "as they are on the underlay",
    )
    caps_guarantees: bool = Field(
        False,
        description="with the claim ceiling: whether a pod's guarantee is also the most it gets; always so "
        "without an annotation for guarantees",
    )
    burst: Rate | None = Field(
        None, description="bits told beside a limit by the capability; none: the paper's, 84 ms of the rate"
    )
    annotations: Annotations = Annotations()
    conflist: dict[str, Any] | None = Field(
        None,
        description="the CNI configuration list, or the path to one in JSON, with placeholders such as "
        "${subnet}; none: only for clusters that exist",
        json_schema_extra={"anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}]},
    )
    plugins: str | None = Field(
        None,
        description="the directory of its plugins, looked at before those of the reference plugins; "
        "concorde: this project's own, which is built",
    )
    addresses: Literal["pods", "underlay"] = Field(
        "pods", description="where pods' addresses are from: the cluster's subnet, or a range of the underlay"
    )
    link: LinkShare | None = Field(
        None, description="with it the nodes' links are shared out, so that their rate must be known"
    )
    guards: Literal["pod", "uplink"] | None = Field(
        None, description="where no packet may leave but through a class: looked at after each run"
    )
    agent: bool = Field(
        False, description="whether Concorde's agent must run on nodes, with a key of its cluster's"
    )
    installed: bool = Field(
        False, description="whether clusters that exist must have the Concorde plugin, with this enforcement"
    )
    remains: Remains = Remains()


def _contradictions(description: Description, path: Path = ()) -> Iterator[Fault]:
    """Yield what of a description contradicts itself."""
    if description.claims and description.told == "nothing":
        yield Fault((*path, "told"), "must be annotation or capability if there are claims")
    conflist = description.conflist
    if conflist is None:
        return
    at = (*path, "conflist")
    plugins = conflist.get("plugins")
    if not isinstance(plugins, list) or not plugins:
        yield Fault((*at, "plugins"), "expected a list of plugins, each with its type")
        return
    for index, plugin in enumerate(plugins):
        kind = plugin.get("type") if isinstance(plugin, dict) else None
        if not isinstance(kind, str) or not kind or "/" in kind:
            yield Fault((*at, "plugins", index, "type"), "expected the name of a plugin's program")
    yield from _unknown_placeholders(conflist, at)
    if description.link is None and "capacity" in placeholders_in(conflist):
        yield Fault(
            (*path, "link"), "${capacity} is a share of the nodes' links: say which, as in {share: 0.99}"
        )
    if description.told == "capability" and not any(_hears(plugin) for plugin in plugins):
        yield Fault(
            (*path, "told"),
            'no plugin of conflist has "capabilities": {"bandwidth": true}, so none would hear of it',
        )


def _hears(plugin: Any) -> bool:
    declared = plugin.get("capabilities") if isinstance(plugin, dict) else None
    return isinstance(declared, dict) and bool(declared.get(BANDWIDTH))


def placeholders_in(value: Any) -> set[str]:
    """Return the placeholders in a value, however deep."""
    return {name for _, text in _texts(value, ()) for name in _OPEN.findall(text)}


def _unknown_placeholders(value: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield a fault for each placeholder that does not exist."""
    for at, text in _texts(value, path):
        for name in _OPEN.findall(text):
            if name not in PLACEHOLDERS:
                known = f"placeholders: {listed(PLACEHOLDERS)}"
                yield Fault(at, f"no placeholder ${{{name}}}{meant(name, PLACEHOLDERS)} ({known})")


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


def shipped() -> Iterator[str]:
    """Yield the names that need no path."""
    yield from sorted(file.stem for file in resources.NETWORKS.glob("*.yaml"))


@cache
def of_name(name: str) -> Description:
    """Return a shipped description. Raises ScenarioError."""
    return read(resources.NETWORKS / f"{name}.yaml")


def is_path(word: str) -> bool:
    """Tell whether a word for a network is the path of a file, and no name."""
    return "/" in word or word.endswith((".yaml", ".yml"))


def read(file: FilePath, named_in: str = "", at: Path = ()) -> Description:
    """Return what a file describes, which another may name at some path there.

    Raises ScenarioError with every fault; that it cannot be read is one of who names it.
    """
    try:
        text = texts.read(file, reading.MOST_BYTES)
    except texts.TextError as error:
        words = f"{file}: {error}" if named_in else str(error)
        raise ScenarioError(named_in or str(file), [Fault(at, words)]) from None
    try:
        data = reading.parse(text)
    except reading.ReadingError as error:
        raise ScenarioError(str(file), [Fault((), str(error))]) from None
    if isinstance(data, dict):
        data.setdefault("name", file.stem)
    return complete(data, str(file), file.parent, ())


def complete(data: Any, file: str, base: FilePath, at: Path) -> Description:
    """Return a description that stands in a file, at some path there; what it names is relative to ``base``.

    Raises ScenarioError with every fault.
    """
    if not isinstance(data, dict):
        raise ScenarioError(file, [Fault(at, "not a description: expected a mapping")])
    whole = dict(data)
    if isinstance(whole.get("conflist"), str):
        whole["conflist"] = _conflist(base / whole["conflist"], file, (*at, "conflist"))
    plugins = whole.get("plugins")
    if isinstance(plugins, str) and plugins != OURS:
        whole["plugins"] = str((base / plugins).resolve())
    try:
        description = Description.model_validate(whole)
    except ValidationError as error:
        found = [Fault((*at, *path), text) for path, text in explained(error)]
        raise ScenarioError(file, found) from None
    if found := list(_contradictions(description, at)):
        raise ScenarioError(file, found)
    return description


def _conflist(file: FilePath, named_in: str, at: Path) -> Any:
    try:
        return json.loads(texts.read(file, MOST_BYTES))
    except texts.TextError as error:
        raise ScenarioError(named_in, [Fault(at, f"{file}: {error}")]) from None
    except ValueError as error:
        raise ScenarioError(named_in, [Fault(at, f"{file} is not JSON: {error}")]) from None
    except RecursionError:
        raise ScenarioError(named_in, [Fault(at, f"{file} is nested too deeply")]) from None
