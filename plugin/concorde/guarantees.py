"""What the pod was promised: read from its annotations, the runtime's capability or the network's default.

Four annotations, four meanings: `concorde.contmec.dev/egress-guarantee` is a floor the pod can count on,
`concorde.contmec.dev/ingress-guarantee` one for what others send it, `concorde.contmec.dev/answers-guarantee`
one for its acknowledgements of that, and `kubernetes.io/egress-bandwidth` is, as everywhere in Kubernetes, a
ceiling it must not exceed.
"""

from __future__ import annotations

from . import pod_annotations, shaping
from .cni import shown
from .configuration import bits_per_second, in_range, invalid, table
from .leases import Terms

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .configuration import Configuration

GUARANTEE, ANSWERS, INGRESS = pod_annotations.PROMISES
CEILING = "kubernetes.io/egress-bandwidth"


# Answers to what a pod receives need 2 to 5 % of it: one for two segments of 1,500 bytes takes 140 bytes of a
# wire with VXLAN, 4.6 % of theirs.
_ANSWERED = 20


class Promise:
    """A pod's guarantee, its answers', what it receives' and its ceiling, in bits per second.

    None where nobody gave one.
    """

    def __init__(
        self, guarantee: int | None, ceiling: int | None, answers: int | None, ingress: int | None
    ) -> None:
        self.guarantee = guarantee
        self.ceiling = ceiling
        self.answers = answers
        self.ingress = ingress

    @property
    def limit(self) -> int | None:
        """The rate (bits per second) where a limit is all there is: the guarantee, else the ceiling."""
        return self.ceiling if self.guarantee is None else self.guarantee


def promise(
    document: dict[str, Any],
    capability_is_ceiling: bool = False,
    instead: Mapping[str, str | None] | None = None,
) -> Promise:
    """The promise in a network configuration as the runtime passes it.

    The annotation goes before the capability, the capability before the network's default. Runtimes derive
    the capability from the ceiling's annotation; where a ceiling means something of its own, the capability
    must be taken for one. Answers are said by an annotation, or follow from what the pod is to receive.
    `instead` are annotations given since, or taken away. Raises CniError 7 naming the key, and both keys when
    guarantee and answers together exceed the ceiling.
    """
    runtime = table(document, "runtimeConfig") or {}
    given = {**pod_annotations.of(document), **(instead or {})}
    ceiling_path, ceiling = _quantity(given, CEILING, pod_annotations.path(CEILING))
    capability = _capability(runtime)
    if capability_is_ceiling:
        if ceiling is None:
            ceiling_path, ceiling = capability
        capability = capability[0], None
    answers_path, answers = _quantity(given, ANSWERS, pod_annotations.path(ANSWERS))
    path, guarantee = _first(
        _quantity(given, GUARANTEE, pod_annotations.path(GUARANTEE)),
        capability,
        _quantity(document, "defaultGuarantee", "defaultGuarantee"),
    )
    paths = path, answers_path, ceiling_path
    require_within(guarantee, answers, ceiling, *paths)
    _, ingress = _quantity(given, INGRESS, pod_annotations.path(INGRESS))
    if ingress is not None and answers is None:
        answers = _answers_to(ingress, None if ceiling is None else ceiling - (guarantee or 0))
    return Promise(guarantee, ceiling, answers, ingress)


def require_within(
    guarantee: int | None,
    answers: int | None,
    ceiling: int | None,
    path: str,
    answers_path: str = pod_annotations.path(ANSWERS),
    ceiling_path: str = pod_annotations.path(CEILING),
) -> None:
    """Refuse what a pod's own ceiling does not let it send (all in bits per second). Raises CniError 7."""
    if ceiling is None:
        return
    if (guarantee or 0) > ceiling:
        raise invalid(path, f"guarantee of {guarantee} bit/s is above the {ceiling} of {ceiling_path}")
    if answers is not None and (guarantee or 0) + answers > ceiling:
        with_it = f", with the guarantee of {guarantee}," if guarantee else ""
        raise invalid(answers_path, f"{answers} bit/s{with_it} is above the {ceiling} of {ceiling_path}")


def _answers_to(ingress: int, room: int | None) -> int | None:
    """What answers need, as far as a ceiling has room for them (all in bits per second)."""
    needed = -(-ingress // _ANSWERED)
    return (needed if room is None else min(needed, room)) or None


def terms(
    configuration: Configuration,
    mtu: int,
    reserves: bool,
    receives: bool,
    instead: Mapping[str, str | None] | None = None,
) -> Terms:
    """The terms for a pod with this MTU (bytes): which rate and burst a class needs to keep the promise.

    `reserves` says that a guarantee is a floor on the uplink; the class on the pod's interface is then for
    its ceiling. `receives` says whether anything can be promised of what the pod receives. `instead` is as
    for promise(). Raises CniError 7.
    """
    asked = promise(configuration.document, capability_is_ceiling=reserves, instead=instead)
    if asked.ingress is not None and not receives:
        words = f"enforcement {configuration.enforcement} promises nothing of what a pod receives"
        raise invalid(pod_annotations.path(INGRESS), words)
    limit = asked.ceiling if reserves else asked.limit
    promised = asked.answers, asked.ingress
    if limit is None:
        return Terms(configuration.enforcement, asked.guarantee, None, None, None, *promised)
    rate = shaping.class_rate(limit, configuration.count, mtu)
    burst = configuration.burst or shaping.default_burst(rate)
    if burst > shaping.longest_burst(rate):
        raise invalid("burst", f"{burst} bytes take too long at {rate} bit/s for the kernel to count")
    return Terms(configuration.enforcement, asked.guarantee, asked.ceiling, rate, burst, *promised)


def terms_by_now(
    configuration: Configuration,
    mtu: int,
    reserves: bool,
    receives: bool,
    now: Terms,
    said: Mapping[str, int | None],
    wanted: Mapping[str, str | None] | None = None,
) -> Terms:
    """The same for a pod that has terms by `now`, some of which were changed since its ADD.

    `said` is what the configuration said of those, by direction (Ledger.changed); where it says something
    else by now, that counts. `wanted` is what is to change besides, likewise. Raises CniError 7.
    """
    own = terms(configuration, mtu, reserves, receives)
    since = {
        direction: None if now.promise(direction) is None else str(now.promise(direction))
        for direction, then in said.items()
        if own.promise(direction) == then
    }
    changed = {**since, **(wanted or {})}
    instead = {pod_annotations.guarantee(direction): quantity for direction, quantity in changed.items()}
    return terms(configuration, mtu, reserves, receives, instead) if instead else own


def _first(*given: tuple[str, int | None]) -> tuple[str, int | None]:
    return next((one for one in given if one[1] is not None), ("", None))


def _quantity(values: dict[str, Any], key: str, path: str) -> tuple[str, int | None]:
    value = values.get(key)
    if value is None:
        return path, None
    if not isinstance(value, str):
        raise invalid(path, f"{shown(value)} is not a string")
    try:
        return path, bits_per_second(value)
    except ValueError as error:
        raise invalid(path, f"{shown(value)} {error}") from error


def _capability(runtime: dict[str, Any]) -> tuple[str, int | None]:
    # The conventions write `egressRate`; containerd 1.6 writes `EgressRate`, as Go matches without case.
    path = "runtimeConfig.bandwidth.egressRate"
    bandwidth = table(runtime, "bandwidth") or {}
    rates = [value for key, value in bandwidth.items() if key.lower() == "egressrate"]
    if len(rates) > 1:
        raise invalid(path, "given twice")
    if not rates or rates[0] is None or rates[0] == 0:
        return path, None
    if not isinstance(rates[0], int) or isinstance(rates[0], bool):
        raise invalid(path, f"{shown(rates[0])} is not an integer")
    try:
        return path, in_range(rates[0])
    except ValueError as error:
        raise invalid(path, f"{shown(rates[0])} {error}") from error
