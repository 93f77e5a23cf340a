"""The kinds of enforcement, as far as rules and arithmetic need them: what is claimed, told and counted.

Most are networks described in files (``described``). How one keeps promises on nodes is
``testbed.enforcements``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path as FilePath

from testbed.registry import Registry
from testbed.scenario import descriptions, links, texts
from testbed.scenario.descriptions import Claim, Counts, Description, Direction, Told
from testbed.scenario.faults import meant, unknown
from testbed.scenario.model import ENFORCEMENTS, Pod, Scenario
from testbed.scenario.words import Part

UNDESCRIBED = "none"  # how kinds that code makes attach pods, unless they do it otherwise


@dataclass(frozen=True)
class Kind:
    """A kind of enforcement."""

    name: str  # as a scenario's ``enforcement`` says it, or as its description does
    claims: frozenset[Claim] = frozenset()  # what a rate is to be; empty: nothing is promised
    told: Told = "annotation"  # how the network hears of a pod's rate
    direction: frozenset[Direction] = frozenset({"egress"})  # what of a pod's traffic is ruled
    counts: Counts = "layer2"  # what a rate counts
    caps_guarantees: bool = False  # whether a guarantee is also the most that a pod gets
    admits_answers: bool = False  # whether acknowledgements can be promised a rate
    admits_ingress: bool = False  # whether what a pod receives can be promised a rate
    shares_links: bool = False  # whether it shares out the nodes' links, so that their rate must be known
    link_share: float = 1.0  # of a node's link, that it lets traffic have
    on_underlay: bool = (
        False  # whether pods have addresses of the underlay, so that nothing is added to packets
    )
    settings: Part | None = None  # its own, where a scenario says nothing; handed to what makes it

    @property
    def promises(self) -> bool:
        """Whether pods get what they were promised, at least where links have room. A ceiling is none."""
        return "floor" in self.claims

    def ceiling_of(self, pod: Pod) -> int | None:
        """Return the most that a pod is claimed to send in the long run, bits per second as rates count.

        None if nothing is claimed of that.
        """
        if "ceiling" not in self.claims or "egress" not in self.direction:
            return None
        return pod.guarantee if self.caps_guarantees and pod.guarantee is not None else pod.ceiling

    @property
    def counts_overhead(self) -> bool:
        """Whether a guarantee counts what the pod network adds to each packet."""
        return self.counts == "underlay"


KINDS: Registry[Kind | None] = ENFORCEMENTS  # None: a shipped description, which says what it is


def register(kind: Kind) -> None:
    """Let scenarios say a kind's name from now on. Raises ValueError for a name that is taken."""
    KINDS.register(kind.name, kind)


def of(scenario: Scenario) -> Kind:
    """Return the kind that a scenario's enforcement is. Raises ScenarioError for a broken shipped file."""
    registered = KINDS.get(scenario.kept_by) if isinstance(scenario.enforcement, str) else None
    return registered or kind_of(description_of(scenario))


def keeps_on_segments(scenario: Scenario) -> bool:
    """Tell whether what keeps promises can be told of a pod's second interface, too: the own plugin can."""
    return description_of(scenario).plugins == descriptions.OURS


def refuse_unknown(option: str, word: str) -> None:
    """Raise LookupError for what an option says that is neither a name nor the path of a file."""
    if descriptions.is_path(word):
        if not texts.is_file(FilePath(word)):
            raise LookupError(f"{option}: {word}: there is no such file")
    elif word not in KINDS:
        raise LookupError(f"{option}: {unknown('network', word, KINDS)}{meant(word, KINDS)}")


def description_of(scenario: Scenario) -> Description:
    """Return the description by which a scenario's pods are attached. Raises ScenarioError as ``of``."""
    if isinstance(scenario.enforcement, Description):
        return scenario.enforcement
    return descriptions.of_name(UNDESCRIBED if KINDS.get(scenario.enforcement) else scenario.enforcement)


def kind_of(description: Description) -> Kind:
    """Return what rules and arithmetic must know of a description."""
    return Kind(
        description.name,
        claims=frozenset(description.claims),
        told=description.told,
        direction=frozenset(description.direction),
        counts=description.counts,
        caps_guarantees=description.caps_guarantees or description.annotations.guarantee is None,
        admits_answers=description.annotations.answers is not None,
        admits_ingress=description.annotations.receives is not None,
        shares_links=description.link is not None,
        link_share=description.link.share if description.link else 1.0,
        on_underlay=description.addresses == "underlay",
    )


def receiving() -> list[str]:
    """Return the names of those that can promise a rate to what a pod receives."""
    kinds = {name: kind or kind_of(descriptions.of_name(name)) for name, kind in KINDS.items()}
    return [name for name, kind in kinds.items() if kind.admits_ingress]


def shall_hold(scenario: Scenario) -> bool:
    """Tell whether a scenario's enforcement promises that its guarantees hold.

    Without a share of the links, only where the links have no rate: one that has may be full. Nobody shares
    out the trunks of zones, and few what arrives at a node from several others.
    """
    kind = of(scenario)
    if not kind.promises or any(links.contested(scenario)):
        return False
    if "arrival" not in kind.claims and any(links.met(scenario)):
        return False
    return kind.shares_links or all(links.rate_of(scenario, node) is None for node in scenario.nodes)


for _name in descriptions.shipped():
    KINDS.register(_name, None)
