"""Which endpoints of a service a proxy uses on its node; pure, and as kube-proxy (pkg/proxy/topology.go).

Hints are followed only where all of it fits. Whatever does not makes a proxy use all ready endpoints: the
safeguards of Topology Aware Hints that are not its controller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, NamedTuple

from edge.services.endpoints import Endpoint, Slice

LOCAL = "Local"
# On a Service: Cluster or Local, where its API keeps no spec.internalTrafficPolicy.
INTERNAL_POLICY = "concorde.contmec.dev/internal-traffic-policy"


class Why(Enum):
    """Why a proxy uses the endpoints that it uses, in kube-proxy's words where it has some."""

    HINTED = "endpoints hinted for its zone"
    OFF = "hints are off"
    POLICY = "hints are ignored: a traffic policy is Local"
    NO_LABEL = "hints are ignored: node is missing label topology.kubernetes.io/zone"
    MISSING_HINT = "hints are ignored: one or more endpoints is missing a zone hint"
    NOT_FOR_ZONE = "hints are ignored: no hints were provided for zone"
    ON_NODE = "endpoints on its node: the traffic policy is Local"
    TERMINATING = "no endpoint is ready: those that end and still serve"
    NONE = "no endpoint can be used"


class Choice(NamedTuple):
    """The endpoints that a proxy uses, one an address, and why."""

    endpoints: tuple[Endpoint, ...]
    why: Why


class Policies(NamedTuple):
    """A Service's traffic policies, ``Cluster`` or ``Local``."""

    internal: str = "Cluster"
    external: str = "Cluster"


CLUSTER = Policies()


def policies_of(service: Mapping[str, Any]) -> Policies:
    """Return the policies of a Service, as the API says it."""
    spec = service.get("spec") or {}
    internal = spec.get("internalTrafficPolicy") or _annotated(service)
    return Policies(internal or CLUSTER.internal, spec.get("externalTrafficPolicy") or CLUSTER.external)


def _annotated(service: Mapping[str, Any]) -> str:
    annotations = (service.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(INTERNAL_POLICY) or "")


def distinct(slices: Iterable[Slice]) -> tuple[Endpoint, ...]:
    """Return each address once, as the first slice says it: one that moves is in two slices meanwhile."""
    found: dict[str, Endpoint] = {}
    for each in slices:
        for one in each.endpoints:
            found.setdefault(one.address, one)
    return tuple(found.values())


def choose(
    endpoints: Iterable[Endpoint],
    zone: str,
    hinted: bool,
    node: str = "",
    policies: Policies = CLUSTER,
    from_outside: bool = False,
) -> Choice:
    """Return what is used on a node of a zone, for traffic from pods or ``from_outside`` the cluster.

    ``hinted`` says whether the service asks for hints. If either policy is Local it gets none, as documented;
    newer kube-proxies follow them for traffic that the policy is not for.
    """
    known = tuple(endpoints)
    if (policies.external if from_outside else policies.internal) == LOCAL:
        return _usable([one for one in known if node and one.node == node], Why.ON_NODE)
    if LOCAL in policies or not hinted:
        return _usable(known, Why.POLICY if hinted else Why.OFF)
    chosen = _usable(known, Why.HINTED)
    if chosen.why is not Why.HINTED:
        return chosen
    if not zone:
        return chosen._replace(why=Why.NO_LABEL)
    if not all(one.hints for one in chosen.endpoints):
        return chosen._replace(why=Why.MISSING_HINT)
    ours = tuple(one for one in chosen.endpoints if zone in one.hints)
    return Choice(ours, Why.HINTED) if ours else chosen._replace(why=Why.NOT_FOR_ZONE)


def _usable(endpoints: Iterable[Endpoint], why: Why) -> Choice:
    """Return the ready ones, or else those that serve while they terminate.

    What is not said of ready and serving is so (``endpointslicecache.go``); for who writes hints it is not.
    """
    known = tuple(endpoints)
    if ready := tuple(one for one in known if one.ready is not False):
        return Choice(ready, why)
    ending = tuple(one for one in known if one.serving is not False and one.terminating)
    return Choice(ending, Why.TERMINATING if ending else Why.NONE)
