"""ClusterCIDRConfig as it is written in a manifest, and what is wrong with one.

The vendor's kind is namespaced (``baremetal.cluster.gke.io/v1alpha1``), ours is not; their fields are the
same.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Optional

from edge.addresses.allocation import Config, Range
from edge.addresses.selectors import NAME_FIELD, Requirement, Selector, integer
from edge.fields import Problem, mapping, sequence, text

KIND, PLURAL = "ClusterCIDRConfig", "clustercidrconfigs"
VENDOR, OURS = "baremetal.cluster.gke.io/v1alpha1", "addresses.contmec.dev/v1alpha1"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")  # what a field can be asked, of which there is the node's name alone
# A block of /31 has no address for a bridge and a pod between the subnet's own two (RFC 3021: links of two).
LONGEST = {4: 30, 6: 126}
# More blocks than 2 to the power of this are not kept track of (KEP-2593; kube-controller-manager's limit).
MOST_BITS_IPV6 = 16
_NETWORKS: dict[int, type[IPv4Network] | type[IPv6Network]] = {4: IPv4Network, 6: IPv6Network}
# An API knows neither 10.0.0.0/255.0.0.0 nor fe80::%eth0/64, which Python takes.
_CIDR = re.compile(r"[0-9A-Fa-f.:]+/[0-9]+")


class BadConfigError(ValueError):
    """A config that cannot be used; ``problems`` are all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = problems


def parse(document: Mapping[str, Any]) -> Config:
    """Return what a manifest or an object asks for. Raises BadConfigError with all that is wrong."""
    problems: list[Problem] = []
    spec = mapping(document.get("spec"), "spec", problems)
    ranges = [
        found
        for field, version in (("ipv4", 4), ("ipv6", 6))
        if field in spec and (found := _range(spec[field], f"spec.{field}", version, problems))
    ]
    if not ranges and not problems:
        problems.append(Problem("spec", "must have ipv4, ipv6 or both"))
    if len(ranges) == 2 and ranges[0].host_bits != ranges[1].host_bits:
        mask = ranges[1].network.max_prefixlen - ranges[0].host_bits
        problems.append(
            Problem("spec.ipv6.perNodeMaskSize", f"must be {mask}: both families have blocks of equal size")
        )
    selector = _selector(spec.get("nodeSelector"), problems)
    if problems:
        raise BadConfigError(problems)
    return Config(called(document), tuple(ranges), selector)


def called(document: Mapping[str, Any]) -> str:
    """Return how a config is called: its name, with the namespace before it where it has one."""
    metadata = mapping(document.get("metadata"), "metadata", [])
    return "/".join(str(metadata[part]) for part in ("namespace", "name") if metadata.get(part))


def _range(written: object, path: str, version: int, problems: list[Problem]) -> Optional[Range]:  # noqa: UP045
    family = mapping(written, path, problems)
    network, mask = family.get("cidr"), family.get("perNodeMaskSize")
    text = network if isinstance(network, str) and _CIDR.fullmatch(network) else ""
    try:
        found = _NETWORKS[version](text)
    except ValueError:
        problems.append(Problem(f"{path}.cidr", _why(network, text, version)))
        return None
    longest = LONGEST[version]
    if not isinstance(mask, int) or isinstance(mask, bool) or not found.prefixlen <= mask <= longest:
        what = f"must be an integer from {found.prefixlen}, the range's own, to {longest}"
        problems.append(Problem(f"{path}.perNodeMaskSize", what))
        return None
    if version == 6 and mask - found.prefixlen > MOST_BITS_IPV6:
        what = (
            f"must be at most {found.prefixlen + MOST_BITS_IPV6}: {MOST_BITS_IPV6} more than the range's own"
        )
        problems.append(Problem(f"{path}.perNodeMaskSize", what))
        return None
    return Range(found, mask)


def _why(written: object, text: str, version: int) -> str:
    try:
        loose = _NETWORKS[version](text, strict=False)
    except ValueError:
        example = "10.61.4.0/25" if version == 4 else "fd62::/112"
        return f"must be an IPv{version} network like {example}, not {str(written)[:60]!r}"
    return f"has host bits set: {loose} is meant"


def _selector(written: object, problems: list[Problem]) -> Selector:
    path = "spec.nodeSelector"
    if written is None:
        return Selector()
    selector = mapping(written, path, problems)
    labels = mapping(selector.get("matchLabels", {}), f"{path}.matchLabels", problems)
    terms = sequence(selector.get("nodeSelectorTerms", []), f"{path}.nodeSelectorTerms", problems)
    return Selector(
        tuple(
            Requirement(key, "In", (text(value, f"{path}.matchLabels.{key}", problems),))
            for key, value in sorted(labels.items())
        ),
        tuple(
            _term(term, f"{path}.nodeSelectorTerms[{number}]", problems) for number, term in enumerate(terms)
        ),
    )


def _term(written: object, path: str, problems: list[Problem]) -> tuple[Requirement, ...]:
    term = mapping(written, path, problems)
    found = []
    for field, operators in (("matchExpressions", OPERATORS), ("matchFields", FIELD_OPERATORS)):
        for number, one in enumerate(sequence(term.get(field, []), f"{path}.{field}", problems)):
            found.append(_requirement(one, f"{path}.{field}[{number}]", operators, problems))
            if field == "matchFields" and found[-1].key != NAME_FIELD:
                problems.append(Problem(f"{path}.{field}[{number}].key", f"must be {NAME_FIELD}"))
    return tuple(found)


def _requirement(
    written: object, path: str, operators: Sequence[str], problems: list[Problem]
) -> Requirement:
    asked = mapping(written, path, problems)
    key = text(asked.get("key"), f"{path}.key", problems)
    values = [
        text(value, f"{path}.values[{number}]", problems)
        for number, value in enumerate(sequence(asked.get("values", []), f"{path}.values", problems))
    ]
    operator = str(asked.get("operator"))
    if operator not in operators:
        problems.append(Problem(f"{path}.operator", f"must be one of {', '.join(operators)}"))
    elif operator in ("In", "NotIn") and not values:
        problems.append(Problem(f"{path}.values", f"must have values for {operator}"))
    elif operator in ("Exists", "DoesNotExist") and values:
        problems.append(Problem(f"{path}.values", f"must be empty for {operator}"))
    elif operator in ("Gt", "Lt") and [integer(value) is not None for value in values] != [True]:
        problems.append(Problem(f"{path}.values", f"must be one integer for {operator}"))
    return Requirement(key, operator, tuple(values))
