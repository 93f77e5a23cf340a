"""A network as data: how pods are attached, how a promise is told to its plugins, and what it claims.

A description says nothing that only code can do, so anybody's CNI plugins can be measured without any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from testbed.scenario import placeholders
from testbed.scenario.faults import Fault, Path
from testbed.scenario.words import Interface, Name, Part, Rate, Share, Title

Claim = Literal["floor", "ceiling"]
Told = Literal["annotation", "capability", "nothing"]
Direction = Literal["egress", "ingress"]
Counts = Literal["layer2", "payload", "underlay"]

# A key of an annotation (Kubernetes' documentation, "Annotations: Syntax and character set").
Key = Annotated[str, StringConstraints(pattern=r"^([a-z0-9.-]{1,253}/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61})$")]

# What machines are rid of with all in it, so it is nothing that could be somebody's.
StateDirectory = Annotated[str, StringConstraints(pattern=r"^/run/[a-z0-9][a-z0-9-]{2,40}$")]

BANDWIDTH = "bandwidth"  # the capability by which runtimes tell limits (CNI conventions)


class Annotations(Part):
    """By which annotations a pod says its rates."""

    guarantee: Key | None = Field(
        None, description="for the rate promised; none: a limit is all that can be said, so it is that"
    )
    answers: Key | None = Field(
        None, description="for the rate promised to acknowledgements; none: they cannot be promised any"
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
        [], description="what it claims to be for a rate: a floor, a ceiling, both; none: no promise"
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
    installed: bool = Field(
        False, description="whether clusters that exist must have the Concorde plugin, with this enforcement"
    )
    remains: Remains = Remains()


def faults(description: Description, path: Path = ()) -> Iterator[Fault]:
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
    yield from placeholders.unknown(conflist, at)
    if description.link is None and "capacity" in placeholders.used(conflist):
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
