"""What a network's plugins are told of a pod's rates: annotations, and what runtimes make of them."""

from __future__ import annotations

from typing import Any

from testbed.enforcements import paper
from testbed.scenario import Pod
from testbed.scenario.description import BANDWIDTH, Description
from testbed.scenario.quantities import format_rate

# The capability by which containerd hands on all of a pod's annotations.
ANNOTATIONS = "io.kubernetes.cri.pod-annotations"
LEAST_BURST = 40_000  # bits


def by_annotations(description: Description, pod: Pod) -> dict[str, str]:
    """Return what a pod's manifest says about its bandwidth."""
    if description.told == "nothing":
        return {}
    keys = description.annotations
    limit = _limit(description, pod)
    rates = {
        keys.guarantee: pod.guarantee,
        keys.answers: pod.answers,
        keys.ceiling: limit if "egress" in description.direction else None,
        keys.ingress: limit if "ingress" in description.direction else None,
    }
    return {key: format_rate(rate) for key, rate in rates.items() if key is not None and rate is not None}


def by_capabilities(description: Description, pod: Pod) -> dict[str, Any]:
    """Return what a runtime hands to plugins that declare these capabilities, in containerd's spelling.

    The burst is the paper's unless the network says another: containerd's own, 2^32 - 1 bits, lets a pod send
    for seconds without any limit (kubernetes/kubernetes#90839), which would be no comparison.
    """
    offered: dict[str, Any] = {ANNOTATIONS: by_annotations(description, pod)}
    limit = _limit(description, pod)
    if limit is not None and description.told != "nothing":
        bits = burst(description, limit)
        inward, outward = ("ingress" in description.direction), ("egress" in description.direction)
        offered[BANDWIDTH] = {
            "IngressRate": limit if inward else 0,
            "IngressBurst": bits if inward else 0,
            "EgressRate": limit if outward else 0,
            "EgressBurst": bits if outward else 0,
        }
    return offered


def burst(description: Description, limit: int) -> int:
    """Return the bits that a pod may send at once beside a limit in bits per second."""
    if description.burst is not None:
        return description.burst
    return min(8 * paper.BURST, max(limit * paper.BURST_MILLISECONDS // 1000, LEAST_BURST))


def _limit(description: Description, pod: Pod) -> int | None:
    """Return what a pod is limited to, bits per second; what knows only limits is told promises as such."""
    if description.annotations.guarantee is not None or pod.guarantee is None:
        return pod.ceiling
    return pod.guarantee
