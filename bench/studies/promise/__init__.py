"""Which promises does a network keep? Checks of any CNI plugin, and a report that others can read."""

from __future__ import annotations

from typing import Literal

from bench.console import values
from bench.console.statuses import HELD, JUDGED, VIOLATED
from bench.console.verb import MANY, choice, many, study_verb

Profile = Literal["ceiling", "floor", "latency", "robust"]
PROFILES: tuple[Profile, ...] = ("ceiling", "floor", "latency", "robust")

VERB = study_verb(
    "promise",
    "Ask a network which promises it keeps: limits, floors, latency; 1 if one is broken that it claims.",
    choice("network", "", "which network is asked (default: node)", values.networks),
    choice(
        "link",
        "",
        "rate of each node's link (default: what each check has; of clusters that exist: yours)",
    ),
    choice(
        "attack_own_pods",
        False,
        "on clusters that exist too, let one of the kit's pods forge frames as fast as it can; the "
        "kit's own pods and the nodes' tables are its targets",
    ),
    choice("profile", MANY, f"{', '.join(PROFILES)}; may be repeated (default: all)", lambda: list(PROFILES)),
    choice(
        "check",
        MANY,
        "one check by its name; may be repeated (default: the profiles' own; attacks, of which "
        "some-attacks tries some, only by its name)",
    ),
    many("kubeconfig", "ask clusters that exist: [CLUSTER=]FILE[@CONTEXT]; one for each cluster"),
    alone="network",
    ends={**JUDGED, HELD: "every promise that is claimed was kept", VIOLATED: "one was broken"},
)
